"""What servers ask: answered by the same functions in both eras, and refused where none is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from mcp_types import CreateMessageResult, ElicitResult, TextContent
from pydantic import BaseModel

from django_mcp.client import Limits, RemoteError, TooManyQuestions, UnexpectedAnswer

from .scripted import LegacyServer, ModernServer, Reply, Seen, Stream, as_json, as_stream, text

FORM = {
    "message": "Which table?",
    "requestedSchema": {
        "type": "object",
        "properties": {"table": {"type": "integer"}, "wine": {"type": "boolean", "default": True}},
    },
}
PAGE = {"mode": "url", "message": "Please pay.", "url": "https://pay.example/7"}
SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Why?"}}],
    "maxTokens": 10,
}
ANSWER = CreateMessageResult(role="assistant", content=TextContent(text="Because."), model="m")


class Table(BaseModel):
    table: int


async def ask_in_session(method: str, params: Any, **options: Any) -> dict[str, Any]:
    """Have a server of the legacy era ask within a call; return the response."""
    server, stream = LegacyServer(), Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client(**options) as client:
        call = asyncio.create_task(client.call_tool("book"))
        seen = await server.arrived("tools/call")
        stream.send({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})
        answer = await server.arrived("response")
        stream.send(seen.result(text("booked")))
        await call
    assert answer.id == "q"
    message: dict[str, Any] = answer.message
    return message


async def ask_in_result(method: str, params: Any, **options: Any) -> Any:
    """Have a modern server ask by its result; return the answer."""
    server = ModernServer()

    def call(seen: Seen) -> Reply:
        if "inputResponses" in seen.params:
            return as_json(seen.result(text("booked")))
        asked = {"q": {"method": method, "params": params}}
        return as_json(seen.result({"resultType": "input_required", "inputRequests": asked}))

    server.handlers["tools/call"] = call
    async with server.client(**options) as client:
        await client.call_tool("book")
    first, second = server.of("tools/call")
    assert first.id != second.id
    assert "requestState" not in second.params
    return second.params["inputResponses"]["q"]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"table": 7}, {"action": "accept", "content": {"table": 7, "wine": True}}),
        ({"table": 7, "wine": False}, {"action": "accept", "content": {"table": 7, "wine": False}}),
        (Table(table=7), {"action": "accept", "content": {"table": 7, "wine": True}}),
        (None, {"action": "decline"}),
        (ElicitResult(action="cancel"), {"action": "cancel"}),
    ],
)
async def test_a_form_is_answered(given: Any, sent: Any) -> None:
    def fill_in(form: Any) -> Any:
        assert form.message == "Which table?"
        return given

    assert (await ask_in_session("elicitation/create", FORM, on_elicit=fill_in))["result"] == sent
    assert await ask_in_result("elicitation/create", FORM, on_elicit=fill_in) == sent


@pytest.mark.parametrize(("given", "action"), [(True, "accept"), (False, "decline")])
async def test_a_page_is_consented_to(given: bool, action: str) -> None:
    async def visit(page: Any) -> bool:
        assert page.url == PAGE["url"]
        return given

    answer = await ask_in_session("elicitation/create", PAGE, on_elicit_url=visit)
    assert answer["result"] == {"action": action}
    assert await ask_in_result("elicitation/create", PAGE, on_elicit_url=visit) == {
        "action": action
    }


async def test_the_model_is_asked() -> None:
    async def sample(asked: Any) -> CreateMessageResult:
        assert asked.max_tokens == 10
        return ANSWER

    sent = ANSWER.model_dump(mode="json", by_alias=True, exclude_none=True)
    answer = await ask_in_session("sampling/createMessage", SAMPLE, on_sample=sample)
    assert answer["result"] == sent
    assert await ask_in_result("sampling/createMessage", SAMPLE, on_sample=sample) == sent


@pytest.mark.parametrize("roots", [["file:///work"], lambda: ["file:///work"]])
async def test_roots_are_listed(roots: Any) -> None:
    sent = {"roots": [{"uri": "file:///work"}]}
    assert (await ask_in_session("roots/list", {}, roots=roots))["result"] == sent
    assert await ask_in_result("roots/list", {}, roots=roots) == sent


async def test_pings_are_answered() -> None:
    assert (await ask_in_session("ping", {}))["result"] == {}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("elicitation/create", FORM),
        ("elicitation/create", PAGE),
        ("sampling/createMessage", SAMPLE),
        ("roots/list", {}),
        ("tasks/list", {}),
    ],
)
async def test_what_was_not_declared_is_refused(method: str, params: Any) -> None:
    assert (await ask_in_session(method, params))["error"]["code"] == -32601
    with pytest.raises(UnexpectedAnswer, match="cannot be answered"):
        await ask_in_result(method, params)


@pytest.mark.parametrize("mode", [FORM, PAGE])
async def test_one_mode_does_not_stand_for_the_other(mode: Any) -> None:
    other = "on_elicit" if mode is PAGE else "on_elicit_url"
    answer = await ask_in_session("elicitation/create", mode, **{other: lambda asked: True})
    assert answer["error"]["code"] == -32601


async def test_only_what_has_a_function_is_declared() -> None:
    server = ModernServer()
    everything = {
        "on_elicit": print,
        "on_elicit_url": print,
        "on_sample": print,
        "sampling_tools": True,
        "roots": [],
    }
    for options in ({}, {"on_elicit": print}, everything):
        async with server.client(**options):
            pass
    key = "io.modelcontextprotocol/clientCapabilities"
    assert [seen.params["_meta"][key] for seen in server.of("server/discover")] == [
        {},
        {"elicitation": {"form": {}}},
        {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}},
    ]


async def test_a_function_that_fails_is_an_error_for_the_server() -> None:
    def fail(form: Any) -> None:
        raise LookupError("the password is 1234")

    error = (await ask_in_session("elicitation/create", FORM, on_elicit=fail))["error"]
    assert error["code"] == -32603
    assert "1234" not in error["message"]


async def test_and_for_the_caller_where_the_server_cannot_be_told() -> None:
    def fail(form: Any) -> None:
        raise LookupError("no table")

    with pytest.raises(LookupError, match="no table"):
        await ask_in_result("elicitation/create", FORM, on_elicit=fail)


async def test_a_question_that_is_none_is_refused() -> None:
    answer = await ask_in_session("elicitation/create", {"message": 7}, on_elicit=print)
    assert answer["error"]["code"] == -32602


async def test_answers_go_out_while_other_calls_run() -> None:
    """Also in another order than the questions came in."""
    server, streams = LegacyServer(), {}
    gates = {name: asyncio.Event() for name in ("one", "two")}

    def call(seen: Seen) -> Reply:
        streams[seen.params["name"]] = Stream()
        return as_stream(streams[seen.params["name"]])

    async def fill_in(form: Any) -> dict[str, Any]:
        await gates[form.message].wait()
        return {"name": form.message}

    server.handlers["tools/call"] = call
    async with server.client(on_elicit=fill_in) as client:
        calls = [asyncio.create_task(client.call_tool(name)) for name in gates]
        await server.arrived("tools/call", 2)
        for number, name in enumerate(gates):
            params = {**FORM, "message": name}
            question = {"id": number, "method": "elicitation/create", "params": params}
            streams[name].send({"jsonrpc": "2.0", **question})
        for count, name in enumerate(reversed(gates), start=1):
            gates[name].set()
            answer = await server.arrived("response", count)
            assert answer.message["result"]["content"]["name"] == name
        for seen in server.of("tools/call"):
            streams[seen.params["name"]].send(seen.result(text("done")))
        await asyncio.gather(*calls)


@pytest.mark.parametrize("failures", ["lost", "busy", "lost busy lost"])
async def test_an_answer_that_may_not_have_arrived_is_sent_again(failures: str) -> None:
    server, stream = LegacyServer(), Stream()
    replies = iter(failures.split())

    def take(seen: Seen) -> Reply:
        match next(replies, "taken"):
            case "lost":
                raise httpx.ReadError("The status line is lost")
            case "busy":
                return httpx.Response(503, headers={"Retry-After": "0"})
        return httpx.Response(202)

    server.handlers |= {"tools/call": lambda seen: as_stream(stream), "response": take}
    async with server.client(on_elicit=lambda form: {"table": 7}) as client:
        call = asyncio.create_task(client.call_tool("book"))
        seen = await server.arrived("tools/call")
        stream.send({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": FORM})
        await server.arrived("response", len(failures.split()) + 1)
        stream.send(seen.result(text("done")))
        await call
    assert len({str(each.message) for each in server.of("response")}) == 1


def thinking() -> tuple[Callable[[Any], Awaitable[None]], asyncio.Event, asyncio.Event]:
    """Return a handler that never answers, and what says that it was asked, and cancelled."""
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def think(form: Any) -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    return think, asked, cancelled


async def test_a_question_that_is_withdrawn_is_not_answered() -> None:
    server, stream = LegacyServer(), Stream()
    think, asked, cancelled = thinking()

    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client(on_elicit=think) as client:
        call = asyncio.create_task(client.call_tool("book"))
        seen = await server.arrived("tools/call")
        question = {"id": 7, "method": "elicitation/create", "params": FORM}
        stream.send({"jsonrpc": "2.0", **question})
        await asked.wait()
        withdrawal = {"method": "notifications/cancelled", "params": {"requestId": 7}}
        stream.send({"jsonrpc": "2.0", **withdrawal})
        await cancelled.wait()
        stream.send(seen.result(text("done")))
        await call
    assert server.count("response") == 0


async def test_a_question_ends_with_the_call_that_asked_it() -> None:
    server, stream = LegacyServer(), Stream()
    think, asked, cancelled = thinking()

    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client(on_elicit=think) as client:
        call = asyncio.create_task(client.call_tool("book"))
        await server.arrived("tools/call")
        stream.send({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": FORM})
        await asked.wait()
        call.cancel()
        await cancelled.wait()


# Rounds


async def test_each_round_has_its_own_id_state_and_answers() -> None:
    server = ModernServer()

    def call(seen: Seen) -> Reply:
        number = server.count("tools/call")
        if number == 4:
            return as_json(seen.result(text("done")))
        asked = {f"q{number}": {"method": "elicitation/create", "params": FORM}}
        state = {} if number == 2 else {"requestState": f"state {number}"}
        kind = {"resultType": "input_required", **state}
        return as_json(seen.result({**kind, **({} if number == 3 else {"inputRequests": asked})}))

    server.handlers["tools/call"] = call
    async with server.client(on_elicit=lambda form: {"table": 7}) as client:
        await client.call_tool("book", {"day": "Monday"})
    rounds = server.of("tools/call")
    assert len({seen.id for seen in rounds}) == 4
    assert [seen.params.get("requestState") for seen in rounds] == [
        None,
        "state 1",
        None,
        "state 3",
    ]
    answered = [list(seen.params.get("inputResponses", {})) for seen in rounds]
    assert answered == [[], ["q1"], ["q2"], []]
    assert {seen.params["arguments"]["day"] for seen in rounds} == {"Monday"}


async def test_the_rounds_have_an_end() -> None:
    server = ModernServer()
    again = {"resultType": "input_required", "requestState": "again"}
    server.handlers["tools/call"] = lambda seen: as_json(seen.result(again))
    async with server.client(limits=Limits(rounds=3)) as client:
        with pytest.raises(TooManyQuestions):
            await client.call_tool("book")
    assert server.count("tools/call") == 4


@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "task"},
        {"resultType": "input_required", "inputRequests": []},
        {"resultType": "input_required", "inputRequests": {"q": 7}},
        {"resultType": "input_required", "inputRequests": {"q": {"method": "ping", "params": 7}}},
        {"resultType": "input_required", "requestState": 7},
    ],
)
async def test_results_that_cannot_be_meant_are_refused(result: Any) -> None:
    server = ModernServer()
    server.handlers["tools/call"] = lambda seen: as_json(seen.result(result))
    async with server.client(limits=Limits(rounds=1)) as client:
        with pytest.raises((UnexpectedAnswer, TooManyQuestions)):
            await client.call_tool("book")


async def test_an_error_of_the_server_is_raised_with_its_code() -> None:
    server = ModernServer()
    server.handlers["tools/call"] = lambda seen: as_json(
        seen.error(-32021, data={"requiredCapabilities": ["sampling"]}), 400
    )
    async with server.client() as client:
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("book")
    assert caught.value.code == -32021


async def test_so_many_questions_are_worked_on_at_once_and_no_more() -> None:
    server, stream, asked = LegacyServer(), Stream(), []
    gate = asyncio.Event()

    async def think(form: Any) -> dict[str, Any]:
        asked.append(form)
        await gate.wait()
        return {}

    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client(on_elicit=think, limits=Limits(questions=2)) as client:
        call = asyncio.create_task(client.call_tool("book"))
        seen = await server.arrived("tools/call")
        for number in range(5):
            question = {"id": number, "method": "elicitation/create", "params": FORM}
            stream.send({"jsonrpc": "2.0", **question})
        while len(asked) < 2:
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(asked) == 2
        gate.set()
        await server.arrived("response", 5)
        stream.send(seen.result(text("done")))
        await call
    assert len(asked) == 5


@pytest.mark.parametrize("kind", [LegacyServer, ModernServer])
async def test_a_function_that_only_listens_ends_no_call(
    kind: type[LegacyServer], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: Any) -> None:
        raise LookupError("of the listener")

    server, stream = kind(), Stream()
    server.handlers |= {
        "tools/call": lambda seen: as_stream(stream),
        "GET": lambda seen: as_stream(Stream()),
    }
    async with server.client(on_log=fail) as client:
        call = asyncio.create_task(client.call_tool("book", on_progress=fail))
        seen = await server.arrived("tools/call")
        notices = {
            "notifications/message": {"level": "info", "data": "x"},
            "notifications/progress": {"progressToken": seen.id, "progress": 1},
        }
        for method, params in notices.items():
            stream.send({"jsonrpc": "2.0", "method": method, "params": params})
        stream.send(seen.result(text("done")))
        assert (await call).content[0].text == "done"
    assert caplog.text.count("LookupError: of the listener") == 2
