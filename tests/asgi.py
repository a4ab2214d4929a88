"""A small ASGI client: one request, driven by hand, with whatever bytes and events a test wants."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeVar

from django_mcp.store.ledger import close_ledger
from django_mcp.transport.lanes import close_lanes

T = TypeVar("T")

BOUND = 20
"""Seconds after which a request that has not been answered is a failure."""


@dataclass
class Response:
    """What the application sent."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    consumed: int = field(default=0)
    """How many body events the application asked for."""

    def json(self) -> Any:
        return json.loads(self.body)

    def messages(self) -> list[Any]:
        """Return the messages, whether they came as JSON or as events."""
        if not self.headers["content-type"].startswith("text/event-stream"):
            return [self.json()]
        lines = self.body.decode().splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def urlconf(*patterns: Any) -> ModuleType:
    """Return a URLconf for ``settings.ROOT_URLCONF``, without a file."""
    module = ModuleType("urlconf")
    module.urlpatterns = list(patterns)  # type: ignore[attr-defined]
    return module


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine on a loop of its own, and leave no thread or connection behind."""

    async def main() -> T:
        try:
            return await coroutine
        finally:
            await asyncio.to_thread(close_ledger)
            await close_lanes()

    return asyncio.run(main())


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
        "server": ("testserver", 80),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        **extra,
    }


async def request(application: Any, scope: dict[str, Any], *chunks: bytes) -> Response:
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
    headers = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
    body = b"".join(event.get("body", b"") for event in rest)
    return Response(start["status"], headers, body, given)


async def post(
    application: Any, message: Any, path: str = "/mcp", *, host: str = "testserver", **extra: Any
) -> Response:
    """POST one MCP message; headers come from ``headers=``, the rest goes into the scope."""
    headers = [
        ("Host", host),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        *dict(extra.pop("headers", {})).items(),
    ]
    scope = scope_of(path, headers=headers, **extra)
    return await request(application, scope, json.dumps(message).encode())


def modern(
    method: str, request_id: Any = 1, **params: Any
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a modern request and the headers that mirror it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": method,
        "params": {**params, "_meta": meta},
    }
    headers = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    name = params.get("name", params.get("uri"))
    return message, headers if name is None else {**headers, "Mcp-Name": name}


async def call(application: Any, tool: str, path: str = "/mcp", **extra: Any) -> Response:
    """Call a tool in the modern era; its arguments come from ``arguments=``."""
    message, headers = modern("tools/call", name=tool, arguments=extra.pop("arguments", {}))
    headers |= extra.pop("headers", {})
    return await post(application, message, path, headers=headers, **extra)
