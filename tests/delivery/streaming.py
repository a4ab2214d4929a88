"""A client of one process that reads streams as they come, and lets go of them when it likes."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.asgi import BOUND, scope_of

HEADERS = {
    "Host": "testserver",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream; a comment has neither id nor data."""

    id: str | None
    data: str

    @property
    def message(self) -> Any:
        """The message that it carries; ``None`` for a priming event."""
        return json.loads(self.data) if self.data else None


class Connection:
    """One request whose response is read as it comes."""

    def __init__(self, application: Any, scope: dict[str, Any], body: bytes) -> None:
        self._gone = asyncio.Event()
        self._body: list[bytes] = [body]
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._buffer = ""
        self.text = ""
        self._ended = False
        self.last_id: str | None = None
        self._task = asyncio.create_task(application(scope, self._receive, self._sent.put))

    async def _receive(self) -> dict[str, Any]:
        if self._body:
            return {"type": "http.request", "body": self._body.pop(), "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def start(self) -> None:
        """Wait for status and headers."""
        start = await self._next()
        self.status: int = start["status"]
        self.headers = {k.decode().lower(): v.decode("latin-1") for k, v in start["headers"]}

    @property
    def is_stream(self) -> bool:
        """Whether the response is a stream of events."""
        return self.headers.get("content-type", "").startswith("text/event-stream")

    async def json(self) -> Any:
        """Return the body of a response that is no stream."""
        while not self._ended:
            await self._more()
        return json.loads(self._buffer)

    async def event(self) -> Event | None:
        """Return the next event, comments left out; ``None`` at the end of the stream."""
        # Bounded as a whole: comments alone would keep the wait alive, too.
        async with asyncio.timeout(BOUND):
            while True:
                block, separator, rest = self._buffer.partition("\n\n")
                if separator:
                    self._buffer = rest
                    event = _read(block)
                    if event is not None:
                        self.last_id = event.id or self.last_id
                        return event
                elif self._ended:
                    return None
                else:
                    await self._more()

    async def message(self) -> Any:
        """Return the next message; ``None`` at the end."""
        while (event := await self.event()) is not None:
            if event.data:
                return event.message
        return None

    async def messages(self) -> list[Any]:
        """Return all messages until the stream ends."""
        found = []
        while (message := await self.message()) is not None:
            found.append(message)
        return found

    async def is_silent(self, seconds: float = 0.3) -> bool:
        """Return whether nothing comes for a while."""
        try:
            async with asyncio.timeout(seconds):
                await self.event()
        except TimeoutError:
            return True
        return False

    async def close(self) -> None:
        """Let go of the connection, as a client that dies does."""
        self._gone.set()
        async with asyncio.timeout(BOUND):
            await asyncio.wait([self._task])
        self._task.exception()

    async def _more(self) -> None:
        event = await self._next()
        text = event.get("body", b"").decode()
        self._buffer += text
        self.text += text
        self._ended = not event.get("more_body", False)

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


class Client:
    """One session of a legacy revision, at one or several applications."""

    def __init__(self, *applications: Any, path: str = "/mcp", **headers: str) -> None:
        self._applications = itertools.cycle(applications)
        self._path = path
        self._headers = {**HEADERS, **{k.replace("_", "-"): v for k, v in headers.items()}}
        self._ids = itertools.count(1)

    async def open(
        self, revision: str = "2025-11-25", *, initialized: bool = True, **capabilities: Any
    ) -> Client:
        """Open the session."""
        params = {
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "streaming", "version": "1"},
        }
        async with self.post("initialize", **params) as opened:
            self._headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
            self._headers["Mcp-Protocol-Version"] = revision
        if initialized:
            await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    @property
    def session_id(self) -> str:
        """The secret ``Mcp-Session-Id``."""
        return self._headers["Mcp-Session-Id"]

    def connection(self, application: Any, method: str, message: Any, **headers: str) -> Connection:
        """Begin an HTTP request."""
        given = {**self._headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
        scope = scope_of(self._path, method=method, headers=given.items())
        body = b"" if message is None else json.dumps(message).encode()
        return Connection(application, scope, body)

    @asynccontextmanager
    async def request(
        self, method: str, message: Any = None, **headers: str
    ) -> AsyncIterator[Connection]:
        """Make an HTTP request at the next application."""
        connection = self.connection(next(self._applications), method, message, **headers)
        try:
            await connection.start()
            yield connection
        finally:
            await connection.close()

    def post(self, method: str, /, *, id: Any = None, **params: Any) -> Any:
        """Send a request."""
        message = {"jsonrpc": "2.0", "id": next(self._ids) if id is None else id, "method": method}
        return self.request("POST", {**message, "params": params})

    def call(self, tool: str, /, *, id: Any = None, token: Any = None, **arguments: Any) -> Any:
        """Call a tool; ``token`` asks for progress."""
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.post("tools/call", id=id, name=tool, arguments=arguments, **meta)

    def listen(self, last_event_id: str | None = None) -> Any:
        """GET the session's own stream, or what follows an event."""
        given = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        return self.request("GET", **given)

    async def send(self, message: dict[str, Any]) -> int:
        """Send a notification or a response; return the status."""
        async with self.request("POST", message) as connection:
            return connection.status

    async def answer(self, question: dict[str, Any], result: dict[str, Any]) -> int:
        """Answer a request of the server's."""
        return await self.send({"jsonrpc": "2.0", "id": question["id"], "result": result})

    async def result(self, tool: str, /, **options: Any) -> Any:
        """Call a tool and return its result, whichever way it is answered."""
        async with self.call(tool, **options) as connection:
            answer = (
                (await connection.messages())[-1]
                if connection.is_stream
                else (await connection.json())
            )
        return answer["result"]


def _read(block: str) -> Event | None:
    fields: dict[str, str] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        if name:
            fields[name] = value.removeprefix(" ")
    return Event(fields.get("id"), fields.get("data", "")) if "data" in fields else None
