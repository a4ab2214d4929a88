"""Streams that break: resumed from the last event, within bounds, each message once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest

from django_mcp.client import (
    AuthenticationFailed,
    Limits,
    OutcomeUnknown,
    RemoteError,
    UnsupportedServer,
)

from .scripted import LegacyServer, ModernServer, Reply, Seen, Stream, as_json, as_stream, text


def log_message(data: str) -> dict[str, object]:
    params = {"level": "info", "data": data}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


class Resuming(LegacyServer):
    """Streams every call, and gives the streams that are asked for by GET one after the other."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.first = Stream()
        self.later: list[Callable[[Seen], Reply]] = []
        self.handlers |= {
            "tools/call": lambda seen: as_stream(self.first),
            "GET": self.get,
        }

    def get(self, seen: Seen) -> Reply:
        if "last-event-id" not in seen.headers:
            return httpx.Response(405)
        return self.later.pop(0)(seen)

    @property
    def resumed_from(self) -> list[str]:
        return [seen.headers.get("last-event-id", "") for seen in self.of("GET")]


def holding(*events: tuple[str, object], end: bool = True) -> Callable[[Seen], Reply]:
    def reply(seen: Seen) -> Reply:
        stream = Stream()
        for event_id, message in events:
            stream.send(message, id=event_id)
        if end:
            stream.end()
        return as_stream(stream)

    return reply


@pytest.mark.parametrize("breaks", [Stream.end, Stream.cut])
async def test_a_stream_that_breaks_is_resumed_after_its_last_event(
    breaks: Callable[[Stream], None],
) -> None:
    server, logs = Resuming(), []
    async with server.client(on_log=lambda each: logs.append(each.data)) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        seen = await server.arrived("tools/call")
        server.first.send(id="1", retry=0)
        server.first.send(log_message("one"), id="2")
        breaks(server.first)
        server.later = [
            # The server sends again what was seen; then breaks off once more.
            holding(("2", log_message("one")), ("3", log_message("two"))),
            holding(("4", seen.result(text("done")))),
        ]
        assert (await call).content[0].text == "done"
    assert [each for each in server.resumed_from if each] == ["2", "3"]
    assert logs == ["one", "two"]
    assert server.count("tools/call") == 1


async def test_the_servers_wish_how_long_to_wait_is_kept() -> None:
    server = Resuming()
    async with server.client() as client:
        call = asyncio.create_task(client.call_tool("pay"))
        seen = await server.arrived("tools/call")
        server.later = [holding(("2", seen.result(text("done"))))]
        begun = asyncio.get_running_loop().time()
        server.first.send(id="1", retry=300)
        server.first.end()
        await call
        assert asyncio.get_running_loop().time() - begun >= 0.3


async def test_a_stream_without_ids_cannot_be_resumed() -> None:
    server = Resuming()
    async with server.client() as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
        server.first.send(log_message("one"))
        server.first.cut()
        with pytest.raises(OutcomeUnknown):
            await call
    assert server.resumed_from == []


async def test_a_read_without_an_answer_is_repeated_once() -> None:
    server = Resuming()
    streams = [Stream(), Stream()]
    for stream in streams:
        stream.end()
    server.handlers["resources/read"] = lambda seen: as_stream(streams.pop(0))
    async with server.client() as client:
        with pytest.raises(OutcomeUnknown):
            await client.read_resource("order://7")
    assert server.count("resources/read") == 2


async def test_the_attempts_have_an_end() -> None:
    server = Resuming()

    def fail(seen: Seen) -> Reply:
        raise httpx.ConnectError("refused")

    async with server.client(limits=Limits(backoff=0, reconnects=3)) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
        server.later = [fail] * 10
        server.first.send(id="1")
        server.first.cut()
        with pytest.raises(OutcomeUnknown):
            await call
    assert server.count("GET") == 4


async def test_a_word_from_the_server_begins_the_count_anew() -> None:
    server = Resuming()
    async with server.client(limits=Limits(backoff=0, reconnects=2)) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        seen = await server.arrived("tools/call")
        server.later = [holding((str(number), None)) for number in range(2, 12)]
        server.later.append(holding(("12", seen.result(text("done")))))
        server.first.send(id="1", retry=0)
        server.first.end()
        assert (await call).content[0].text == "done"
    assert server.resumed_from == [str(number) for number in range(1, 12)]


@pytest.mark.parametrize("status", [400, 405])
async def test_a_server_that_does_not_resume_ends_the_wait(status: int) -> None:
    server = Resuming()
    async with server.client() as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
        server.later = [lambda seen: httpx.Response(status)]
        server.first.send(id="1", retry=0)
        server.first.end()
        with pytest.raises(OutcomeUnknown, match="resumed"):
            await call
    assert server.count("GET") == 1


async def test_an_error_is_an_answer_as_well() -> None:
    server = Resuming()
    async with server.client() as client:
        call = asyncio.create_task(client.call_tool("pay"))
        seen = await server.arrived("tools/call")
        server.first.send(seen.error(-32603, "It broke", data={"why": "no idea"}))
        with pytest.raises(RemoteError, match="It broke") as caught:
            await call
    assert (caught.value.code, caught.value.data) == (-32603, {"why": "no idea"})


async def test_the_sessions_own_stream_is_resumed_too() -> None:
    server, logs = LegacyServer(), asyncio.Queue[str]()
    streams = [Stream(), Stream()]
    given = iter(streams)
    server.handlers["GET"] = lambda seen: as_stream(next(given))
    async with server.client(on_log=lambda each: logs.put_nowait(each.data)):
        await server.arrived("GET")
        streams[0].send(log_message("one"), id="g1", retry=0)
        streams[0].cut()
        streams[1].send(log_message("one"), id="g1")
        streams[1].send(log_message("two"), id="g2")
        assert [await logs.get(), await logs.get()] == ["one", "two"]
    assert [seen.headers.get("last-event-id") for seen in server.of("GET")] == [None, "g1"]


async def test_nobody_asks_for_a_stream_where_nobody_would_hear() -> None:
    server = LegacyServer()
    server.handlers["tools/list"] = lambda seen: as_json(seen.result({"tools": []}))
    async with server.client() as client:
        await client.list_tools()
    assert server.count("GET") == 0


async def test_listeners_are_told_what_they_may_have_missed() -> None:
    server = LegacyServer()
    streams = [Stream(), Stream()]
    given = iter(streams)
    server.handlers["GET"] = lambda seen: as_stream(next(given))
    async with server.client() as client, client.listen(tools=True, prompts=True) as changes:
        streams[0].cut()
        found = [await changes.next(5), await changes.next(5)]
        assert {(each.kind, each.missed) for each in found} == {("tools", True), ("prompts", True)}


async def test_listeners_are_told_when_there_is_no_stream_any_more() -> None:
    server = LegacyServer()
    stream = Stream()
    replies = iter([as_stream(stream)])
    server.handlers["GET"] = lambda seen: next(replies, httpx.Response(500))
    limits = Limits(backoff=0, reconnects=2)
    async with server.client(limits=limits) as client, client.listen(tools=True) as changes:
        stream.cut()
        with pytest.raises(OutcomeUnknown):
            await anext(changes)


@pytest.mark.parametrize("breaks", [Stream.end, Stream.cut])
async def test_a_modern_stream_that_breaks_is_the_end_of_the_call(
    breaks: Callable[[Stream], None],
) -> None:
    server, stream = ModernServer(), Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with server.client() as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
        stream.send(log_message("one"), id="1")
        breaks(stream)
        with pytest.raises(OutcomeUnknown):
            await call
    assert server.count("GET") == 0


async def test_a_modern_read_is_repeated_once() -> None:
    server, stream = ModernServer(), Stream()
    contents = {"contents": [{"uri": "order://7", "text": "seven"}]}
    stream.cut()
    server.handlers["resources/read"] = lambda seen: (
        as_stream(stream) if server.count("resources/read") == 1 else as_json(seen.result(contents))
    )
    async with server.client() as client:
        assert (await client.read_resource("order://7")).contents[0].text == "seven"


async def test_a_modern_subscription_begins_anew_and_says_so() -> None:
    server, streams = ModernServer(), [Stream(), Stream()]

    def listen(seen: Seen) -> Reply:
        stream = streams[server.count("subscriptions/listen") - 1]
        filter_ = {"notifications": seen.params["notifications"]}
        method = "notifications/subscriptions/acknowledged"
        stream.send({"jsonrpc": "2.0", "method": method, "params": filter_})
        return as_stream(stream)

    server.handlers["subscriptions/listen"] = listen
    async with server.client() as client:
        async with client.listen(tools=True, uris=["order://7"]) as changes:
            streams[0].send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            assert not (await changes.next(5)).missed
            streams[0].cut()
            found = {(await changes.next(5)).missed, (await changes.next(5)).missed}
            assert found == {True}
        await streams[1].closed.wait()
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["order://7"]}
    assert server.of("subscriptions/listen")[0].params["notifications"] == wanted


async def test_a_server_that_would_tell_nothing_is_no_silent_one() -> None:
    server, stream = ModernServer(), Stream()
    method = "notifications/subscriptions/acknowledged"
    stream.send({"jsonrpc": "2.0", "method": method, "params": {"notifications": {}}})
    server.handlers["subscriptions/listen"] = lambda seen: as_stream(stream)
    async with server.client() as client:
        with pytest.raises(UnsupportedServer):
            await client.listen(tools=True).__aenter__()


async def test_nor_is_one_without_a_stream() -> None:
    server = LegacyServer()
    async with server.client() as client:
        with pytest.raises(UnsupportedServer):
            await client.listen(tools=True).__aenter__()


async def test_an_error_keeps_a_subscription_from_beginning() -> None:
    server = ModernServer()
    server.handlers["subscriptions/listen"] = lambda seen: as_json(seen.error(-32601), 404)
    async with server.client() as client:
        with pytest.raises(RemoteError):
            await client.listen(tools=True).__aenter__()
    assert server.count("subscriptions/listen") == 1


async def test_a_stream_that_was_given_up_is_asked_for_again_with_the_next_call() -> None:
    server, logs = LegacyServer(), asyncio.Queue[str]()
    first, last = Stream(), Stream()
    replies = iter([as_stream(first), *(httpx.Response(500) for _ in range(3)), as_stream(last)])
    server.handlers |= {
        "GET": lambda seen: next(replies),
        "tools/list": lambda seen: as_json(seen.result({"tools": []})),
    }
    limits = Limits(backoff=0, reconnects=2)
    async with server.client(on_log=lambda m: logs.put_nowait(m.data), limits=limits) as client:
        first.cut()
        await server.arrived("GET", 3)
        while server.count("GET") < 5:
            await client.list_tools()
            await asyncio.sleep(0)
        last.send(log_message("back"))
        assert await logs.get() == "back"


@pytest.mark.parametrize("kind", [LegacyServer, ModernServer])
async def test_a_token_that_cannot_be_had_ends_the_listening(kind: type[LegacyServer]) -> None:
    server, streams, tokens = kind(), [Stream(), Stream()], ["good"]

    def token() -> str:
        if not tokens:
            raise LookupError("no token")
        return tokens.pop()

    def stream(seen: Seen) -> Reply:
        if not streams:
            return httpx.Response(401)
        if seen.method == "subscriptions/listen":
            method, params = "notifications/subscriptions/acknowledged", seen.params
            streams[0].send({"jsonrpc": "2.0", "method": method, "params": params})
        return as_stream(streams.pop(0))

    del streams[1]
    broken = streams[0]
    server.handlers |= {"GET": stream, "subscriptions/listen": stream}
    async with server.client(auth=token) as client, client.listen(tools=True) as changes:
        broken.cut()
        with pytest.raises(LookupError):
            await anext(changes)


@pytest.mark.parametrize("status", [401, 403])
async def test_credentials_that_run_out_meanwhile_do_not_say_that_nothing_has_run(
    status: int,
) -> None:
    server = Resuming()
    async with server.client() as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
        server.first.send(id="1", retry=0)
        server.first.cut()
        server.later = [lambda seen: httpx.Response(status)]
        with pytest.raises(OutcomeUnknown) as unknown:
            await call
    assert isinstance(unknown.value.__cause__, AuthenticationFailed)


async def test_the_last_failure_is_told_as_the_reason() -> None:
    server = Resuming()
    async with server.client(limits=Limits(reconnects=1)) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
        server.first.send(id="1", retry=0)
        server.first.cut()
        server.later = [lambda seen: httpx.Response(503)] * 3
        with pytest.raises(OutcomeUnknown) as unknown:
            await call
    assert "503" in str(unknown.value.__cause__)
