"""The legacy era: a question is a request to the client, and the call waits for its answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from django_mcp import (
    Context,
    MCPServer,
    QuestionDeclined,
    QuestionError,
    QuestionFailed,
    QuestionTimedOut,
    QuestionUnsupported,
    ToolError,
)
from django_mcp.protocol.errors import MCPError
from django_mcp.server.errors import AnswerTimedOut, CallStopped
from django_mcp.server.questions.asking import MAX_ATTEMPTS
from django_mcp.testing import CANCEL, DECLINE
from tests.wire import schemas

from .support import ASKING, LEGACY, Client, failure_of, legacy, raising, request_faults, text_of

pytestmark = pytest.mark.django_db


class Refund(BaseModel):
    """What to refund."""

    reason: Literal["late", "broken"] = Field("late", description="Why")
    amount: float = Field(5.0, ge=0)
    notify: bool = True


def refund(ctx: Context) -> str:
    """Refund an order."""
    answer = ctx.elicit("Refund it?", Refund)
    return f"{answer.reason} {answer.amount} {answer.notify}"


async def arefund(ctx: Context) -> str:
    """Refund an order."""
    answer = await ctx.aelicit("Refund it?", Refund)
    return f"{answer.reason} {answer.amount} {answer.notify}"


@pytest.mark.parametrize("function", [refund, arefund])
@pytest.mark.parametrize("revision", ASKING)
def test_a_question_waits_for_its_answer(revision: str, function: Any):
    client = Client([{"reason": "broken", "amount": 3}])
    assert text_of(legacy(function, client, revision=revision)) == "broken 3.0 True"
    (asked,) = client.asked
    assert (asked.method, asked.message) == ("elicitation/create", "Refund it?")
    assert list(request_faults(asked, revision)) == []


def test_the_mode_is_said_where_there_is_more_than_one():
    for revision, mode in (("2025-06-18", None), ("2025-11-25", "form")):
        client = Client([{}])
        legacy(refund, client, revision=revision)
        assert client.asked[0].params.get("mode") == mode


def test_questions_are_asked_one_after_the_other():
    def two(ctx: Context) -> str:
        return f"{ctx.elicit('First?', str)} {ctx.elicit('Second?', int)}"

    client = Client(["a", 2])
    assert text_of(legacy(two, client)) == "a 2"
    assert [asked.message for asked in client.asked] == ["First?", "Second?"]


def test_an_answer_that_does_not_fit_is_asked_for_again():
    client = Client([{"amount": -1}, {"amount": 1}])
    assert text_of(legacy(refund, client)) == "late 1.0 True"
    assert "amount: Input should be greater than or equal to 0." in client.asked[1].message


@pytest.mark.parametrize("function", [refund, arefund])
def test_after_some_attempts_the_call_fails(function: Any):
    client = Client([{"amount": -1}] * 9)
    assert "No answer fits. amount: Input should be" in failure_of(legacy(function, client))
    assert len(client.asked) == MAX_ATTEMPTS == 3


class Mute(Client):
    def request(self, method: str, params: dict[str, Any], seconds: float) -> Any:
        return {}


def test_an_answer_without_the_form_of_one_does_not_fit():
    assert "did not have the form" in failure_of(legacy(refund, Mute([])))


def caught(ctx: Context) -> str:
    """Name what comes instead of an answer."""
    try:
        ctx.elicit("Sure?", bool)
    except QuestionError as error:
        return f"{type(error).__name__}: {error}"
    return "answered"


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ([DECLINE], "QuestionDeclined: The user has declined: Sure?"),
        ([CANCEL], "QuestionCancelled: The user has dismissed the question: Sure?"),
        (raising(AnswerTimedOut()), "QuestionTimedOut: No answer came in time: Sure?"),
        (raising(MCPError(-1, "Not allowed.")), "QuestionDeclined: The client answered: Not allo"),
        (raising(MCPError(-32603, "Oh.")), "QuestionFailed: The client answered: Oh. (Sure?)"),
        (lambda asked: "maybe", "QuestionFailed: No answer fits. Input should be a valid boolean"),
        ([True], "answered"),
    ],
)
def test_what_can_come_instead_of_an_answer_is_told_apart(answers: Any, text: str):
    assert text_of(legacy(caught, Client(answers))).startswith(text)


def test_the_client_cannot_make_it_an_error_of_the_protocol():
    client = Client(raising(MCPError(-32001, "Session not found")))
    assert "The client answered: Session not found" in failure_of(legacy(refund, client))


def test_each_of_them_is_its_own():
    kinds = (QuestionDeclined, QuestionFailed, QuestionTimedOut, QuestionUnsupported)
    for kind in kinds:
        assert kind.__bases__ == (QuestionError,)
    assert QuestionError.__bases__ == (ToolError,)


def test_a_call_that_is_stopped_ends():
    def stubborn(ctx: Context) -> str:
        try:
            ctx.elicit("Sure?", bool)
        except Exception:
            return "went on"
        return "answered"

    def stop(asked: Any) -> Any:
        raise CallStopped

    assert "went on" not in str(legacy(stubborn, Client(stop)))


async def in_a_group(ctx: Context) -> str:
    """Ask in a group of tasks."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ctx.aelicit(f"{name}?", str)) for name in "AB"]
    return " ".join(task.result() for task in tasks)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (CallStopped(), "cancelled"),
        (AnswerTimedOut(), "No answer came in time: "),
        (ZeroDivisionError(), "The tool failed."),
    ],
    ids=["stopped", "late", "bug"],
)
def test_what_a_group_of_tasks_raises_is_told_as_one(error: BaseException, text: str):
    class Together(Client):
        waiting = 0

        async def arequest(self, *args: Any) -> Any:
            self.waiting += 1
            while self.waiting < 2:
                await asyncio.sleep(0)
            raise error

    assert text in str(legacy(in_a_group, Together([])))
    assert text_of(legacy(in_a_group, Client({"A?": "a", "B?": "b"}))) == "a b"


def test_a_question_has_its_own_time():
    def ask(ctx: Context) -> str:
        ctx.elicit("A?")
        ctx.elicit("B?", timeout=5)
        return "done"

    client = Client([True, True])
    legacy(ask, client)
    assert client.seconds == [300, 5]


# Who cannot be asked


@pytest.mark.parametrize(
    ("revision", "capabilities", "can_answer"),
    [
        ("2025-03-26", {"elicitation": {}}, True),
        ("2025-06-18", {"sampling": {}}, True),
        ("2025-11-25", {}, True),
        ("2025-11-25", {}, False),
        ("2025-11-25", {"elicitation": {"url": {}}}, True),
    ],
)
def test_the_model_is_told_the_question_and_its_schema(
    revision: str, capabilities: Any, can_answer: bool
):
    """2025-03-26 has no elicitation."""
    client = Client([], can_answer=can_answer)
    outcome = legacy(refund, client, revision=revision, capabilities=capabilities)
    text = failure_of(outcome)
    assert "This client cannot be asked (elicitation.form)." in text
    schema = json.loads(text.partition("Refund it? ")[2])
    assert schema["properties"]["reason"]["enum"] == ["late", "broken"]
    assert not client.asked


def test_where_no_answer_can_arrive_it_is_not_said_to_be_for_the_client():
    client = Client([], can_answer=False)
    text = failure_of(legacy(refund, client, capabilities={"elicitation": {}}))
    assert text.startswith("Nobody can be asked here (elicitation.form), since ")
    assert "by the setting WSGI_STREAMS, or by ASGI. Ask in its place, and call again" in text
    assert json.loads(text.partition("Refund it? ")[2])["properties"]["reason"]
    assert not client.asked


def test_who_has_declared_anything_before_there_were_modes_takes_forms():
    client = Client([{}])
    text_of(legacy(refund, client, revision="2025-06-18", capabilities={"elicitation": {"url": 1}}))


def test_a_fallback_is_the_answer_of_who_cannot_be_asked():
    def ask(ctx: Context) -> str:
        return repr(ctx.elicit("Name?", str, fallback="nobody"))

    for revision in LEGACY:
        assert text_of(legacy(ask, Client([]), revision=revision, capabilities={})) == "'nobody'"


def test_a_function_may_find_out():
    assert text_of(legacy(caught, Client([]), capabilities={})).startswith("QuestionUnsupported:")


def test_prompts_and_resources_answer_with_an_error():
    server = MCPServer("asking")

    @server.prompt
    def it(ctx: Context) -> str:
        """Ask."""
        return ctx.elicit("Tone?", str)

    @server.resource("letter://{name}")
    def letter(ctx: Context, name: str) -> str:
        """Ask."""
        return ctx.elicit("Tone?", str)

    for method, more in (("prompts/get", {}), ("resources/read", {"uri": "letter://a"})):
        asked = legacy(server, Client(["warm"]), method=method, **more)
        assert "warm" in str(asked.body)
        refused = legacy(server, Client([]), method=method, capabilities={}, **more)
        assert isinstance(refused, MCPError)
        assert refused.code == -32602
        assert "This client cannot be asked" in refused.message


def test_answers_in_the_request_mean_nothing():
    def look(ctx: Context) -> str:
        return str(ctx.input_responses)

    forged = {"inputResponses": {"a": 1}, "requestState": "forged"}
    assert text_of(legacy(look, Client([]), more=forged)) == "{}"


# A page to visit


def visit(ctx: Context) -> str:
    """Send the user somewhere."""
    elicitation = ctx.elicit_url("Connect", "https://shop.example/connect")
    ctx.elicitation_completed(elicitation)
    return elicitation


def test_a_page_to_visit_has_an_id_that_is_told_when_it_is_done():
    client = Client([True])
    elicitation = text_of(legacy(visit, client))
    assert client.asked[0].params == {
        "mode": "url",
        "message": "Connect",
        "url": "https://shop.example/connect",
        "elicitationId": elicitation,
    }
    assert client.told == [("notifications/elicitation/complete", {"elicitationId": elicitation})]
    assert list(request_faults(client.asked[0], "2025-11-25")) == []
    (method, params) = client.told[0]
    told = {"jsonrpc": "2.0", "method": method, "params": params}
    assert not list(schemas.faults(told, "2025-11-25", "ElicitationCompleteNotification"))


def test_the_id_may_be_given():
    def ask(ctx: Context) -> str:
        return ctx.elicit_url("Connect", "https://shop.example/", elicitation_id="mine")

    client = Client([True])
    assert text_of(legacy(ask, client)) == "mine"
    assert client.asked[0].params["elicitationId"] == "mine"


@pytest.mark.parametrize(
    ("revision", "declared"),
    [("2025-06-18", {}), ("2025-11-25", {}), ("2025-11-25", {"form": {}})],
)
def test_who_takes_forms_alone_is_sent_nowhere(revision: str, declared: Any):
    client = Client([True])
    text = failure_of(
        legacy(visit, client, revision=revision, capabilities={"elicitation": declared})
    )
    assert "elicitation.url" in text
    assert "https://shop.example/connect" in text
    assert not client.asked


def test_codex_is_sent_to_a_page_in_a_revision_that_has_no_such_question():
    """Codex agrees on 2025-06-18 and declares that it takes URLs, too."""
    client = Client([True])
    text_of(
        legacy(
            visit,
            client,
            revision="2025-06-18",
            capabilities={"elicitation": {"form": {}, "url": {}}},
        )
    )
    (asked,) = client.asked
    assert (asked.params["mode"], asked.params["url"]) == ("url", "https://shop.example/connect")
    assert asked.params["elicitationId"]
    assert client.told == [
        (
            "notifications/elicitation/complete",
            {"elicitationId": asked.params["elicitationId"]},
        )
    ]
