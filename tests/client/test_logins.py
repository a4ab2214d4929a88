"""A login of several requests: any `httpx.Auth`, on everything that a client sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from django_mcp.client import (
    AuthenticationFailed,
    Client,
    Limits,
    MessageTooLarge,
    NotProcessed,
    OutcomeUnknown,
    SyncClient,
)

from .scripted import (
    HASTY,
    URL,
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

LOGIN = "https://login.example/token"
FIRST, SECOND = "first-token", "second-token"


class Login(httpx.Auth):
    """Asks the login server for a token, whenever the server refuses the one it has."""

    def __init__(self) -> None:
        self.token = ""

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        await self.think(request, None)
        request.headers["Authorization"] = f"Bearer {self.token}"
        response = yield request
        if response.status_code in (401, 403):
            await self.think(request, response)
            await response.aread()
            challenge = response.headers["www-authenticate"]
            first = yield httpx.Request("POST", LOGIN, data={"challenge": challenge})
            nonce = (await first.aread()).decode()
            second = yield httpx.Request("POST", LOGIN, data={"nonce": nonce})
            self.token = (await second.aread()).decode()
            request.headers["Authorization"] = f"Bearer {self.token}"
            yield request

    async def think(self, request: httpx.Request, refusal: httpx.Response | None) -> None:
        """Do what comes before a request is sent, and after it was refused."""


class ReadingLogin(httpx.Auth):
    """Wants every body to be read for it, as some of httpx's kind do."""

    requires_response_body = True

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {FIRST}"
        response = yield request
        self.seen.append(response.content)
        if response.status_code == 401:
            yield request


@dataclass
class Guard(httpx.AsyncBaseTransport):
    """Stands before a server, and lets in who has the token of the day; the login server, too."""

    server: Server
    token: str = FIRST
    status: int = 401
    challenge: str = 'Bearer error="invalid_token"'
    refused: list[tuple[str, bytes]] = field(default_factory=list)
    logins: list[httpx.Request] = field(default_factory=list)
    login_reply: Callable[[], httpx.Response] | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.host == httpx.URL(LOGIN).host:
            return await self.log_in(request)
        if request.headers.get("authorization") == f"Bearer {self.token}":
            return await self.server.handle_async_request(request)
        self.refused.append((request.method, await request.aread()))
        headers = {"WWW-Authenticate": self.challenge}
        return httpx.Response(self.status, json={"error": "refused"}, headers=headers)

    async def log_in(self, request: httpx.Request) -> httpx.Response:
        """Answer the login: first a nonce, then the token."""
        self.logins.append(request)
        if self.login_reply:
            return self.login_reply()
        asked = (await request.aread()).decode()
        return httpx.Response(200, text="n0nce" if "challenge" in asked else self.token)

    def client(self, login: Any = None, **options: Any) -> Client:
        """A client of the server behind."""
        given = {"transport": self, "limits": HASTY, "auth": login or Login(), **options}
        return Client(URL, **given)


def done(seen: Seen) -> Reply:
    return as_json(seen.result(text("done")))


def progress(seen: Seen) -> dict[str, Any]:
    params = {"progressToken": seen.params["_meta"]["progressToken"], "progress": 1}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


async def test_a_call_that_is_refused_is_made_again_as_it_was_after_the_login(
    server: Server,
) -> None:
    guard = Guard(server)
    server.handlers["tools/call"] = done
    async with guard.client() as client:
        guard.token = SECOND
        guard.refused.clear()
        result = await client.call_tool("pay", {"amount": 7})
    assert result.content[0].text == "done"  # type: ignore[union-attr]
    ((_, refused),) = guard.refused
    (call,) = server.of("tools/call")
    assert call.message == json.loads(refused)
    assert call.params["arguments"] == {"amount": 7}
    assert call.headers["authorization"] == f"Bearer {SECOND}"


async def test_an_answer_that_streams_is_read_as_it_comes_after_the_login(server: Server) -> None:
    guard, stream = Guard(server), Stream()
    reported = asyncio.Event()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with guard.client() as client:
        guard.token = SECOND
        call = asyncio.create_task(
            client.call_tool("pay", on_progress=lambda *values: reported.set())
        )
        seen = await server.arrived("tools/call")
        stream.send(progress(seen))
        await reported.wait()
        stream.send(seen.result(text("done")))
        assert (await call).content[0].text == "done"  # type: ignore[union-attr]


async def test_a_session_has_its_stream_and_its_end_after_the_login() -> None:
    server, streams = LegacyServer(), [Stream()]
    server.handlers["GET"] = lambda seen: as_stream(streams[0])
    guard = Guard(server)
    async with guard.client() as client:
        guard.token = SECOND
        async with client.listen(tools=True) as changes:
            seen = await server.arrived("GET")
            assert seen.headers["authorization"] == f"Bearer {SECOND}"
            streams[0].send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            assert (await anext(changes)).kind == "tools"
        guard.token = "third"
    assert server.of("DELETE")[0].session == "session-1"
    assert [method for method, _ in guard.refused][-1] == "DELETE"


async def test_a_call_is_resumed_where_it_was_after_the_login() -> None:
    server, first, rest = LegacyServer(), Stream(), Stream()
    server.handlers |= {
        "tools/call": lambda seen: as_stream(first),
        "GET": lambda seen: as_stream(rest),
    }
    guard = Guard(server)
    async with guard.client() as client:
        call = asyncio.create_task(client.call_tool("pay"))
        seen = await server.arrived("tools/call")
        guard.token = SECOND
        first.send(id="e-1", retry=0)
        first.cut()
        resumed = await server.arrived("GET")
        assert resumed.headers["last-event-id"] == "e-1"
        rest.send(seen.result(text("done")), id="e-2")
        await call
    assert server.count("tools/call") == 1


async def test_a_login_that_fails_while_resuming_does_not_say_that_nothing_has_run() -> None:
    class Broken(Login):
        async def think(self, request: httpx.Request, refusal: httpx.Response | None) -> None:
            if request.method == "GET":
                raise LookupError("the vault is closed")

    server, first = LegacyServer(), Stream()
    server.handlers["tools/call"] = lambda seen: as_stream(first)
    login = Broken()
    login.token = FIRST
    async with Guard(server).client(login) as client:
        call = asyncio.create_task(client.call_tool("pay"))
        await server.arrived("tools/call")
        first.send(id="e-1", retry=0)
        first.cut()
        with pytest.raises(OutcomeUnknown) as unknown:
            await call
    assert isinstance(unknown.value.__cause__, LookupError)


async def test_a_login_that_reads_bodies_does_not_read_the_stream_of_a_call(
    server: Server,
) -> None:
    stream, reported, login = Stream(), asyncio.Event(), ReadingLogin()
    server.handlers["tools/call"] = lambda seen: as_stream(stream)
    async with Guard(server).client(login) as client:
        call = asyncio.create_task(
            client.call_tool("pay", on_progress=lambda *values: reported.set())
        )
        seen = await server.arrived("tools/call")
        stream.send(progress(seen))
        await reported.wait()
        stream.send(seen.result(text("done")))
        await call
    assert set(login.seen) == {b""}


async def test_what_a_login_has_read_of_a_refusal_is_told_all_the_same() -> None:
    server = ModernServer()
    server.handlers["tools/call"] = lambda seen: as_json(seen.error(-32600, "Who?"), 401)
    login = ReadingLogin()
    async with Guard(server).client(login) as client:
        with pytest.raises(AuthenticationFailed, match="Who"):
            await client.call_tool("pay")
    assert b"Who?" in login.seen[-1]


@pytest.mark.parametrize("status", [200, 302, 404, 500, 503])
async def test_a_call_that_may_have_run_is_not_made_again_for_a_login(status: int) -> None:
    class Stubborn(httpx.Auth):
        def auth_flow(
            self, request: httpx.Request
        ) -> Generator[httpx.Request, httpx.Response, None]:
            request.headers["Authorization"] = f"Bearer {FIRST}"
            request.url = request.url.copy_merge_params({"key": "k3y"})
            for _ in range(3):
                yield request

    server = ModernServer()
    async with Guard(server).client(Stubborn()) as client:
        server.handlers["tools/call"] = lambda seen: as_json(seen.result(text("done")), status)
        if status == 200:
            await client.call_tool("pay")
        else:
            with pytest.raises(Exception, match=str(status)):
                await client.call_tool("pay")
    assert server.count("tools/call") == 1


async def test_a_login_is_answered_within_the_limits_of_the_client() -> None:
    guard = Guard(ModernServer())
    guard.login_reply = lambda: httpx.Response(200, stream=httpx.ByteStream(b"x" * 2000))
    limits = Limits(message_bytes=1000, connect_timeout=3.5, idle_timeout=4.5)
    with pytest.raises(MessageTooLarge, match="1000 bytes"):
        await guard.client(limits=limits).open()
    asked = guard.logins[0]
    assert asked.extensions["timeout"] == {"connect": 3.5, "read": 4.5, "write": 3.5, "pool": 3.5}
    assert asked.headers["accept-encoding"] == "identity"


async def test_a_compressed_answer_to_a_login_is_not_unfolded() -> None:
    guard, read = Guard(ModernServer()), []

    class Reading(httpx.Auth):
        async def async_auth_flow(
            self, request: httpx.Request
        ) -> AsyncGenerator[httpx.Request, httpx.Response]:
            response = yield httpx.Request("GET", LOGIN)
            read.append(await response.aread())
            yield request

    guard.login_reply = lambda: httpx.Response(
        200, stream=httpx.ByteStream(b"no gzip"), headers={"Content-Encoding": "gzip"}
    )
    with pytest.raises(AuthenticationFailed):
        await guard.client(Reading()).open()
    assert read == [b""]


@pytest.mark.parametrize("failure", [httpx.ConnectError, httpx.ReadTimeout, httpx.ReadError])
async def test_a_login_whose_server_fails_leaves_a_call_that_has_not_run(
    server: Server, failure: type[httpx.TransportError]
) -> None:
    def fail() -> httpx.Response:
        raise failure("gone")

    guard = Guard(server)
    async with guard.client() as client:
        guard.login_reply, guard.token = fail, SECOND
        guard.logins.clear()
        with pytest.raises(NotProcessed, match=r"login failed at login\.example: gone"):
            await client.call_tool("pay")
        guard.token = FIRST
    assert server.count("tools/call") == 0
    assert len(guard.logins) == 1


async def test_a_key_that_a_login_puts_into_the_url_makes_it_no_other_server() -> None:
    class Keyed(httpx.Auth):
        def auth_flow(
            self, request: httpx.Request
        ) -> Generator[httpx.Request, httpx.Response, None]:
            request.url = request.url.copy_merge_params({"key": "k3y"})
            yield request

    class Cut(ModernServer):
        async def reply(self, seen: Seen) -> Reply:
            if seen.method == "tools/call":
                raise httpx.ReadError("cut")
            return await super().reply(seen)

    async with Cut().client(auth=Keyed()) as client:
        with pytest.raises(OutcomeUnknown):
            await client.call_tool("pay")


async def test_a_login_without_end_is_ended() -> None:
    class Endless(httpx.Auth):
        def auth_flow(
            self, request: httpx.Request
        ) -> Generator[httpx.Request, httpx.Response, None]:
            while True:
                yield httpx.Request("GET", LOGIN)

    guard = Guard(ModernServer())
    with pytest.raises(NotProcessed, match="more requests"):
        await guard.client(Endless()).open()
    assert len(guard.logins) < 30


@pytest.mark.parametrize("when", ["before the call", "after a refusal"])
async def test_the_time_that_a_person_takes_does_not_count_as_the_servers(when: str) -> None:
    timeout = 1.0

    class Slow(Login):
        async def think(self, request: httpx.Request, refusal: httpx.Response | None) -> None:
            if (refusal is None) == (when == "before the call"):
                await asyncio.sleep(timeout * 1.5)

    server = ModernServer()
    server.handlers["tools/call"] = done
    async with Guard(server).client(Slow(), revision="2026-07-28") as client:
        await client.call_tool("pay", timeout=timeout)


def test_the_client_for_threads_logs_in_as_well() -> None:
    server = ModernServer()
    server.handlers["tools/call"] = done
    guard = Guard(server)
    with SyncClient(URL, auth=Login(), transport=guard, limits=HASTY) as client:
        guard.token = SECOND
        client.call_tool("pay")
    assert server.count("tools/call") == 1
    assert [call.headers["authorization"] for call in server.seen[-1:]] == [f"Bearer {SECOND}"]
