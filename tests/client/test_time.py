"""Every call ends in time, and who ends it tells the server."""

from __future__ import annotations

import asyncio
import itertools
import pickle
from typing import Any

import httpx
import pytest

from django_mcp.client import (
    AuthenticationFailed,
    CallTimedOut,
    Change,
    Client,
    ClientClosed,
    ClientError,
    ConnectionFailed,
    Limits,
    NotProcessed,
    OutcomeUnknown,
    RemoteError,
    ServerBusy,
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
    as_json,
    as_stream,
    text,
)

SHORT = 0.05
"""The time-out of calls that are to run into it."""


def progress(seen: Seen, value: float) -> dict[str, Any]:
    params = {"progressToken": seen.params["_meta"]["progressToken"], "progress": value}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


async def test_a_call_that_takes_too_long_is_called_off_in_a_session() -> None:
    server, stream = LegacyServer(), Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client() as client:
        with pytest.raises(CallTimedOut) as caught:
            await client.call_tool("pay", timeout=SHORT)
        assert isinstance(caught.value, TimeoutError)
        notice = await server.arrived("notifications/cancelled")
    assert notice.params["requestId"] == server.of("tools/call")[0].id


async def test_without_a_session_the_stream_is_closed() -> None:
    server, stream = ModernServer(), Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client() as client:
        with pytest.raises(CallTimedOut):
            await client.call_tool("pay", timeout=SHORT)
        assert stream.closed.is_set()
    assert server.count("notifications/cancelled") == 0


async def test_a_caller_who_is_cancelled_calls_off_too() -> None:
    server, stream = LegacyServer(), Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client() as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await server.arrived("notifications/cancelled")
        assert stream.closed.is_set()


async def test_a_silent_server_ends_no_wait_but_the_time_does(server: Server) -> None:
    """Not before the first byte either: the default is a time-out, not eternity."""
    silence = asyncio.Event()

    async def silent(seen: Seen) -> Reply:
        await silence.wait()
        raise AssertionError

    server.handlers["tools/list"] = silent
    async with server.client(timeout=SHORT) as client:
        with pytest.raises(CallTimedOut):
            await client.list_tools()


async def test_a_silent_server_cannot_be_opened() -> None:
    server = Server()

    async def silent(seen: Seen) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError

    server.handlers["server/discover"] = silent
    with pytest.raises(CallTimedOut):
        await server.client(timeout=SHORT).open()


async def test_progress_may_extend_the_time_and_the_maximum_ends_it(server: Server) -> None:
    stream, heard = Stream(), []
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    loop = asyncio.get_running_loop()
    async with server.client(limits=Limits(max_timeout=1.0)) as client:
        begun = loop.time()
        call = asyncio.create_task(
            client.call_tool(
                "pay",
                timeout=0.4,
                on_progress=lambda done, total, message: heard.append(done),
                progress_extends=True,
            )
        )
        seen = await server.arrived("tools/call")
        value = 0
        while not call.done():
            value += 1
            stream.send(progress(seen, value))
            await asyncio.sleep(0.05)
        with pytest.raises(CallTimedOut):
            await call
        assert 0.9 <= loop.time() - begun < 5
        assert heard == sorted(heard)


async def test_progress_is_reported_as_it_grows(server: Server) -> None:
    stream, heard = Stream(), []
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client() as client:
        call = asyncio.create_task(
            client.call_tool("pay", on_progress=lambda *given: heard.append(given))
        )
        seen = await server.arrived("tools/call")
        for value in (1, 2, 2, 1.5, 3):
            stream.send(progress(seen, value))
        stream.send({**progress(seen, 9), "params": {"progressToken": "other", "progress": 9}})
        stream.send(seen.result(text("done")))
        await call
    assert [done for done, total, message in heard] == [1, 2, 3]


async def test_the_time_of_a_handler_does_not_count() -> None:
    server, stream = LegacyServer(), Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)

    async def think(form: Any) -> dict[str, Any]:
        await asyncio.sleep(0.7)
        return {}

    params = {"message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}
    question = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}
    async with server.client(on_elicit=think) as client:
        call = asyncio.create_task(client.call_tool("pay", timeout=0.5))
        seen = await server.arrived("tools/call")
        stream.send(question)
        await server.arrived("response")
        stream.send(seen.result(text("done")))
        await call


@pytest.mark.parametrize("said", ["progress", "message"])
async def test_but_a_server_gets_no_more_time_for_what_it_says(server: Server, said: str) -> None:
    stream = Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client(on_log=lambda each: None) as client:
        call = asyncio.create_task(
            client.call_tool("pay", timeout=4 * SHORT, on_progress=lambda *each: None)
        )
        seen = await server.arrived("tools/call")
        for value in itertools.count():
            if call.done():
                break
            log = {"method": "notifications/message", "params": {"level": "info", "data": value}}
            stream.send(progress(seen, value) if said == "progress" else {"jsonrpc": "2.0", **log})
            await asyncio.sleep(0.005)
        with pytest.raises(CallTimedOut):
            await call


async def test_closing_ends_the_calls_that_run(server: Server) -> None:
    server.handlers["tools/call"] = lambda seen: as_stream(Stream())
    client = server.client()
    async with client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
    with pytest.raises(ClientClosed) as closed:
        await call
    # Repeating it may not be safe.
    assert not isinstance(closed.value, NotProcessed)
    with pytest.raises(ClientClosed):
        await client.call_tool("pay")
    assert server.count("notifications/cancelled") == 0


async def test_closing_ends_the_iterators_of_changes(server: Server) -> None:
    """Of those that wait for a change, and of those that do not yet."""
    streams = listening(server)
    client = server.client()
    await client.open()
    begun = asyncio.Event()

    async def hear() -> list[Change]:
        heard = []
        async with client.listen(tools=True) as changes:
            begun.set()
            async for change in changes:
                heard.append(change)
        return heard

    hearing = asyncio.create_task(hear())
    await begun.wait()
    async with client.listen(tools=True) as late:
        await client.close()
        assert await hearing == []
        with pytest.raises(EOFError):
            await late.next(1)
    assert streams
    with pytest.raises(ClientClosed):
        async with client.listen(tools=True):
            pass


async def test_what_was_told_before_is_read_after_closing(server: Server) -> None:
    streams = listening(server)
    client = server.client()
    async with client, client.listen(tools=True, prompts=True) as changes:
        for kind in ("tools", "prompts"):
            method = f"notifications/{kind}/list_changed"
            streams[-1].send({"jsonrpc": "2.0", "method": method, "params": {}})
        assert await changes.next(5) == Change("tools")
        await client.close()
        assert [change async for change in changes] == [Change("prompts")]


def listening(server: Server) -> list[Stream]:
    """Have a server that tells of changes; return the streams on which it does."""
    streams: list[Stream] = []

    def listen(seen: Seen) -> Reply:
        agreed = {"notifications": {"toolsListChanged": True}}
        method = "notifications/subscriptions/acknowledged"
        streams.append(Stream({"jsonrpc": "2.0", "method": method, "params": agreed}))
        return as_stream(streams[-1])

    server.handlers |= {"subscriptions/listen": listen, "GET": listen}
    return streams


async def test_a_closed_client_may_be_opened_again(server: Server) -> None:
    server.handlers["tools/list"] = lambda seen: as_json(seen.result({"tools": []}))
    client = server.client()
    for _ in range(2):
        async with client:
            assert await client.list_tools() == []


# What the server did not take up


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_again(server: Server, status: int) -> None:
    replies = iter([httpx.Response(status, headers={"Retry-After": "0"})])
    server.handlers["tools/call"] = lambda seen: next(replies, as_json(seen.result(text("done"))))
    async with server.client() as client:
        assert (await client.call_tool("pay")).content[0].text == "done"
    assert server.count("tools/call") == 2


async def test_not_if_that_would_take_longer_than_the_call_may(server: Server) -> None:
    server.handlers["tools/call"] = lambda seen: httpx.Response(503, headers={"Retry-After": "90"})
    async with server.client(timeout=60) as client:
        with pytest.raises(ServerBusy) as caught:
            await client.call_tool("pay")
    assert caught.value.retry_after == 90
    assert server.count("tools/call") == 1


async def test_not_for_ever(server: Server) -> None:
    server.handlers["tools/call"] = lambda seen: httpx.Response(503, headers={"Retry-After": "0"})
    async with server.client(limits=Limits(retries=3)) as client:
        with pytest.raises(ServerBusy):
            await client.call_tool("pay")
    assert server.count("tools/call") == 4


async def test_a_repetition_that_is_not_taken_up_says_nothing_of_the_first_attempt(
    server: Server,
) -> None:
    def answer(seen: Seen) -> httpx.Response:
        if server.count("tools/call") == 1:
            raise httpx.ReadError("The answer is lost")
        return httpx.Response(503, headers={"Retry-After": "0"})

    server.handlers["tools/call"] = answer
    async with server.client(limits=Limits(retries=1)) as client:
        with pytest.raises(OutcomeUnknown):
            await client.call_tool("pay", idempotent=True)
    assert server.count("tools/call") == 3


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_a_failure_that_may_have_run_is_repeated_only_where_safe(
    server: Server, status: int
) -> None:
    server.handlers |= {
        "tools/call": lambda seen: httpx.Response(status),
        "tools/list": lambda seen: httpx.Response(status),
    }
    async with server.client() as client:
        with pytest.raises(OutcomeUnknown):
            await client.call_tool("pay")
        with pytest.raises(OutcomeUnknown):
            await client.list_tools()
    assert server.count("tools/call") == 1
    assert server.count("tools/list") == 2


async def test_a_connection_that_fails_has_sent_nothing(server: Server) -> None:
    def refuse(seen: Seen) -> Reply:
        if server.count("tools/call") == 1:
            raise httpx.ConnectError("refused")
        return as_json(seen.result(text("done")))

    server.handlers["tools/call"] = refuse
    async with server.client() as client:
        assert (await client.call_tool("pay")).content[0].text == "done"


async def test_nobody_listens_there() -> None:
    with pytest.raises(ConnectionFailed):
        await Client("http://127.0.0.1:9/mcp", limits=HASTY).open()


@pytest.mark.parametrize(
    "error",
    [
        RemoteError(-32602, "No such order", {"id": 7}),
        CallTimedOut("tools/call", 1.5),
        ServerBusy("The server said 503", retry_after=3.0),
        AuthenticationFailed("The server said 401", 401),
        UnexpectedAnswer("The server said 418, with nothing", 418),
        OutcomeUnknown("The connection broke"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_travel_between_processes(error: ClientError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
