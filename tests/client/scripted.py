"""Servers that do what a test says, request by request, in the place of httpx's network.

Nothing of the client is replaced: it sends real HTTP requests, and these answer them, when and as
the test wants.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from django_mcp.client import Client, Limits

URL = "https://server.example/mcp"
BOUND = 10
"""Seconds after which a test that waits has failed."""
HASTY = Limits(backoff=0.0, drain=0.05)
"""Limits with which nobody waits where nothing is to come."""


class Stream(httpx.AsyncByteStream):
    """A stream of events that a test writes."""

    def __init__(self, *messages: Any) -> None:
        self._pieces: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.closed = asyncio.Event()
        for message in messages:
            self.send(message)

    def send(self, message: Any = None, *, id: str | None = None, retry: int | None = None) -> None:
        """Send an event: a message, or nothing but an id and a wish."""
        text = "" if message is None else json.dumps(message)
        self.write(
            (f"id: {id}\n" if id is not None else "")
            + (f"retry: {retry}\n" if retry is not None else "")
            + f"data: {text}\n\n"
        )

    def write(self, text: str | bytes) -> None:
        """Send bytes as they are."""
        self._pieces.put_nowait(text.encode() if isinstance(text, str) else text)

    def end(self) -> None:
        """End the stream as HTTP does."""
        self._pieces.put_nowait(None)

    def cut(self) -> None:
        """End it as a broken network does."""
        self._pieces.put_nowait(httpx.ReadError("cut"))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def aclose(self) -> None:
        self.closed.set()


@dataclass(frozen=True)
class Seen:
    """A request that has arrived."""

    verb: str
    headers: httpx.Headers
    message: Any

    @property
    def method(self) -> str:
        """The JSON-RPC method; for anything else the verb of HTTP, or "response"."""
        if not isinstance(self.message, dict):
            return self.verb
        return str(self.message.get("method", "response"))

    @property
    def id(self) -> Any:
        """The JSON-RPC id."""
        return self.message.get("id")

    @property
    def params(self) -> dict[str, Any]:
        """The JSON-RPC parameters."""
        params: dict[str, Any] = self.message.get("params", {})
        return params

    @property
    def session(self) -> str | None:
        """The session that it names."""
        value: str | None = self.headers.get("mcp-session-id")
        return value

    def result(self, result: Any) -> dict[str, Any]:
        """The response to it."""
        return {"jsonrpc": "2.0", "id": self.id, "result": result}

    def error(self, code: int, message: str = "no", **data: Any) -> dict[str, Any]:
        """An error for it."""
        return {
            "jsonrpc": "2.0",
            "id": self.id,
            "error": {"code": code, "message": message, **data},
        }


Reply = httpx.Response
Handler = Callable[[Seen], Reply | Awaitable[Reply]]


def as_json(message: Any, status: int = 200, **headers: str) -> Reply:
    """Answer with a JSON body."""
    return as_bytes(json.dumps(message).encode(), "application/json", status, **headers)


def as_bytes(body: bytes, content_type: str, status: int = 200, **headers: str) -> Reply:
    """Answer with any body."""
    given = {"Content-Type": content_type, **headers}
    return httpx.Response(status, stream=httpx.ByteStream(body), headers=given)


def as_stream(stream: Stream, **headers: str) -> Reply:
    """Answer with a stream."""
    return httpx.Response(
        200, stream=stream, headers={"Content-Type": "text/event-stream", **headers}
    )


def text(words: str) -> dict[str, Any]:
    """The result of a tool that says something."""
    return {"content": [{"type": "text", "text": words}]}


@dataclass
class Server(httpx.AsyncBaseTransport):
    """Answers each request by the handler of its method."""

    handlers: dict[str, Handler] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._arrival = asyncio.Condition()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        seen = Seen(request.method, request.headers, json.loads(body) if body else None)
        async with self._arrival:
            self.seen.append(seen)
            self._arrival.notify_all()
        return await self.reply(seen)

    async def reply(self, seen: Seen) -> Reply:
        """Answer one request."""
        reply = self.handlers[seen.method](seen)
        return reply if isinstance(reply, httpx.Response) else await reply

    async def arrived(self, method: str, count: int = 1) -> Seen:
        """Wait for so many requests of a method; return the last of them."""
        async with asyncio.timeout(BOUND), self._arrival:
            await self._arrival.wait_for(lambda: self.count(method) >= count)
        return self.of(method)[count - 1]

    def of(self, method: str) -> list[Seen]:
        """The requests of a method that have arrived."""
        return [seen for seen in self.seen if seen.method == method]

    def count(self, method: str) -> int:
        """How many they are."""
        return len(self.of(method))

    def client(self, **options: Any) -> Client:
        """A client of this server."""
        return Client(URL, **{"transport": self, "limits": HASTY, **options})


@dataclass
class LegacyServer(Server):
    """A server with sessions, which it may forget."""

    revision: str = "2025-11-25"
    capabilities: dict[str, Any] = field(default_factory=lambda: {"tools": {}})
    sessions: list[str] = field(default_factory=list)
    forgotten: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.handlers = {
            "server/discover": lambda seen: httpx.Response(400, text="no session"),
            "initialize": self.initialize,
            "notifications/initialized": accepted,
            "notifications/cancelled": accepted,
            "response": accepted,
            "GET": lambda seen: httpx.Response(405),
            "DELETE": lambda seen: httpx.Response(200),
            **self.handlers,
        }

    async def reply(self, seen: Seen) -> Reply:
        if seen.session in self.forgotten:
            return as_json(seen.error(-32001) if seen.message else {}, 404)
        return await super().reply(seen)

    def initialize(self, seen: Seen) -> Reply:
        """Open a session."""
        name = f"session-{len(self.sessions) + 1}"
        self.sessions.append(name)
        result = {
            "protocolVersion": self.revision,
            "capabilities": self.capabilities,
            "serverInfo": {"name": "scripted", "version": "1.0"},
        }
        return as_json(seen.result(result), **{"Mcp-Session-Id": name})

    def forget(self) -> None:
        """Forget all sessions."""
        self.forgotten.update(self.sessions)


@dataclass
class ModernServer(Server):
    """A server of revision 2026-07-28."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.handlers = {"server/discover": self.discover, **self.handlers}

    def discover(self, seen: Seen) -> Reply:
        """Say what it speaks."""
        result = {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "private",
        }
        return as_json(seen.result(result))


def accepted(seen: Seen) -> Reply:
    """Take what has no answer."""
    return httpx.Response(202)
