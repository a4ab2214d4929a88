"""A client that sends each of its requests to another worker than the one before."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


class Answer:
    """A response that is read as it comes."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.response = response
        self.lines = response.aiter_lines()
        self.last_id: str | None = None

    async def messages(self) -> AsyncIterator[Any]:
        """Yield the messages of a body or of a stream, whichever it is."""
        if not self.headers.get("content-type", "").startswith("text/event-stream"):
            body = await self.response.aread()
            if body:
                yield json.loads(body)
            return
        event_id: str | None = None
        async for line in self.lines:
            name, _, value = line.partition(": ")
            if name == "id":
                event_id = value
            elif name == "data" and value:
                self.last_id = event_id
                yield json.loads(value)
            elif name == "data":
                self.last_id = event_id

    async def all(self) -> list[Any]:
        """Return all messages."""
        return [message async for message in self.messages()]


class Client:
    """One legacy session, spread over all workers."""

    def __init__(self, urls: Sequence[str], http: httpx.AsyncClient) -> None:
        self._every_url = urls
        self._urls = itertools.cycle(urls)
        self._http = http
        self._headers = dict(HEADERS)
        self._ids = itertools.count(1)
        self._sent = [0]

    def at(self, worker: int) -> Client:
        """Return the same session, kept to one worker."""
        kept = copy.copy(self)
        kept._urls = itertools.cycle([self._every_url[worker]])
        return kept

    @property
    def session_id(self) -> str:
        """The secret ``Mcp-Session-Id``."""
        return self._headers["Mcp-Session-Id"]

    @property
    def sent(self) -> int:
        """How many requests of the session were sent so far, to whatever worker."""
        return self._sent[0]

    async def open(self, revision: str = "2025-11-25", **capabilities: Any) -> Client:
        """Open the session, without waiting until the workers know that it is ready."""
        params = {
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "workers", "version": "1"},
        }
        async with self.post("initialize", **params) as answer:
            assert answer.status == 200, await answer.all()
            self._headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
            self._headers["Mcp-Protocol-Version"] = revision
        return self

    async def ready(self) -> Client:
        """Say that the client is ready."""
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    @asynccontextmanager
    async def request(
        self, method: str, message: Any = None, **headers: str
    ) -> AsyncIterator[Answer]:
        """Make a request at the next worker."""
        given = {**self._headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
        body = None if message is None else json.dumps(message)
        if "Mcp-Session-Id" in given:
            self._sent[0] += 1
        async with self._http.stream(
            method, next(self._urls), headers=given, content=body
        ) as response:
            yield Answer(response)

    def post(self, method: str, /, *, id: Any = None, **params: Any) -> Any:
        """Send a request."""
        message = {"jsonrpc": "2.0", "id": next(self._ids) if id is None else id, "method": method}
        return self.request("POST", {**message, "params": params})

    def call(self, tool: str, /, *, id: Any = None, **arguments: Any) -> Any:
        """Call a tool."""
        return self.post("tools/call", id=id, name=tool, arguments=arguments)

    def listen(self, last_event_id: str | None = None) -> Any:
        """GET a stream."""
        given = {} if last_event_id is None else {"Last_Event_ID": last_event_id}
        return self.request("GET", **given)

    async def send(self, message: Any) -> int:
        """Send a notification or a response."""
        async with self.request("POST", message) as answer:
            await answer.response.aread()
            return answer.status


class Stateless:
    """A client of the modern revision, at one worker."""

    REVISION = "2026-07-28"

    def __init__(self, url: str, http: httpx.AsyncClient) -> None:
        self._url = url
        self._http = http

    @asynccontextmanager
    async def post(
        self, method: str, /, *, id: Any = 1, name: str | None = None, **params: Any
    ) -> AsyncIterator[Answer]:
        """Send a request."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": self.REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        mirrored = {"Mcp-Protocol-Version": self.REVISION, "Mcp-Method": method}
        if name is not None:
            params["name"] = mirrored["Mcp-Name"] = name
        message = {
            "jsonrpc": "2.0",
            "id": id,
            "method": method,
            "params": {**params, "_meta": meta},
        }
        async with self._http.stream(
            "POST", self._url, headers={**HEADERS, **mirrored}, json=message
        ) as response:
            yield Answer(response)

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool; return its result, as it was before it became text."""
        async with self.post("tools/call", name=tool, arguments=arguments) as answer:
            result = (await answer.all())[-1]["result"]
        assert not result.get("isError"), result
        return result.get("structuredContent")
