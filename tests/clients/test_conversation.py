"""What the official clients hear, ask and answer, by value, at two workers behind a balancer.

The balancer takes each request to another worker than the one before, and breaks connections off:
see the conftest for where.
"""

from __future__ import annotations

import itertools
from typing import Any

from tests.support.balancer import Passed, resuming

from .conftest import UNDER_WSGI
from .peers import Peer, Story
from .python_conversation import SCRIPT

ABSENT = {
    "modern": {
        "bound again": "no resumption: that its stream breaks off is a call's cancellation",
        "dictated": "no resumption, and no questions on streams",
        "testified": "no resumption, and no questions on streams",
    },
    "legacy": {
        "lost": "no stream of changes is lost: the session's own is resumed",
        "cut off": "no call is lost: its stream is resumed",
    },
    "legacy under WSGI": {
        "lost": "there is no stream of changes to lose",
        "cut off": "no call is lost: its stream is resumed",
        "changes": "a session has no stream of its own there",
    },
}
"""Steps that an era does not have, and why. A client takes all others."""

SAYS_OF_A_LOST_CALL = {
    # It ends the call at once.
    "python-auto": "SSE stream ended without a response",
    # They tell `onerror`, and leave the call waiting for its time-out.
    "typescript-2-auto": "SSE stream disconnected: TypeError: terminated",
    "typescript-2-pinned": "SSE stream disconnected: TypeError: terminated",
}
"""How the clients of the modern era tell that the stream of a call broke off."""

LOAN = {
    "type": "object",
    "properties": {
        "days": {"type": "integer", "title": "Days", "minimum": 1, "maximum": 28},
        "renew": {"type": "boolean", "default": False},
    },
    "required": ["days"],
}


def text_of(call: dict[str, Any]) -> str:
    (block,) = call["result"]["content"]
    text: str = block["text"]
    return text


def messages_of(call: dict[str, Any]) -> list[str]:
    return [asked["message"] for asked in call["asked"]]


def levels_of(call: dict[str, Any]) -> list[str]:
    for log in call["logs"]:
        assert log == {"level": log["level"], "logger": "desk", "data": {"heard": log["level"]}}
    return [log["level"] for log in call["logs"]]


def sheets(count: int) -> list[dict[str, Any]]:
    return [
        {"progress": sheet, "total": count, "message": f"sheet {sheet}"}
        for sheet in range(1, count + 1)
    ]


def requests_for(passed: list[Passed], what: str) -> list[Passed]:
    return [request for request in passed if request.asks == what]


def test_speaks_in_its_era(talk: Story, speaker: Peer) -> None:
    assert talk["connected"] == speaker.revision


def test_takes_every_step_that_its_era_has(
    talk: Story, speaker: Peer, meeting: tuple[Peer, str]
) -> None:
    special = {"connected", "signed", "changes", "lost", "cut off", "called off"}
    steps = special | SCRIPT["calls"].keys()

    era = "modern" if speaker.modern else "legacy"
    if era == "legacy" and meeting[1] in UNDER_WSGI:
        era = "legacy under WSGI"
    absent = ABSENT[era]
    assert steps - talk.keys() == absent.keys()


def test_hears_progress_in_order(talk: Story) -> None:
    assert talk["bound"]["progress"] == sheets(4)
    assert text_of(talk["bound"]) == "bound Emma"


def test_hears_progress_that_only_grows_and_its_last_value(talk: Story) -> None:
    values = [each["progress"] for each in talk["counted"]["progress"]]

    assert all(value < following for value, following in itertools.pairwise(values))
    assert (values[0], values[-1]) == (1, 1000)


def test_hears_logs_of_the_level_that_it_wants(talk: Story, speaker: Peer) -> None:
    # In the modern era a request that names no level gets none.
    assert levels_of(talk["said"]) == ([] if speaker.modern else ["info", "warning", "error"])
    assert levels_of(talk["warned"]) == ["warning", "error"]
    assert levels_of(talk["told all"]) == ["debug", "info", "warning", "error"]


def test_answers_a_form(talk: Story) -> None:
    (asked,) = talk["borrowed"]["asked"]

    question = "For how long do you want Emma?"
    assert asked == {"mode": "form", "message": question, "requestedSchema": LOAN}
    assert text_of(talk["borrowed"]) == "Emma for 14 days, renew: True"


def test_declines_and_dismisses_a_form(talk: Story) -> None:
    declined, dismissed = talk["declined"], talk["dismissed"]

    assert declined["result"]["isError"] is True
    question = "For how long do you want Persuasion?"
    assert text_of(declined) == f"The user has declined: {question}"
    assert dismissed["result"]["isError"] is True
    question = "For how long do you want Sanditon?"
    assert text_of(dismissed) == f"The user has dismissed the question: {question}"


def test_is_asked_again_by_a_form_that_does_not_validate(talk: Story) -> None:
    assert messages_of(talk["identified"]) == [
        "Your card, please.",
        "Your card, please.\n\nCard number: Enter a valid value.",
    ]
    assert text_of(talk["identified"]) == "card L013"


def test_answers_two_questions_of_one_call(
    talk: Story, speaker: Peer, passed: list[Passed]
) -> None:
    assert messages_of(talk["joined"]) == ["What is your name?", "Which branch, Ada?"]
    assert text_of(talk["joined"]) == "Ada joins south"
    assert len(requests_for(passed, "tools/call join")) == (3 if speaker.modern else 1)


def test_answers_two_questions_at_once(talk: Story, speaker: Peer, passed: list[Passed]) -> None:
    assert sorted(messages_of(talk["ordered"])) == ["How many copies?", "Which cover?"]
    assert text_of(talk["ordered"]) == "3 in cloth"
    # One round for both in the modern era; the others cannot be asked two things at once.
    assert len(requests_for(passed, "tools/call order")) == (2 if speaker.modern else 1)


def test_answers_two_calls_in_the_other_order(talk: Story) -> None:
    """The second call ends while the first still waits for its answer."""
    assert talk["signed"] == {
        "asked": ["Who signs Emma?", "Who signs Middlemarch?"],
        "ended": ["Middlemarch: Mary Ann", "Emma: Jane"],
    }


def test_is_sent_to_a_page_and_told_when_that_is_done(talk: Story, speaker: Peer) -> None:
    (asked,) = talk["paid"]["asked"]
    elicitation = text_of(talk["paid"]).removeprefix("paid ")

    assert (asked["mode"], asked["message"]) == ("url", "Please pay your fine.")
    assert asked["url"] == "https://library.example/fines/7/"
    # The modern era has no ids of elicitations, and no word of their completion.
    assert asked.get("elicitationId") == (None if speaker.modern else elicitation)
    assert talk["paid"]["completed"] == ([] if speaker.modern else [elicitation])


def test_a_client_lends_its_model(talk: Story) -> None:
    (asked,) = talk["praised"]["asked"]

    assert asked == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Praise Emma."}}],
        "systemPrompt": "Be brief.",
        "temperature": 0.5,
        "maxTokens": 60,
    }
    assert text_of(talk["praised"]) == "parrot: Emma!"


def test_lends_its_model_with_tools(talk: Story) -> None:
    first, second = talk["researched"]["asked"]

    assert [tool["name"] for tool in first["tools"]] == ["look_up"]
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    use, result = (message["content"] for message in second["messages"][1:])
    assert (use["type"], use["id"], use["input"]) == ("tool_use", "use-1", {"title": "Emma"})
    assert (result["type"], result["toolUseId"]) == ("tool_result", "use-1")
    assert text_of(talk["researched"]) == "There are three."


def test_tells_its_roots(talk: Story, speaker: Peer) -> None:
    roots = ["books: file:///home/ada/books"]

    given = talk["roots"]["result"]["structuredContent"]
    assert given == (roots if speaker.modern else {"result": roots})


def test_hears_of_the_changes_that_it_wants(talk: Story, speaker: Peer) -> None:
    changes = talk["changes"]

    if speaker.modern:
        honored = {"toolsListChanged": True, "resourceSubscriptions": ["book://emma"]}
        assert changes == {"honored": honored, "heard": ["book://emma", "tools"]}
        return
    # The stream broke off after the first; the resource was unsubscribed before the last.
    assert changes == {"heard": ["book://emma", "tools", "prompts", "resources", "tools"]}


def test_learns_that_a_stream_of_changes_is_lost(
    talk: Story, speaker: Peer, passed: list[Passed]
) -> None:
    listening = requests_for(passed, "subscriptions/listen")

    if not speaker.modern:
        assert listening == []
        return
    assert talk["lost"] == {"lost": True, "heard": ["book://sanditon"]}
    assert [request.was_cut for request in listening] == [False, True, False]


def test_calls_off_what_runs(talk: Story) -> None:
    """Asynchronous and synchronous functions have noted it, or the story would not have ended."""
    assert talk["called off"] == ["doze", "watch"]


def test_calls_off_in_the_way_of_its_era(speaker: Peer, passed: list[Passed]) -> None:
    called_off = requests_for(passed, "notifications/cancelled")
    named = [str(request.message["params"]["requestId"]) for request in called_off]

    if speaker.modern:
        # By closing the connection; the word that some send besides is about streams of changes.
        assert all(name.startswith("listen") for name in named)
        return
    calls = [*requests_for(passed, "tools/call doze"), *requests_for(passed, "tools/call watch")]
    assert named == [str(request.message["id"]) for request in calls]
    assert all(
        request.worker != call.worker for request, call in zip(called_off, calls, strict=True)
    )


def test_a_call_of_the_modern_era_ends_with_its_stream(
    talk: Story, speaker: Peer, passed: list[Passed]
) -> None:
    """The function has noted it, or the story would not have ended."""
    cut = [request.asks for request in passed if request.was_cut]

    if speaker.modern:
        assert talk["cut off"] == SAYS_OF_A_LOST_CALL[speaker.name]
        assert cut == ["subscriptions/listen", "tools/call doze"]
    else:
        assert "tools/call doze" not in cut


def test_hears_everything_of_a_call_whose_stream_broke_off(talk: Story, speaker: Peer) -> None:
    if speaker.modern:
        assert "bound again" in ABSENT["modern"]
        assert "bound again" not in talk
        return
    assert talk["bound again"]["progress"] == sheets(6)
    assert text_of(talk["bound again"]) == "bound Mansfield Park"


def test_is_asked_and_heard_though_the_stream_broke_off(talk: Story, speaker: Peer) -> None:
    if speaker.modern:
        assert {"dictated", "testified"} <= ABSENT["modern"].keys() - talk.keys()
        return
    assert messages_of(talk["dictated"]) == ["What shall I write?"]
    assert text_of(talk["dictated"]) == "wrote a letter"
    assert messages_of(talk["testified"]) == ["What happened?"]
    assert text_of(talk["testified"]) == "heard nothing"


def test_comes_back_for_the_result(talk: Story, speaker: Peer) -> None:
    assert text_of(talk["fetched"]) == f"fetched, released: {not speaker.modern}"


def test_comes_back_to_each_stream_once_and_at_another_worker(
    speaker: Peer, passed: list[Passed], meeting: tuple[Peer, str]
) -> None:
    back = resuming(passed)

    if speaker.modern:
        assert back == []
        return
    broken = [request for request in passed if request.was_cut]
    # The session's own stream is the first, but for WSGI, where it has none.
    own = [] if meeting[1] in UNDER_WSGI else broken[:1]
    calls = broken[len(own) :]
    assert [request.method for request in own] == ["GET"] * len(own)
    assert [request.asks for request in calls] == [
        *["tools/call bind", "tools/call dictate", "tools/call testify"]
    ]
    # Then it comes back for what was released, and at last to the session's own stream.
    fetched = requests_for(passed, "tools/call fetch")
    lost = [*calls, *fetched, *own]
    assert [request.status for request in back] == [200] * len(lost)
    assert [request.worker for request in back] == [1 - request.worker for request in lost]


def test_answers_at_another_worker_than_the_one_that_asks(
    speaker: Peer, passed: list[Passed]
) -> None:
    if speaker.modern:
        rounds = requests_for(passed, "tools/call borrow")
        asked, answered = rounds[::2], rounds[1::2]
    else:
        pairs = [pair for pair in itertools.pairwise(passed) if pair[1].answers and pair[0].asks]
        asked, answered = [one for one, _ in pairs], [other for _, other in pairs]

    assert len(asked) == len(answered) >= 3
    assert all(one.worker != other.worker for one, other in zip(asked, answered, strict=True))


def test_meets_no_server_fault(passed: list[Passed]) -> None:
    assert [request.asks for request in passed if (request.status or 0) >= 500] == []
