"""A server forgets its sessions. Nobody waits for ever, and nothing runs twice that should not."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from django_mcp.client import Client, Limits, OutcomeUnknown, SessionLost, UnsupportedServer

from .scripted import LegacyServer, Reply, Seen, Stream, as_json, as_stream, text

CALLERS = 20


def listing(seen: Seen) -> Reply:
    tools = [
        {"name": "pay", "inputSchema": {"type": "object"}},
        {
            "name": "look",
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
        },
        {
            "name": "put",
            "inputSchema": {"type": "object"},
            "annotations": {"idempotentHint": True},
        },
    ]
    return as_json(seen.result({"tools": tools}))


class Shop(LegacyServer):
    """Answers calls of the first session with a stream that the test holds, later ones at once."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.held: list[Stream] = []
        self.handlers["tools/list"] = listing
        self.handlers["tools/call"] = self.call

    def call(self, seen: Seen) -> Reply:
        if seen.session == "session-1":
            self.held.append(Stream())
            return as_stream(self.held[-1])
        return as_json(seen.result(text(f"in {seen.session}")))


async def test_rust_sdk_accepted_request_completes_instead_of_hanging() -> None:
    """modelcontextprotocol/rust-sdk, `test_streamable_http_stale_session.rs`, step by step.

    A call is accepted and its answer awaited; a list then meets the 404, and opens a new session,
    in another revision. The call must end, promptly, with an error that speaks of the session; the
    old stream, which would speak after that, reaches nobody.
    """
    stale, retried = Stream(), asyncio.Event()
    server = LegacyServer(revision="2025-11-25")
    posts = iter(["accepted", "expired", "accepted"])

    def post(seen: Seen) -> Reply:
        if next(posts) == "expired":
            return httpx.Response(404)
        if seen.session == "session-2":
            assert seen.headers["mcp-protocol-version"] == "2025-06-18"
            retried.set()
        return httpx.Response(202)

    def initialize(seen: Seen) -> Reply:
        server.revision = "2025-06-18" if server.sessions else "2025-11-25"
        return LegacyServer.initialize(server, seen)

    def get(seen: Seen) -> Reply:
        return as_stream(stale if seen.session == "session-1" else Stream())

    server.handlers |= {
        "initialize": initialize,
        "tools/call": post,
        "tools/list": post,
        "GET": get,
    }
    async with server.client() as client:
        pending = asyncio.create_task(client.call_tool("slow_tool"))
        await server.arrived("tools/call")
        trigger = asyncio.create_task(client.list_tools())
        async with asyncio.timeout(1):
            await retried.wait()
        with pytest.raises(OutcomeUnknown, match="session"):
            async with asyncio.timeout(1):
                await pending
        stale.send(server.of("tools/call")[0].error(-32603))
        trigger.cancel()
        await asyncio.wait({trigger})
    assert server.sessions == ["session-1", "session-2"]


async def test_the_request_that_met_the_404_is_sent_again_once() -> None:
    server = Shop()
    async with server.client() as client:
        server.forget()
        result = await client.call_tool("pay")
        assert result.content[0].text == "in session-2"
    assert [seen.session for seen in server.of("tools/call")] == ["session-1", "session-2"]
    assert server.of("DELETE")[0].session == "session-2"


async def test_many_callers_meet_the_404_and_one_session_is_opened() -> None:
    server, all_sent = Shop(), asyncio.Event()

    async def call(seen: Seen) -> Reply:
        if seen.session == "session-2":
            return server.call(seen)
        if server.count("tools/call") == CALLERS:
            all_sent.set()
        await all_sent.wait()
        return httpx.Response(404)

    async def slow(seen: Seen) -> Reply:
        # Long enough for every caller to find that there is no session.
        for _ in range(100 if server.sessions else 0):
            await asyncio.sleep(0)
        return server.initialize(seen)

    server.handlers |= {"tools/call": call, "initialize": slow}
    async with server.client() as client:
        results = await asyncio.gather(*(client.call_tool("pay") for _ in range(CALLERS)))
    assert {result.content[0].text for result in results} == {"in session-2"}
    assert server.count("initialize") == 2
    assert server.count("tools/call") == 2 * CALLERS


async def test_callers_whose_404_is_late_open_no_further_session() -> None:
    server = Shop()
    gates = [asyncio.Event() for _ in range(CALLERS)]

    async def late(seen: Seen) -> Reply:
        if seen.session == "session-1":
            await gates[seen.params["arguments"]["number"]].wait()
            return httpx.Response(404)
        return as_json(seen.result(text("done")))

    server.handlers["tools/call"] = late
    async with server.client(limits=Limits(drain=10)) as client:
        calls = [
            asyncio.create_task(client.call_tool("pay", {"number": number}))
            for number in range(CALLERS)
        ]
        await server.arrived("tools/call", CALLERS)
        for number, gate in enumerate(gates):
            gate.set()
            await calls[number]
    assert server.count("initialize") == 2


async def in_flight_as_the_session_is_lost(
    server: Shop, client: Client, tool: str
) -> asyncio.Task[Any]:
    """Return a call that has arrived in a session that the client has found to be gone."""
    await client.list_tools()
    call = asyncio.create_task(client.call_tool(tool))
    await server.arrived("tools/call")
    server.forget()
    await client.list_tools()
    return call


@pytest.mark.parametrize("tool", ["pay", "unlisted"])
async def test_a_call_in_flight_that_is_not_safe_ends_with_its_outcome_unknown(tool: str) -> None:
    server = Shop()
    async with server.client() as client:
        call = await in_flight_as_the_session_is_lost(server, client, tool)
        with pytest.raises(OutcomeUnknown):
            await call
    assert server.count("tools/call") == 1


@pytest.mark.parametrize("tool", ["look", "put"])
async def test_a_safe_call_in_flight_is_repeated_once(tool: str) -> None:
    server = Shop()
    async with server.client() as client:
        call = await in_flight_as_the_session_is_lost(server, client, tool)
        assert (await call).content[0].text == "in session-2"
    assert [seen.session for seen in server.of("tools/call")] == ["session-1", "session-2"]


async def test_the_caller_may_say_that_a_call_is_idempotent() -> None:
    server = Shop()
    async with server.client() as client:
        call = asyncio.create_task(client.call_tool("pay", idempotent=True))
        await server.arrived("tools/call")
        server.forget()
        await client.list_tools()
        assert (await call).content[0].text == "in session-2"


async def test_a_safe_call_is_not_repeated_twice() -> None:
    server = Shop()
    server.call = lambda seen: as_stream(Stream())  # type: ignore[method-assign]
    server.handlers["tools/call"] = server.call
    async with server.client() as client:
        await client.list_tools()
        call = asyncio.create_task(client.call_tool("look"))
        for count in (1, 2):
            await server.arrived("tools/call", count)
            server.forget()
            await client.list_tools()
        with pytest.raises(OutcomeUnknown):
            await call
    assert server.count("tools/call") == 2


async def test_what_the_old_stream_still_holds_is_delivered() -> None:
    server = Shop()
    async with server.client(limits=Limits(drain=10)) as client:
        await client.list_tools()
        calls = [asyncio.create_task(client.call_tool(tool)) for tool in ("pay", "look")]
        await server.arrived("tools/call", 2)
        server.forget()
        await client.list_tools()
        for stream, seen in zip(server.held, server.of("tools/call"), strict=True):
            stream.send(seen.result(text("from the old stream")))
        for call in calls:
            assert (await call).content[0].text == "from the old stream"
    assert server.count("tools/call") == 2


async def test_an_old_stream_that_ends_ends_the_wait() -> None:
    server = Shop()
    async with server.client(limits=Limits(drain=1000)) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
        server.forget()
        await client.list_tools()
        server.held[0].end()
        with pytest.raises(OutcomeUnknown):
            await call


async def test_late_answers_reach_nobody() -> None:
    """Not on the new session's own stream, and not on the stream of another call."""
    server, own = Shop(), Stream()
    streams = {"session-1": Stream(), "session-2": own}
    server.handlers["GET"] = lambda seen: as_stream(streams[seen.session or ""])
    waiting = Stream()

    def call(seen: Seen) -> Reply:
        return as_stream(Stream() if seen.session == "session-1" else waiting)

    server.handlers["tools/call"] = call
    async with server.client(on_log=print) as client:
        old = asyncio.create_task(client.call_tool("pay"))
        stale = await server.arrived("tools/call")
        server.forget()
        await client.list_tools()
        with pytest.raises(OutcomeUnknown):
            await old
        new = asyncio.create_task(client.call_tool("pay"))
        fresh = await server.arrived("tools/call", 2)
        own.send(stale.result(text("late")))
        waiting.send(stale.result(text("late")))
        waiting.send(fresh.result(text("its own")))
        assert (await new).content[0].text == "its own"
    assert stale.id != fresh.id


async def test_if_no_new_session_can_be_had_everybody_is_told() -> None:
    server = Shop()
    async with server.client() as client:
        server.forget()
        server.handlers["initialize"] = lambda seen: as_json(seen.error(-32603, "down"))
        calls = [client.call_tool("pay") for _ in range(CALLERS)]
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(error) for error in errors] == [SessionLost] * CALLERS
        assert server.count("initialize") == 2
        # And whoever comes later tries again.
        server.handlers["initialize"] = server.initialize
        assert (await client.call_tool("pay")).content[0].text == "in session-2"


async def test_a_server_that_forgets_each_session_at_once_is_not_asked_for_ever() -> None:
    server = Shop()
    server.handlers["tools/call"] = lambda seen: httpx.Response(404)
    async with server.client() as client:
        with pytest.raises(SessionLost):
            await client.call_tool("pay")
    assert server.count("tools/call") == 2


async def test_a_caller_who_gives_up_takes_the_new_session_from_nobody() -> None:
    server, opening = Shop(), asyncio.Event()

    async def slow(seen: Seen) -> Reply:
        await opening.wait()
        return server.initialize(seen)

    async with server.client() as client:
        server.forget()
        server.handlers["initialize"] = slow
        first = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("initialize", 2)
        second = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call", 1)
        first.cancel()
        await asyncio.wait({first})
        opening.set()
        assert (await second).content[0].text == "in session-2"
    assert server.count("initialize") == 2


async def test_a_question_of_the_old_session_is_not_answered_in_the_new() -> None:
    server, asked, answer = Shop(), asyncio.Event(), asyncio.Event()

    async def elicit(form: Any) -> dict[str, Any]:
        asked.set()
        await answer.wait()
        return {}

    async with server.client(on_elicit=elicit, limits=Limits(drain=10)) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        seen = await server.arrived("tools/call")
        params = {"message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}
        question = {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": params}
        server.held[0].send(question)
        await asked.wait()
        server.forget()
        await client.list_tools()
        answer.set()
        server.held[0].send(seen.result(text("done")))
        await call
    assert server.count("response") == 0


async def test_the_new_session_has_what_the_old_one_was_asked_for() -> None:
    server = Shop(capabilities={"logging": {}, "resources": {"subscribe": True}})
    streams = {"session-1": Stream(), "session-2": Stream()}
    server.handlers |= {
        "logging/setLevel": lambda seen: as_json(seen.result({})),
        "resources/subscribe": lambda seen: as_json(seen.result({})),
        "resources/unsubscribe": lambda seen: as_json(seen.result({})),
        "GET": lambda seen: as_stream(streams[seen.session or ""]),
    }
    async with server.client() as client:
        await client.set_log_level("warning")
        async with client.listen(tools=True, uris=["order://7"]) as changes:
            server.forget()
            await client.list_tools()
            missed = [await changes.next(5), await changes.next(5)]
            assert {(each.kind, each.uri, each.missed) for each in missed} == {
                ("tools", None, True),
                ("resource", "order://7", True),
            }
            assert server.of("logging/setLevel")[-1].session == "session-2"
            assert server.of("resources/subscribe")[-1].session == "session-2"
            updated = {"method": "notifications/resources/updated", "params": {"uri": "order://7"}}
            streams["session-2"].send({"jsonrpc": "2.0", **updated})
            change = await changes.next(5)
            assert (change.uri, change.missed) == ("order://7", False)


async def test_a_listener_alone_has_the_session_opened_anew() -> None:
    server = Shop()
    first = Stream()
    server.handlers["GET"] = lambda seen: as_stream(
        first if seen.session == "session-1" else Stream()
    )
    async with server.client() as client, client.listen(tools=True) as changes:
        server.forget()
        first.cut()
        assert (await changes.next(5)).missed
    assert server.sessions == ["session-1", "session-2"]


async def test_a_404_without_a_session_is_no_lost_session() -> None:
    server = LegacyServer()

    def initialize(seen: Seen) -> Reply:
        reply = LegacyServer.initialize(server, seen)
        del reply.headers["mcp-session-id"]
        return reply

    server.handlers |= {"initialize": initialize, "tools/call": lambda seen: httpx.Response(404)}
    async with server.client() as client:
        with pytest.raises(Exception, match="404"):
            await client.call_tool("pay")
    assert server.count("initialize") == 1
    assert server.count("DELETE") == 0


async def test_a_404_for_the_stream_alone_is_no_lost_session() -> None:
    """Servers that have no such stream should say 405. Not all do."""
    server = Shop()
    server.handlers |= {
        "GET": lambda seen: httpx.Response(404),
        "ping": lambda seen: as_json(seen.result({})),
        "tools/call": lambda seen: as_json(seen.result(text("done"))),
    }
    async with server.client(on_log=print) as client:
        await server.arrived("ping")
        await client.call_tool("pay")
        with pytest.raises(UnsupportedServer):
            await client.listen(tools=True).__aenter__()
        await client.call_tool("pay")
    assert server.count("initialize") == 1


async def test_who_begins_to_listen_in_a_lost_session_gets_a_new_one() -> None:
    server = Shop()
    server.handlers["GET"] = lambda seen: as_stream(Stream())
    async with server.client() as client:
        server.forget()
        async with client.listen(tools=True):
            pass
    assert server.sessions == ["session-1", "session-2"]


async def test_a_server_that_forgets_every_session_ends_the_listening() -> None:
    server, last = Shop(), Stream()

    def stream(seen: Seen) -> Reply:
        if server.count("GET") == 1:
            return as_stream(last)
        return httpx.Response(404)

    server.handlers |= {"GET": stream, "ping": lambda seen: httpx.Response(404)}
    limits = Limits(backoff=0, reconnects=3)
    async with server.client(limits=limits) as client, client.listen(tools=True) as changes:
        last.cut()
        with pytest.raises(OutcomeUnknown, match="forgetting"):
            await anext(changes)
    assert len(server.sessions) <= 5
