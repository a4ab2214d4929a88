"""The modern era: a question ends the call, and the client comes back with the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Literal

import pytest
from django.contrib.auth.models import Group, User
from django.core import signing
from django.test import override_settings
from django.utils import translation
from django.utils.translation import gettext_lazy
from pydantic import BaseModel

from django_mcp import (
    Context,
    MCPServer,
    QuestionCancelled,
    QuestionDeclined,
    QuestionError,
    ResourceNotFound,
    ToolError,
)
from django_mcp.server.questions import mrtr
from django_mcp.server.questions.asking import MAX_ATTEMPTS
from django_mcp.server.questions.mrtr import MAX_ROUNDS
from django_mcp.testing import CANCEL, DECLINE, MCPClient

from .support import accepted, again, call, modern, requests_of

pytestmark = pytest.mark.django_db


class Name(BaseModel):
    name: str


def greet(ctx: Context) -> str:
    """Greet the user."""
    return f"Hello {ctx.elicit('What is your name?', Name, key='user_name').name}"


def two(ctx: Context) -> str:
    """Ask one question after the other."""
    first = ctx.elicit("First?", str)
    second = ctx.elicit("Second?", int)
    return f"{first} {second}"


def test_a_question_ends_the_call_and_says_what_is_wanted():
    result = modern(greet).tool("it").result
    meta = result.pop("_meta")
    assert meta["io.modelcontextprotocol/serverInfo"]["name"] == "asking"
    assert isinstance(result.pop("requestState"), str)
    assert result == {
        "resultType": "input_required",
        "inputRequests": {
            "user_name": {
                "method": "elicitation/create",
                "params": {
                    "mode": "form",
                    "message": "What is your name?",
                    "requestedSchema": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}},
                        "required": ["name"],
                    },
                },
            }
        },
    }


def test_the_answer_completes_the_call():
    client = modern(greet)
    answer = again(client, client.tool("it"), {"user_name": accepted(name="Ada")})
    assert answer.result["resultType"] == "complete"
    answer.assert_ok().assert_contains("Hello Ada")


def test_answers_of_earlier_rounds_are_kept():
    client = modern(two)
    first = client.tool("it")
    second = again(client, first, {"elicit-1": accepted(value="a")})
    assert list(requests_of(second)) == ["elicit-2"]
    assert first.result["requestState"] != second.result["requestState"]
    again(client, second, {"elicit-2": accepted(value=2)}).assert_ok().assert_contains("a 2")


def test_an_answer_without_state_is_taken():
    client = modern(greet)
    call(client, {"user_name": accepted(name="Ada"), "more": 5}).assert_contains("Hello Ada")


@pytest.mark.parametrize(
    "responses",
    [
        {},
        None,
        [],
        "user_name",
        {"another": accepted(name="Ada")},
        {"user_name": None},
        {"user_name": 12345},
        {"user_name": {"action": "guess"}},
        {"user_name": {"action": "accept"}},
        {"user_name": {"action": "accept", "content": [1]}},
        {"user_name": accepted(name=5)},
        {"user_name": accepted(another="Ada")},
    ],
    ids=str,
)
@pytest.mark.parametrize("with_state", [True, False])
def test_a_wrong_or_missing_answer_is_asked_for_again(responses: Any, with_state: bool):
    """2026-07-28, basic/patterns/mrtr, "Error Handling"."""
    client = modern(greet)
    state = client.tool("it").result["requestState"] if with_state else None
    answer = call(client, responses, state)
    assert list(requests_of(answer)) == ["user_name"]
    again(client, answer, {"user_name": accepted(name="Ada")}).assert_contains("Hello Ada")


def test_what_was_not_asked_for_is_ignored():
    client = modern(two)
    answer = again(
        client,
        client.tool("it"),
        {"elicit-1": accepted(value="a"), "elicit-2": accepted(value=2), "more": 1},
    )
    assert list(requests_of(answer)) == ["elicit-2"]


def test_what_was_answered_before_is_not_counted_twice():
    client = modern(two)
    responses = {"elicit-1": accepted(value="a")}
    answer = again(client, client.tool("it"), responses)
    answer = again(client, answer, responses)
    answer = again(client, answer, {**responses, "elicit-2": accepted(value=2)})
    answer.assert_ok().assert_contains("a 2")


def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reason():
    client = modern(two, answers=["a", "two", 2])
    client.tool("it").assert_ok().assert_contains("a 2")
    assert [asked.message for asked in client.asked] == [
        "First?",
        "Second?",
        "Second?\n\nInput should be a valid integer, unable to parse string as an integer.",
    ]


def test_after_some_attempts_the_call_fails():
    client = modern(two, answers=["a", *["?"] * 9])
    answer = client.tool("it").assert_failed("No answer fits. Input should be a valid integer")
    assert "Second?" in answer.text
    assert len(client.asked) == 1 + MAX_ATTEMPTS


def many(ctx: Context, count: int) -> int:
    """Ask many questions."""
    return sum(ctx.elicit(f"Number {number}?", int) for number in range(count))


def test_rounds_are_limited():
    modern(many, answers=lambda asked: 1).tool("it", count=MAX_ROUNDS).assert_ok()
    client = modern(many, answers=lambda asked: 1)
    client.tool("it", count=MAX_ROUNDS + 1).assert_failed(f"questions {MAX_ROUNDS} times")
    assert len(client.asked) == MAX_ROUNDS


wording: dict[str, str] = {}


def reworded(ctx: Context) -> str:
    """Ask in words that change."""
    sure = ctx.elicit(wording["message"], bool)
    ctx.elicit("And now?", str)
    return f"{sure}"


@pytest.mark.parametrize("after", [1, 2])
def test_a_question_that_was_reworded_is_asked_again(after: int):
    client = modern(reworded)
    wording["message"] = "Delete one row?"
    answer = client.tool("it")
    if after == 2:
        answer = again(client, answer, {"elicit-1": accepted(value=True)})
    wording["message"] = "Delete everything?"
    answer = again(
        client, answer, {"elicit-1": accepted(value=True), "elicit-2": accepted(value="?")}
    )
    requests = requests_of(answer)
    assert requests["elicit-1"]["params"]["message"] == "Delete everything?"
    answer = again(client, answer, {"elicit-1": accepted(value=False)})
    if after == 1:
        # Nobody had asked for it when the answer came.
        assert list(requests_of(answer)) == ["elicit-2"]
        answer = again(client, answer, {"elicit-2": accepted(value="x")})
    answer.assert_contains("False")


def resized(ctx: Context) -> str:
    """Ask for something that changes."""
    kind = Literal["a", "b"] if wording["message"] == "two" else Literal["a"]
    return ctx.elicit("Which one?", kind)


def test_a_question_with_another_schema_is_asked_again():
    client = modern(resized)
    wording["message"] = "two"
    answer = client.tool("it")
    wording["message"] = "one"
    answer = again(client, answer, {"elicit-1": accepted(value="a")})
    assert requests_of(answer)["elicit-1"]["params"]["requestedSchema"]["properties"] == {
        "value": {"type": "string", "enum": ["a"]}
    }


def beginning(ctx: Context) -> str:
    """Ask with a default that changes."""

    class Begins(BaseModel):
        name: str = wording["message"]

    return ctx.elicit("Name?", Begins).name


def test_a_new_default_makes_no_new_question():
    client = modern(beginning)
    wording["message"] = "Ada"
    answer = client.tool("it")
    wording["message"] = "Bob"
    again(client, answer, {"elicit-1": accepted(name="Eve")}).assert_contains("Eve")


def test_a_message_may_be_translated_late():
    def ask(ctx: Context) -> str:
        return ctx.elicit(gettext_lazy("Yes"), str)

    client = modern(ask, answers=["a", "b"])
    client.tool("it")
    with translation.override("de"):
        client.tool("it")
    assert [asked.message for asked in client.asked] == ["Yes", "Ja"]


# Who says no


def polite(ctx: Context) -> str:
    """Take no for an answer."""
    try:
        ctx.elicit("May I?")
    except QuestionDeclined:
        return "declined, " + ctx.elicit("Why?", str)
    except QuestionCancelled:
        return "cancelled"
    return "accepted"


def test_a_confirmation_has_no_fields():
    client = modern(polite, answers=[True])
    client.tool("it").assert_contains("accepted")
    assert client.asked[0].params["requestedSchema"] == {"type": "object", "properties": {}}


def test_declining_and_cancelling_are_told_apart_also_after_the_next_round():
    modern(polite, answers=[DECLINE, "no time"]).tool("it").assert_contains("declined, no time")
    modern(polite, answers=[CANCEL]).tool("it").assert_contains("cancelled")


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (DECLINE, "The user has declined: What is your name?"),
        (CANCEL, "The user has dismissed the question: What is your name?"),
    ],
)
def test_who_does_not_catch_it_leaves_the_reason_to_the_model(refusal: Any, text: str):
    modern(greet, answers=[refusal]).tool("it").assert_failed(text)


def test_all_of_them_are_errors_of_the_tool():
    assert issubclass(QuestionDeclined, QuestionError)
    assert issubclass(QuestionCancelled, QuestionError)
    assert issubclass(QuestionError, ToolError)
    assert not issubclass(QuestionCancelled, QuestionDeclined)


# The state


def forged(state: str) -> str:
    return state + "-TAMPERED"


def signed_again(change: Callable[[Any], None]) -> Callable[[str], str]:
    def alter(state: str) -> str:
        data = signing.loads(state, salt=mrtr._SALT)
        change(data)
        return signing.dumps(data, salt="another salt")

    return alter


@pytest.mark.parametrize(
    "alter",
    [
        forged,
        lambda state: "",
        lambda state: "nonsense",
        lambda state: state[:-1],
        lambda state: "." + state,
        lambda state: signing.dumps({"bound": {}}, salt="another"),
        signed_again(lambda data: data["answers"].clear()),
    ],
    ids=["appended", "empty", "nonsense", "cut", "unpacked", "foreign", "signed_again"],
)
def test_a_state_that_was_not_signed_here_is_refused(caplog, alter: Callable[[str], str]):
    """2026-07-28, basic/patterns/mrtr, "Server Requirements"."""
    ran: list[None] = []

    def run(ctx: Context) -> str:
        ran.append(None)
        return ctx.elicit("Name?", str)

    client = modern(run)
    state = client.tool("it").result["requestState"]
    ran.clear()
    with caplog.at_level(logging.WARNING, "django_mcp.server"):
        answer = call(client, {"elicit-1": accepted(value="x")}, alter(state))
    answer.assert_error(-32602, "requestState is not valid for this request")
    assert not ran
    assert "requestState refused: " in caplog.text
    assert "refused: " not in answer.error["message"]


def test_a_state_that_is_no_text_is_refused():
    call(modern(greet), {}, 5).assert_error(-32602, "params.requestState")


def echo(ctx: Context, a: int = 0, b: int = 0) -> str:
    """Ask."""
    return ctx.elicit("Name?", str)


offers = MCPServer("offers")
offers.tool(name="it")(echo)
offers.tool(name="that")(echo)
offers.prompt(name="it")(echo)


@offers.resource("echo://{name}")
def echo_resource(ctx: Context, name: str) -> str:
    """Ask."""
    return ctx.elicit("Name?", str)


others = MCPServer("others")
others.tool(name="it")(echo)

ORIGIN = {"method": "tools/call", "name": "it", "arguments": {"a": 1, "b": 2}}


def moved(client: MCPClient, **changed: Any) -> Any:
    state = client.request(**ORIGIN).result["requestState"]
    responses = {"elicit-1": accepted(value="x")}
    return {**ORIGIN, "requestState": state, "inputResponses": responses, **changed}


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"name": "that"}, "target"),
        ({"arguments": {"a": 1, "b": 3}}, "arguments"),
        ({"arguments": {"a": 1}}, "arguments"),
        ({"method": "prompts/get", "arguments": {"a": "1", "b": "2"}}, "method, another arguments"),
        ({"method": "resources/read", "uri": "echo://it"}, "method, another target"),
    ],
)
def test_a_state_counts_for_its_own_call_alone(caplog, changed: Any, part: str):
    client = modern(offers)
    client.request(**moved(client, **changed)).assert_error(-32602, "requestState is not valid")
    assert f"it belongs to another {part}" in caplog.text


def test_the_order_of_arguments_does_not_matter():
    client = modern(offers)
    client.request(**moved(client, arguments={"b": 2, "a": 1})).assert_ok()


def test_a_state_counts_for_its_own_principal_and_server_alone(caplog):
    anna, ben = User.objects.create_user("anna"), User.objects.create_user("ben")
    client = modern(offers).as_user(anna, client_id="laptop")
    request = moved(client)
    for stranger in (
        modern(offers).as_user(ben, client_id="laptop"),
        modern(offers).as_user(anna, client_id="phone"),
        modern(offers),
    ):
        caplog.clear()
        stranger.request(**dict(request)).assert_error(-32602, "requestState is not valid")
        assert "it belongs to another principal" in caplog.text
    elsewhere = modern(others).as_user(anna, client_id="laptop")
    elsewhere.request(**dict(request)).assert_error(-32602, "requestState is not valid")
    assert "it belongs to another server" in caplog.text
    client.request(**request).assert_ok()


def test_a_state_expires(caplog, settings, monkeypatch):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STATE_MAX_AGE_SECONDS": 60}
    now = signing.time.time()
    client = modern(greet)
    state = client.tool("it").result["requestState"]
    responses = {"user_name": accepted(name="Ada")}
    monkeypatch.setattr(signing.time, "time", lambda: now + 55)
    call(client, responses, state).assert_ok()
    monkeypatch.setattr(signing.time, "time", lambda: now + 65)
    call(client, responses, state).assert_error(-32602, "requestState is not valid")
    assert "Signature age" in caplog.text


def test_a_state_outlives_a_new_secret_key():
    client = modern(greet)
    state = client.tool("it").result["requestState"]
    responses = {"user_name": accepted(name="Ada")}
    with override_settings(SECRET_KEY="new"):
        call(client, responses, state).assert_error(-32602)
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["for tests only"]):
        call(client, responses, state).assert_ok()


def test_a_retry_after_a_lost_answer_is_served_again():
    client = modern(greet)
    last = client.tool("it")
    for _ in range(2):
        again(client, last, {"user_name": accepted(name="Ada")}).assert_contains("Hello Ada")


# What the function has written


@pytest.mark.parametrize("atomic", [True, False])
def test_what_was_written_before_the_question_is_rolled_back_with_the_savepoint(atomic: bool):
    def write(ctx: Context) -> str:
        Group.objects.create(name="before")
        return ctx.elicit("Name?", str)

    client = modern(write, atomic=atomic)
    client.tool("it")
    assert Group.objects.filter(name="before").exists() == (not atomic)


def test_except_exception_does_not_swallow_a_question():
    def careless(ctx: Context) -> str:
        try:
            return ctx.elicit("Name?", str)
        except Exception:
            return "swallowed"

    assert "elicit-1" in requests_of(modern(careless).tool("it"))


def test_who_catches_base_exceptions_is_told(caplog):
    def reckless(ctx: Context) -> str:
        Group.objects.create(name="after")
        try:
            return ctx.elicit("Name?", str)
        except BaseException:
            return "swallowed"

    modern(reckless).tool("it").assert_failed("The tool failed.")
    assert "Do not catch BaseException around a question" in caplog.text
    assert not Group.objects.filter(name="after").exists()


def test_a_generator_may_ask():
    def yielding(ctx: Context) -> Any:
        yield ctx.elicit("Name?", str)
        yield ctx.elicit("Age?", int)

    client = modern(yielding, answers=["Ada", 36])
    assert client.tool("it").assert_ok().text.startswith('["Ada",36]')


# Prompts and resources


primitives = MCPServer("primitives")


@primitives.prompt
def write_to(ctx: Context, order: int) -> str:
    """Write a letter."""
    return f"Order {order}: {ctx.elicit('In which tone?', str, key='tone')}"


@primitives.resource("letter://{order}", ttl=60)
def letter(ctx: Context, order: int) -> str:
    """Read a letter."""
    if not ctx.elicit("Open it?", bool):
        raise ResourceNotFound
    return f"Letter {order}"


def test_prompts_may_ask():
    client = modern(primitives, answers={"tone": "warm"})
    client.prompt("write_to", order="7").assert_contains("Order 7: warm")
    modern(primitives, answers=[DECLINE]).prompt("write_to", order="7").assert_error(
        -32602, "The user has declined: In which tone?"
    )


def test_resources_may_ask_and_the_question_is_not_to_be_kept():
    question = modern(primitives).read("letter://7").result
    assert question["resultType"] == "input_required"
    assert "ttlMs" not in question
    assert "cacheScope" not in question
    answer = modern(primitives, answers=[True]).read("letter://7")
    answer.assert_contains("Letter 7")
    assert answer.result["ttlMs"] == 60_000
    modern(primitives, answers=[False]).read("letter://7").assert_error(-32602, "not found")


# At the same time


async def gathering(ctx: Context) -> str:
    """Ask in a group of tasks."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(ctx.aelicit("A?", str)),
            group.create_task(ctx.aelicit("B?", int, key="b")),
            group.create_task(ctx.asample("C?", max_tokens=5)),
            group.create_task(ctx.aroots()),
        ]
    first, second, third, fourth = (task.result() for task in tasks)
    return f"{first} {second} {third.content.text} {[str(root.uri) for root in fourth]}"


def test_what_a_group_of_tasks_asks_goes_into_one_round():
    client = modern(gathering, answers=["a", 2, "c", ["file:///d"]])
    requests = requests_of(modern(gathering).tool("it"))
    assert list(requests) == ["elicit-1", "b", "sample-1", "roots-1"]
    client.tool("it").assert_ok().assert_contains("a 2 c ['file:///d']")
    assert len(client.asked) == 4


def test_of_a_group_only_what_is_missing_is_asked_again():
    client = modern(gathering)
    answer = again(
        client,
        client.tool("it"),
        {"elicit-1": accepted(value="a"), "b": accepted(value="?"), "roots-1": {"roots": []}},
    )
    assert requests_of(answer).keys() == {"b", "sample-1"}
    words = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "c"}}
    again(client, answer, {"b": accepted(value=2), "sample-1": words}).assert_contains("a 2 c []")


async def gathering_loosely(ctx: Context) -> str:
    """Ask with gather."""
    return " ".join(await asyncio.gather(ctx.aelicit("A?", str), ctx.aelicit("B?", str)))


def test_what_gather_asks_goes_into_one_round():
    assert len(requests_of(modern(gathering_loosely).tool("it"))) == 2
    modern(gathering_loosely, answers=["a", "b"]).tool("it").assert_contains("a b")


async def failing_beside(ctx: Context) -> str:
    """Fail in one task, ask in another."""

    async def fail() -> None:
        raise ValueError("no")

    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.aelicit("A?", str))
        group.create_task(fail())
    return ""


async def declining_in_a_group(ctx: Context) -> str:
    """Ask in a group of tasks."""
    async with asyncio.TaskGroup() as group:
        first = group.create_task(ctx.aelicit("A?", str))
        second = group.create_task(ctx.aelicit("B?", str))
    return first.result() + second.result()


def test_who_declines_in_a_group_declines():
    client = modern(declining_in_a_group, answers=["a", DECLINE])
    client.tool("it").assert_failed("The user has declined: B?")
    modern(declining_in_a_group, capabilities={}).tool("it").assert_error(-32021)


def test_an_error_beside_a_question_wins(caplog):
    modern(failing_beside).tool("it").assert_failed("The tool failed.")
    assert "ValueError: no" in caplog.text


def test_one_error_of_a_group_is_that_error():
    server = MCPServer("grouping")

    async def miss() -> None:
        raise ResourceNotFound

    @server.resource("note://it")
    async def note() -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(miss())
        return ""

    modern(server).read("note://it").assert_error(-32602, "Resource not found")


async def asking_in_vain(ctx: Context) -> str:
    """Ask, and go on."""
    await asyncio.gather(ctx.aelicit("A?", str), return_exceptions=True)
    return "went on"


def test_who_goes_on_without_the_answer_is_told(caplog):
    modern(asking_in_vain).tool("it").assert_failed("The tool failed.")
    assert "await every task that asks one" in caplog.text


# Keys


def test_keys_follow_the_order_of_each_kind():
    async def ask(ctx: Context) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.aelicit("A?"))
            group.create_task(ctx.aroots())
            group.create_task(ctx.aelicit("B?", key="mine"))
            group.create_task(ctx.aelicit("C?"))
            group.create_task(ctx.aelicit_url("D?", "https://example.com/"))
        return ""

    keys = list(requests_of(modern(ask).tool("it")))
    assert keys == ["elicit-1", "roots-1", "mine", "elicit-3", "elicit-url-1"]


def test_a_key_is_used_once(caplog):
    def ask(ctx: Context) -> str:
        ctx.elicit("A?", key="same", fallback=None)
        return ctx.elicit("B?", str, key="same")

    modern(ask, capabilities={}).tool("it").assert_failed("The tool failed.")
    assert "Two questions of this call have the key 'same'" in caplog.text


def test_the_raw_answers_are_at_hand():
    def look(ctx: Context) -> str:
        return str(ctx.input_responses)

    client = modern(look)
    assert call(client, {"a": 1, "b": None}).text == "{'a': 1, 'b': None}"
    assert call(client, [1]).text == "{}"
    assert client.tool("it").text == "{}"


# Who cannot be asked


def test_who_has_not_declared_it_gets_the_error_of_the_protocol():
    answer = modern(greet, capabilities={"sampling": {}}).tool("it")
    answer.assert_error(-32021, "elicitation.form")
    assert answer.http.status_code == 400
    assert answer.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    prompt = modern(primitives, capabilities={}).prompt("write_to", order="7")
    prompt.assert_error(-32021)
    modern(primitives, capabilities={}).read("letter://7").assert_error(-32021)


@pytest.mark.parametrize(
    ("declared", "form", "url"),
    [
        ({}, True, False),
        ({"form": {}}, True, False),
        ({"url": {}}, False, True),
        ({"form": {}, "url": {}}, True, True),
        ({"form": {}, "url": None}, True, False),
        (None, False, False),
    ],
    ids=str,
)
def test_each_mode_has_its_capability(declared: Any, form: bool, url: bool):
    """2026-07-28, client/elicitation, "Capabilities"."""

    def ask(ctx: Context, url: bool) -> str:
        if url:
            return ctx.elicit_url("Go there", "https://example.com/")
        return ctx.elicit("Name?", str)

    client = modern(ask, capabilities={"elicitation": declared})
    for mode, allowed in (("form", form), ("url", url)):
        answer = client.tool("it", url=mode == "url")
        if allowed:
            (request,) = requests_of(answer).values()
            assert request["params"]["mode"] == mode
        else:
            answer.assert_error(-32021, f"elicitation.{mode}")


def test_a_fallback_is_the_answer_of_who_cannot_be_asked():

    def ask(ctx: Context) -> str:
        return repr(ctx.elicit("Name?", str, fallback=None))

    assert modern(ask, capabilities={}).tool("it").assert_ok().text == "None"
    modern(ask, answers=["x"]).tool("it").assert_contains("'x'")
    modern(ask, answers=[DECLINE]).tool("it").assert_failed("declined")


def test_a_function_may_ask_otherwise():
    def ask(ctx: Context) -> str:
        if "elicitation" in ctx.client_capabilities:
            return ctx.elicit("Name?", str)
        return ctx.sample("Make up a name", max_tokens=5).content.text

    requests = requests_of(modern(ask, capabilities={"sampling": {}}).tool("it"))
    assert [each["method"] for each in requests.values()] == ["sampling/createMessage"]


# A page to visit


def visit(ctx: Context) -> str:
    """Send the user somewhere."""
    ctx.elicit_url("Connect the account", "https://shop.example/connect?order=7")
    return "sent"


def test_a_page_to_visit_has_no_id_and_is_the_same_question_each_time():
    client = modern(visit)
    answer = client.tool("it")
    assert requests_of(answer)["elicit-url-1"]["params"] == {
        "mode": "url",
        "message": "Connect the account",
        "url": "https://shop.example/connect?order=7",
    }
    again(client, answer, {"elicit-url-1": {"action": "accept"}}).assert_contains("sent")
    modern(visit, answers=[DECLINE]).tool("it").assert_failed("declined: Connect the account")


@pytest.mark.parametrize(
    "url", ["/connect", "connect", "javascript:alert(1)", "ftp://example.com/", "https:///x", ""]
)
def test_a_page_to_visit_has_a_full_address(caplog, url: str):
    def ask(ctx: Context) -> str:
        return ctx.elicit_url("Go", url)

    modern(ask).tool("it").assert_failed("The tool failed.")
    assert "build_absolute_uri" in caplog.text


def test_nothing_is_told_of_what_is_completed():
    def complete(ctx: Context) -> str:
        ctx.elicitation_completed("1")
        return "told"

    modern(complete).tool("it").assert_ok()


def test_where_nothing_can_be_asked_state_and_answers_are_ignored():
    answer = modern(greet).request("tools/list", requestState="any", inputResponses={"a": 1})
    assert answer.result["resultType"] == "complete"
