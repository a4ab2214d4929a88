"""Requests at an ASGI application, driven by hand, with whatever bytes and events a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from . import messages
from .answers import HTTPAnswer
from .streams import BOUND, StreamedAnswer

HOST = "testserver"
HEADERS = {"Host": HOST, **messages.HEADERS}


def scope_of(
    path: str, *, method: str = "POST", headers: Iterable[tuple[str, str]] = (), **extra: Any
) -> dict[str, Any]:
    """Return an HTTP scope."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "client": ("127.0.0.1", 50000),
        "server": (HOST, 80),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        **extra,
    }


async def request(application: Any, scope: dict[str, Any], *chunks: bytes) -> HTTPAnswer:
    """Send one request whose body arrives in ``chunks``; return the whole response."""
    events = [
        {"type": "http.request", "body": chunk, "more_body": index < len(chunks) - 1}
        for index, chunk in enumerate(chunks or (b"",))
    ]
    sent: list[dict[str, Any]] = []
    given = 0

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given == len(events):
            await asyncio.sleep(BOUND)  # nothing more comes; only a cancelled wait asks
        given += 1
        return events[given - 1]

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    async with asyncio.timeout(BOUND):
        await application(scope, receive, send)
    start, *rest = sent
    body = b"".join(event.get("body", b"") for event in rest)
    return HTTPAnswer(start["status"], headers_of(start), body, given)


async def post(
    application: Any, message: Any, path: str = "/mcp", *, host: str = HOST, **extra: Any
) -> HTTPAnswer:
    """POST one MCP message; headers come from ``headers=``, the rest goes into the scope."""
    headers = [*{**HEADERS, "Host": host}.items(), *dict(extra.pop("headers", {})).items()]
    scope = scope_of(path, headers=headers, **extra)
    return await request(application, scope, messages.encoded(message))


async def call(application: Any, tool: str, path: str = "/mcp", **extra: Any) -> HTTPAnswer:
    """Call a tool in the modern era; its arguments come from ``arguments=``."""
    message, headers = messages.modern(
        "tools/call", name=tool, arguments=extra.pop("arguments", {})
    )
    headers |= extra.pop("headers", {})
    return await post(application, message, path, headers=headers, **extra)


def headers_of(start: dict[str, Any]) -> dict[str, str]:
    """Return the headers of an event that begins a response, by their names in lower case."""
    return {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}


class Connection(StreamedAnswer):
    """One request, whose answer is read as it comes."""

    def __init__(self, application: Any, scope: dict[str, Any], body: bytes) -> None:
        super().__init__()
        self._gone = asyncio.Event()
        self._body: list[bytes] = [body]
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._ended = False
        self._task = asyncio.create_task(application(scope, self._receive, self._sent.put))

    async def _receive(self) -> dict[str, Any]:
        if self._body:
            return {"type": "http.request", "body": self._body.pop(), "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def start(self) -> None:
        """Wait for status and headers."""
        start = await self._next()
        self.status, self.headers = start["status"], headers_of(start)

    async def close(self) -> None:
        """Let go of the connection, as a client that dies does."""
        self._gone.set()
        async with asyncio.timeout(BOUND):
            await asyncio.wait([self._task])
        self._task.exception()

    async def _piece(self) -> bytes | None:
        if self._ended:
            return None
        event = await self._next()
        self._ended = not event.get("more_body", False)
        body: bytes = event.get("body", b"")
        return body

    async def _next(self) -> dict[str, Any]:
        getting = asyncio.ensure_future(self._sent.get())
        try:
            async with asyncio.timeout(BOUND):
                await asyncio.wait({getting, self._task}, return_when=asyncio.FIRST_COMPLETED)
                if not getting.done():
                    self._task.result()  # raises what the application raised
                return await getting
        finally:
            getting.cancel()
