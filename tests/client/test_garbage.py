"""Answers that are none: each ends in an error that says what came, and nobody waits."""

from __future__ import annotations

import asyncio
import gzip
import logging
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_mcp.client import (
    ClientError,
    Limits,
    MessageTooLarge,
    OutcomeUnknown,
    RemoteError,
    UnexpectedAnswer,
)

from .scripted import (
    HASTY,
    LegacyServer,
    ModernServer,
    Reply,
    Seen,
    Server,
    Stream,
    as_bytes,
    as_json,
    as_stream,
    text,
)

SMALL = 10_000

ANSWERS: dict[str, tuple[Any, type[ClientError]]] = {
    "a page instead of an answer": (
        lambda seen: as_bytes(b"<html>Welcome</html>", "text/html"),
        UnexpectedAnswer,
    ),
    "a page of a proxy's": (
        lambda seen: as_bytes(b"<html>Bad gateway</html>", "text/html", 502),
        OutcomeUnknown,
    ),
    "a page that refuses": (
        lambda seen: as_bytes(b"<html>No</html>", "text/html", 418),
        UnexpectedAnswer,
    ),
    "no content": (lambda seen: httpx.Response(204), UnexpectedAnswer),
    "truncated JSON": (
        lambda seen: as_bytes(b'{"jsonrpc": "2.0", "id', "application/json"),
        UnexpectedAnswer,
    ),
    "nothing, as JSON": (lambda seen: as_bytes(b"", "application/json"), UnexpectedAnswer),
    "no UTF-8": (lambda seen: as_bytes(b'"\xff"', "application/json"), UnexpectedAnswer),
    "a scalar": (lambda seen: as_bytes(b"7", "application/json"), UnexpectedAnswer),
    "an empty array": (lambda seen: as_json([]), UnexpectedAnswer),
    "another id": (lambda seen: as_json({**seen.result({}), "id": 999}), UnexpectedAnswer),
    "the id as a string": (
        lambda seen: as_json({**seen.result({}), "id": str(seen.id)}),
        UnexpectedAnswer,
    ),
    "no id": (lambda seen: as_json({"jsonrpc": "2.0", "result": {}}), UnexpectedAnswer),
    "a request": (
        lambda seen: as_json({"jsonrpc": "2.0", "id": seen.id, "method": "ping"}),
        UnexpectedAnswer,
    ),
    "both": (
        lambda seen: as_json({**seen.result({}), "error": {"code": 1, "message": ""}}),
        UnexpectedAnswer,
    ),
    "an error of the wrong shape": (
        lambda seen: as_json({"jsonrpc": "2.0", "id": seen.id, "error": {"code": "x"}}),
        UnexpectedAnswer,
    ),
    "a result of the wrong shape": (
        lambda seen: as_json(seen.result({"content": "none"})),
        UnexpectedAnswer,
    ),
    "a result that is no object": (lambda seen: as_json(seen.result([])), UnexpectedAnswer),
    "nesting without end": (
        lambda seen: as_bytes(b"[" * 5000 + b"]" * 5000, "application/json"),
        UnexpectedAnswer,
    ),
    "a huge body": (lambda seen: as_json(seen.result(text("x" * SMALL))), MessageTooLarge),
    "a bomb": (
        lambda seen: as_bytes(
            gzip.compress(b"x" * SMALL), "application/json", **{"Content-Encoding": "gzip"}
        ),
        UnexpectedAnswer,
    ),
    "an error whose id is null": (
        lambda seen: as_json({**seen.error(-32600), "id": None}, 400),
        RemoteError,
    ),
}


@pytest.mark.parametrize(("answer", "error"), ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_that_is_none_is_an_error(
    server: Server, answer: Any, error: type[ClientError]
) -> None:
    server.handlers["tools/call"] = answer
    async with server.client(limits=Limits(message_bytes=SMALL, backoff=0)) as client:
        with pytest.raises(error):
            await client.call_tool("pay")
    assert server.count("tools/call") == 1


EVENTS: dict[str, bytes] = {
    "no JSON": b"data: {oops\n\n",
    "truncated JSON": b'data: {"jsonrpc": "2.0", \n\n',
    "no event at all": b"<html>\n\n</html>\n\n",
    "a scalar": b"data: 7\n\n",
    "no UTF-8": b'data: "\xff\xfe"\n\n',
    "odd fields": b"data\nid\nretry: soon\nevent: odd\nwhat: ever\n:\n\n",
    "a batch of nothing": b"data: []\n\n",
    "half an event": b'data: {"jsonrpc": "2.0", "id": 1, "result": {}}\n',
}


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS)
@pytest.mark.parametrize("ends", [True, False])
async def test_events_that_are_none_are_left_out(server: Server, events: bytes, ends: bool) -> None:
    stream = Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client() as client:
        call = asyncio.create_task(client.call_tool("pay"))
        seen = await server.arrived("tools/call")
        stream.write(events)
        if ends:
            stream.end()
            with pytest.raises(OutcomeUnknown):
                await call
        else:
            stream.write(b"\n")
            stream.send(seen.result(text("done")))
            assert (await call).content[0].text == "done"


async def test_an_event_without_end_is_too_large(server: Server) -> None:
    stream = Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    limits = Limits(message_bytes=SMALL, backoff=0)
    async with server.client(limits=limits) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
        stream.write(b"data: " + b"x" * (SMALL // 2))
        stream.write(b"x" * SMALL)
        with pytest.raises(MessageTooLarge):
            await call
        assert stream.closed.is_set()


async def test_many_lines_without_end_are_too_large(server: Server) -> None:
    stream = Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    limits = Limits(message_bytes=SMALL, backoff=0)
    async with server.client(limits=limits) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
        stream.write(b"data: x\n" * SMALL)
        with pytest.raises(MessageTooLarge):
            await call


async def test_somebody_elses_answer_is_dropped_and_logged(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    streams: list[Stream] = []

    def call(seen: Seen) -> Reply:
        streams.append(Stream())
        return as_stream(streams[-1])

    server.handlers["tools/call"] = call
    with caplog.at_level(logging.WARNING, "django_mcp.client"):
        async with server.client() as client:
            calls = [asyncio.create_task(client.call_tool("pay")) for _ in range(2)]
            await server.arrived("tools/call", 2)
            seen = server.of("tools/call")
            streams[0].send(seen[1].result(text("wrong")))
            for stream, each in zip(streams, seen, strict=True):
                stream.send(each.result(text(f"for {each.id}")))
            answers = [(await each).content[0].text for each in calls]
    assert answers == [f"for {each.id}" for each in seen]
    assert "Dropped a response" in caplog.text


async def test_a_modern_server_has_no_requests(caplog: pytest.LogCaptureFixture) -> None:
    server, stream = ModernServer(), Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client(on_elicit=print) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        seen = await server.arrived("tools/call")
        stream.send({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}})
        stream.send(seen.result(text("done")))
        await call
    assert server.count("response") == 0
    assert "Ignored elicitation/create" in caplog.text


async def test_a_batch_holds_the_answer_too() -> None:
    server = LegacyServer(revision="2025-03-26")
    server.handlers["tools/call"] = lambda seen: as_json([seen.result(text("done"))])
    async with server.client() as client:
        assert (await client.call_tool("pay")).content[0].text == "done"


@pytest.mark.parametrize("session", ["a b", "ü", "x" * 2000])
async def test_a_session_id_that_is_none_is_refused(session: str) -> None:
    server = LegacyServer()

    def initialize(seen: Seen) -> Reply:
        reply = LegacyServer.initialize(server, seen)
        reply.headers["mcp-session-id"] = session
        return reply

    server.handlers["initialize"] = initialize
    with pytest.raises(UnexpectedAnswer):
        await server.client(limits=HASTY).open()


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=200), content_type=st.sampled_from(["json", "event-stream"]))
def test_no_bytes_whatever_break_it(body: bytes, content_type: str) -> None:
    async def main() -> None:
        server = ModernServer()
        kind = "application/json" if content_type == "json" else "text/event-stream"
        server.handlers["tools/call"] = lambda seen: as_bytes(body, kind)
        async with asyncio.timeout(10), server.client() as client:
            with pytest.raises(ClientError):
                await client.call_tool("pay")

    asyncio.run(main())
