"""The checker itself: it passes a clean history, and finds what is planted in one."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from django_mcp.protocol.errors import taken_for_dead

from .checker import FAILURES, Figures, check

KEY = "n1"
Event = dict[str, Any]


def call(*events: Event, key: str = KEY, **facts: Any) -> list[Event]:
    """A call of the session `s1` that has left its row, and what was seen of it."""
    sent = {"s": "s1", "what": "speak", "id": 7, "words": None, "resumable": True, **facts}
    return [{"e": "sent", **sent, "x": key}, *({"x": key, "a": 1, **each} for each in events)]


def head(status: int = 200, **facts: Any) -> Event:
    return {"e": "head", "status": status, "s": "s1", **facts}


def message(body: Any, event: str | None = None, **facts: Any) -> Event:
    return {"e": "message", "event": event, "message": body, **facts}


def answer(nonce: str = KEY, id: Any = 7, **facts: Any) -> Event:
    result = {"content": [{"type": "text", "text": nonce}]}
    return message({"jsonrpc": "2.0", "id": id, "result": result}, **facts)


def error(id: Any = 7, text: str = "gone", **facts: Any) -> Event:
    return message({"id": id, "error": {"code": -32603, "message": text}}, **facts)


def word(number: int, nonce: str = KEY, **facts: Any) -> Event:
    params = {"level": "info", "data": {"nonce": nonce, "number": number}}
    return message({"method": "notifications/message", "params": params}, **facts)


def end(how: str = "complete", place: str | None = None, **facts: Any) -> Event:
    return {"e": "end", "how": how, "place": place, **facts}


def passed(how: str, worker: int = 0, **facts: Any) -> Event:
    return {"e": "passed", "how": how, "worker": worker, "status": 200, **facts}


def act(name: str, worker: int = 0) -> Event:
    return {"e": "act", "name": name, "worker": worker, "x": None}


def figures(*parts: list[Event], effects: dict[str, int] | None = None) -> Figures:
    events = [{**each, "t": t / 10} for t, each in enumerate(itertools.chain(*parts))]
    for each in events:
        if each["e"] == "act":
            each["begun"] = each["t"] - 0.1
    return check(events, {KEY: 1} if effects is None else effects)


def found(*parts: list[Event], effects: dict[str, int] | None = None) -> dict[str, int]:
    """What must not be, and is."""
    counts = figures(*parts, effects=effects).counts
    return {each: counts[each] for each in FAILURES if counts[each]}


OPENED: list[Event] = [{"e": "opened", "s": "s1"}]
BROKEN = [head(), word(0, event="e.1"), end("broken", "e.1"), passed("broke")]


def test_a_clean_history_passes():
    broken = [head(), word(0, "n2", event="e.1"), end("broken", "e.1"), passed("broke")]
    outcome = figures(
        OPENED,
        call(head(), word(0), word(1), answer(), end(), words=2),
        call(*broken, head(a=2), answer("n2", event="e.2", a=2), end(a=2), key="n2"),
        call(head(), error(), end(), key="n3"),
        effects={"n1": 1, "n2": 1, "n3": 1},
    )

    assert not outcome.failed
    assert {each: outcome.counts[each] for each in ("requests", "accepted", "sessions")} == {
        "requests": 3,
        "accepted": 3,
        "sessions": 1,
    }
    assert (outcome.counts["answered"], outcome.counts["failed"]) == (2, 1)
    assert outcome.counts["resumptions"] == 1


def batch(*events: Event) -> list[Event]:
    """Two calls of one body; what its connection saw is noted once."""
    sent = [*call(id=1, key="n1"), *call(id=2, key="n2")]
    return [*sent, *({"x": "n1+n2", "a": 1, **each} for each in events)]


def test_the_requests_of_a_batch_have_their_connection_in_common():
    answers = [answer("n1", 1, x="n1"), answer("n2", 2, x="n2")]
    outcome = figures(OPENED, batch(head(), *answers, end()), effects={"n1": 1, "n2": 1})

    assert not outcome.failed
    assert (outcome.counts["requests"], outcome.counts["answered"]) == (2, 2)


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        pytest.param([answer("n1", 1, x="n1"), end()], {"lost": 1}, id="one is not answered"),
        pytest.param(
            [answer("n1", 1, x="n1"), answer("n1", 1, x="n1"), answer("n2", 2, x="n2"), end()],
            {"duplicated": 1},
            id="one is answered twice",
        ),
        pytest.param(
            [answer("n2", 1, x="n1"), answer("n1", 2, x="n2"), end()],
            {"misrouted": 2},
            id="each has the answer of the other",
        ),
    ],
)
def test_a_batch_has_an_answer_for_each_of_its_requests(events, fault):
    assert found(batch(head(), *events), effects={"n1": 1, "n2": 1}) == fault


@pytest.mark.parametrize("name", ["kill", "all_down", "terminate"])
def test_who_cannot_come_back_is_closed_by_the_end_of_the_worker(name):
    broken = [head(), end("broken"), passed("broke")]
    outcome = figures([act(name)], call(*broken), effects={})

    assert not outcome.failed
    assert outcome.closed_by == {"worker": 1}


AGAIN = [head(a=2), answer(event="e.2", a=2), end(place="e.2", a=2)]


@pytest.mark.parametrize("how", ["left", "complete"])
def test_whoever_leaves_as_an_answer_without_an_id_comes_gets_it_again(how):
    first = [head(), word(0, event="e.1"), answer(), end(how, "e.1"), passed("complete")]
    assert found(OPENED, call(*first, *AGAIN)) == ({} if how == "left" else {"duplicated": 1})


def test_an_answer_that_has_come_with_its_id_does_not_come_again():
    first = [head(), answer(event="e.1"), end("left", "e.1"), passed("complete")]
    assert found(OPENED, call(*first, *AGAIN)) == {"duplicated": 1}


def test_who_leaves_without_an_event_id_has_left():
    outcome = figures(call(head(), end("left"), passed("left")), effects={})

    assert not outcome.failed
    assert outcome.closed_by == {"left": 1}


def test_a_request_that_no_status_line_answers_was_not_accepted():
    outcome = figures(call(end("refused"), passed("nobody")), effects={})

    assert not outcome.failed
    assert outcome.counts["accepted"] == 0


@pytest.mark.parametrize(
    "acts",
    [[], [act("kill", worker=1)], [act("stand_still")], [act("restart_database")]],
    ids=["none", "another-worker", "that-ends-nothing", "of-the-database"],
)
def test_a_connection_that_no_act_has_closed_is_lost(acts):
    assert found(acts, call(head(), end("broken"), passed("broke"))) == {"lost": 1}


def test_a_stream_that_ends_in_an_orderly_way_without_an_answer_is_lost():
    assert found([act("kill")], call(head(), end(), passed("complete"))) == {"lost": 1}


def test_who_comes_back_and_is_told_that_there_is_nothing_is_lost():
    refused = [head(400, a=2), error(None, a=2), end(place="e.1", a=2)]

    assert found([act("kill")], call(*BROKEN, *refused)) == {"lost": 1}


def test_an_answer_whose_words_are_missing_is_lost():
    assert found(call(head(), word(0), word(2), answer(), words=3)) == {"lost": 1}


def test_two_terminal_messages_are_duplicates():
    again = [head(a=2), error(a=2), end(a=2)]

    assert found(call(head(), answer(), end(), *again)) == {"duplicated": 1}


def test_what_came_without_an_id_may_come_again_to_who_comes_back():
    broken = [head(), word(0, event="e.1"), word(1), end("left", "e.1"), passed("left")]
    rest = [head(a=2), word(1, event="e.2", a=2), answer(a=2, event="e.3"), end(a=2)]
    assert found(call(*broken, *rest, words=2)) == {}
    without = [head(a=2), answer(a=2, event="e.2"), end(a=2)]
    assert found(call(*broken, *without, words=2)) == {"lost": 1}


def test_what_came_with_an_id_may_not():
    broken = [head(), word(0, event="e.1"), word(1, event="e.2"), end("left", "e.2")]
    rest = [head(a=2), word(1, event="e.3", a=2), answer(a=2, event="e.4"), end(a=2)]
    assert found(call(*broken, *rest, words=2)) == {"duplicated": 1}


@pytest.mark.parametrize(
    "words",
    [[word(0), word(0)], [word(1), word(0)], [word(0, event="e.1"), word(1, event="e.1")]],
    ids=["twice", "in-disorder", "one-event-id"],
)
def test_words_that_come_twice_or_in_disorder_are_duplicates(words):
    assert found(call(head(), *words, answer(), end())) == {"duplicated": 1}


@pytest.mark.parametrize(
    "stray",
    [answer("n2"), answer(id="7"), answer(id=8), error(None), word(0, "n2")],
    ids=["nonce", "type-of-id", "id", "no-id", "word"],
)
def test_what_belongs_to_another_is_misrouted(stray):
    assert found(call(head(), stray, end("left"), {"e": "cancel"})) == {"misrouted": 1}


def test_a_response_on_the_stream_of_the_session_is_misrouted():
    body = {"id": 7, "result": {}}
    own = {"e": "own", "s": "s1", "x": "s1/own", "a": 1, "event": "o.1", "message": body}

    assert found(OPENED, [own]) == {"misrouted": 1}


def test_who_has_waited_for_the_bound_is_hung():
    assert found(call(head(), end("left"), {"e": "gave_up"})) == {"hung": 1}


def test_two_rows_of_one_call_say_that_it_has_run_twice():
    assert found(call(head(), answer(), end()), effects={KEY: 2}) == {"run twice": 1}


def test_an_answer_without_a_row_is_unfounded():
    assert found(call(head(), answer(), end()), effects={}) == {"unfounded": 1}


@pytest.mark.parametrize(
    "acts",
    [[], [act("kill", worker=1)], [act("restart_database")]],
    ids=["none", "another-worker", "of-the-database"],
)
def test_a_call_whose_process_was_taken_for_dead_and_lived_is_unfounded(acts):
    exchange = call(head(), error(text=taken_for_dead().message), end(), passed("complete"))

    assert found(acts, exchange) == {"unfounded": 1}
    assert found([act("stand_still")], exchange) == {}
    assert found([act("all_down", worker=1)], exchange) == {}


def test_an_act_long_before_a_call_explains_nothing_of_it():
    between = [{"e": "other"}] * 20
    exchange = call(head(), error(text=taken_for_dead().message), end(), passed("complete"))

    assert found([act("kill")], between, exchange) == {"unfounded": 1}


def test_a_session_that_nobody_has_ended_and_that_is_gone_is_lost():
    gone = call(head(404), error(), end())

    assert found(OPENED, gone) == {"sessions lost": 1}
    assert found(OPENED, [{"e": "ending", "s": "s1"}], gone) == {}


def test_an_answer_that_was_refused_is_untaken():
    refused = {"e": "untaken", "s": "s1", "status": 400, "message": {}}

    assert found(OPENED, [refused]) == {"untaken": 1}


def test_rows_without_an_end_are_left():
    assert check([], {}, ["request 1"]).counts["rows left"] == 1
