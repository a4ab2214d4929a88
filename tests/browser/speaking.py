"""An MCP client of the revisions with sessions, as plain HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

REVISION = "2025-11-25"
SECONDS = 15


@dataclass
class Speaker:
    """Speaks to an endpoint, in a session once it has one."""

    url: str
    http: httpx.Client
    headers: dict[str, str] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=lambda: count(101))

    @property
    def session(self) -> str:
        """The secret id of the session."""
        return self.headers["Mcp-Session-Id"]

    def send(self, method: str, *, id: int | None = None, **params: Any) -> httpx.Response:
        """Send a request, or without an id a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if id is not None:
            message["id"] = id
        accept = {"Accept": "application/json, text/event-stream"}
        return self.http.post(self.url, json=message, headers=accept | self.headers)

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request that succeeds, and return its result."""
        response = self.send(method, id=next(self.ids), **params)
        assert response.status_code == 200, response.text
        return response.json()["result"]

    def initialize(self, name: str) -> httpx.Response:
        """Ask for a session, as the client of this name."""
        client = {"name": name, "version": "1.0"}
        return self.send(
            "initialize", id=1, protocolVersion=REVISION, capabilities={}, clientInfo=client
        )

    def enter(self, name: str) -> None:
        """Open a session."""
        response = self.initialize(name)
        assert response.status_code == 200, response.text
        self.headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
        self.headers["MCP-Protocol-Version"] = REVISION

    def confirm(self) -> None:
        """Say that the session can begin."""
        assert self.send("notifications/initialized").status_code == 202


@contextmanager
def speaker_at(url: str) -> Iterator[Speaker]:
    """Give a client that has no session yet."""
    with httpx.Client(timeout=SECONDS, trust_env=False) as http:
        yield Speaker(url, http)
