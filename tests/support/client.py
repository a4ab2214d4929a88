"""Clients that read answers as they come, and let go of them when they like.

They send their requests in turn to ASGI applications of this process, or to servers. That needs
no Django: the benchmark, which has none of its own, uses them as well.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from .asgi import HOST, Connection, scope_of
from .messages import (
    HEADERS,
    INITIALIZED,
    cancellation,
    encoded,
    hyphened,
    mirrored,
    modern_request,
    opening,
    request,
    response,
)
from .streams import StreamedAnswer

Answering = AbstractAsyncContextManager[StreamedAnswer]


class Endpoint(Protocol):
    """Where requests are sent."""

    def send(self, method: str, headers: Mapping[str, str], body: bytes) -> Answering:
        """Make one request; its connection ends with the block."""


@dataclass(frozen=True, slots=True)
class Application:
    """The endpoint of an ASGI application of this process."""

    application: Any
    path: str = "/mcp"

    @asynccontextmanager
    async def send(
        self, method: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[StreamedAnswer]:
        """See :class:`Endpoint`."""
        connection = self.connection(method, headers, body)
        try:
            await connection.start()
            yield connection
        finally:
            await connection.close()

    def connection(self, method: str, headers: Mapping[str, str], body: bytes) -> Connection:
        """Begin a request, whose answer may never come."""
        given = {"Host": HOST, **headers}
        scope = scope_of(self.path, method=method, headers=given.items())
        return Connection(self.application, scope, body)


class ServedAnswer(StreamedAnswer):
    """A response of a server."""

    bound = 60

    def __init__(self, response: httpx.Response) -> None:
        super().__init__()
        self.status = response.status_code
        self.headers = response.headers
        self._pieces = response.aiter_bytes()

    async def _piece(self) -> bytes | None:
        return await anext(self._pieces, None)


@dataclass(frozen=True, slots=True)
class Server:
    """The endpoint of a server at ``url``."""

    url: str
    http: httpx.AsyncClient

    @asynccontextmanager
    async def send(
        self, method: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[StreamedAnswer]:
        """See :class:`Endpoint`."""
        given = dict(headers)
        async with self.http.stream(method, self.url, headers=given, content=body) as answer:
            yield ServedAnswer(answer)


class _Client:
    """What the clients of both eras do."""

    def __init__(self, *endpoints: Any, path: str = "/mcp", **headers: str) -> None:
        """Send to each of ``endpoints`` in turn: an :class:`Endpoint`, or an ASGI application."""
        self._endpoints: list[Endpoint] = [
            each if hasattr(each, "send") else Application(each, path) for each in endpoints
        ]
        self._turns: Iterator[Endpoint] = itertools.cycle(self._endpoints)
        self.headers = {**HEADERS, **hyphened(headers)}
        self._ids = itertools.count(1)

    @asynccontextmanager
    async def request(
        self, method: str, message: Any = None, **headers: str
    ) -> AsyncIterator[StreamedAnswer]:
        """Make an HTTP request at the next endpoint."""
        given, body = self._sent(message, headers)
        async with next(self._turns).send(method, given, body) as answer:
            yield answer

    def connection(self, application: Any, method: str, message: Any, **headers: str) -> Connection:
        """Begin an HTTP request at an ASGI application, whose answer may never come."""
        return Application(application).connection(method, *self._sent(message, headers))

    def _sent(self, message: Any, headers: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
        body = b"" if message is None else encoded(message)
        return {**self.headers, **hyphened(headers)}, body

    def post(self, method: str, /, *, id: Any = None, **params: Any) -> Answering:
        """Send a request, with the next id if it is given none."""
        request_id = next(self._ids) if id is None else id
        return self.request("POST", {**request(method, request_id), "params": params})

    def call(
        self, tool: str, /, *, id: Any = None, token: Any = None, meta: Any = None, **arguments: Any
    ) -> Answering:
        """Call a tool; ``token`` asks for progress, ``meta`` is further metadata."""
        given = {**(meta or {}), **({} if token is None else {"progressToken": token})}
        more = {"_meta": given} if given else {}
        return self.post("tools/call", id=id, name=tool, arguments=arguments, **more)

    async def result(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool and return its result, whichever way it is answered."""
        async with self.call(tool, **arguments) as answer:
            return (await answer.messages())[-1]["result"]

    async def value(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool and return what it returned, as it was before it became text."""
        result = await self.result(tool, **arguments)
        assert not result.get("isError"), result
        return result.get("structuredContent")

    async def send(self, message: Any) -> int:
        """Send a notification or a response; return the status."""
        async with self.request("POST", message) as answer:
            await answer.read()
            return answer.status


class Client(_Client):
    """One session of a revision that has them."""

    def __init__(self, *endpoints: Any, path: str = "/mcp", **headers: str) -> None:
        """Send to each of ``endpoints`` in turn, as a session that is still to be opened."""
        super().__init__(*endpoints, path=path, **headers)
        self._counts: Counter[str] = Counter()

    @property
    def sent(self) -> int:
        """How many requests of the session were sent so far, to whatever endpoint."""
        return self._counts["requests"]

    def request(self, method: str, message: Any = None, **headers: str) -> Answering:
        """Make an HTTP request at the next endpoint."""
        self._counts["requests"] += "Mcp-Session-Id" in self.headers
        return super().request(method, message, **headers)

    async def open(
        self, revision: str = "2025-11-25", *, initialized: bool = True, **capabilities: Any
    ) -> Client:
        """Open the session; say that the client is ready, unless it is to wait with that."""
        async with self.post(
            "initialize", **opening(revision, capabilities=capabilities)
        ) as opened:
            assert opened.status == 200, await opened.read()
            self.headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
            self.headers["Mcp-Protocol-Version"] = revision
        if initialized:
            await self.send(INITIALIZED)
        return self

    @property
    def session_id(self) -> str:
        """The secret ``Mcp-Session-Id``."""
        return self.headers["Mcp-Session-Id"]

    def at(self, number: int) -> Client:
        """Return the same session, kept to one of the endpoints."""
        kept = copy.copy(self)
        kept._turns = itertools.cycle([self._endpoints[number]])
        return kept

    def listen(self, last_event_id: str | None = None) -> Answering:
        """GET the session's own stream, or what follows an event."""
        given = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        return self.request("GET", **given)

    async def answer(self, question: dict[str, Any], result: dict[str, Any]) -> int:
        """Answer a request of the server's."""
        return await self.send(response(question["id"], result))

    async def cancel(self, request_id: Any) -> int:
        """Take a request back."""
        return await self.send(cancellation(request_id))


class StatelessClient(_Client):
    """A client of the revision that has no sessions."""

    def post(self, method: str, /, *, id: Any = None, **params: Any) -> Answering:
        """Send a request, with the next id if it is given none; ``_meta`` changes its metadata."""
        request_id = next(self._ids) if id is None else id
        message = modern_request(method, request_id, params.pop("_meta", None), **params)
        return self.request("POST", message, **mirrored(message))

    def listen(self, *, id: Any = None, **wish: Any) -> Answering:
        """Subscribe to changes."""
        return self.post("subscriptions/listen", id=id, notifications=wish)


def served(urls: Any, http: httpx.AsyncClient) -> list[Server]:
    """Return the endpoints of servers."""
    return [Server(url, http) for url in urls]
