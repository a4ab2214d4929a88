"""Messages of either era, and the headers that go with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from .doors import Door, HTTPAnswer

MODERN = "2026-07-28"
LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
REVISIONS = (*LEGACY, MODERN)

META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT = "io.modelcontextprotocol/clientInfo"
META_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
META_SERVER = "io.modelcontextprotocol/serverInfo"

IDS = (4242, 0, -1, 2**53 + 1, "abc", "4242", "", "ünï")
"""Ids that a careless server changes, or takes for another, or for none."""

STANDING = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Omit(Enum):
    """The value of a header or member that is to be left out."""

    OMIT = "left out"

    def __repr__(self) -> str:
        return self.value


OMIT = Omit.OMIT


def request(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    """Return a request without metadata."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message | {"params": params} if params else message


def notification(method: str, **params: Any) -> dict[str, Any]:
    """Return a notification."""
    return {key: value for key, value in request(method, **params).items() if key != "id"}


def modern_request(
    method: str, request_id: Any = 1, meta: Mapping[str, Any] | None = None, **params: Any
) -> dict[str, Any]:
    """Return a modern request. ``meta`` changes its metadata; :data:`OMIT` removes a member."""
    standing = {
        META_VERSION: MODERN,
        META_CAPABILITIES: {},
        META_CLIENT: {"name": "t", "version": "1"},
    }
    return request(
        method, request_id, **params, _meta=without_omitted({**standing, **(meta or {})})
    )


def mirrored(message: Any) -> dict[str, str]:
    """Return the headers that mirror a modern request of plain ASCII."""
    params = message.get("params", {})
    headers = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
    name = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
    source = params.get(name.get(message["method"], ""))
    return headers | {"Mcp-Name": source} if isinstance(source, str) else headers


def without_omitted(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``members`` without those that are :data:`OMIT`."""
    return {name: value for name, value in members.items() if value is not OMIT}


def encoded(message: Any) -> bytes:
    """Return a message as the body of a POST; bytes are a body already."""
    return message if isinstance(message, bytes) else json.dumps(message).encode()


@dataclass(frozen=True)
class Caller:
    """A client at one door and one path, with the headers that it sends each time."""

    door: Door
    path: str = "/mcp"
    headers: Mapping[str, Any] = field(default_factory=lambda: STANDING)
    revision: str = MODERN
    session: str | None = None

    def post(self, message: Any, **headers: Any) -> HTTPAnswer:
        """POST a message as it stands. Names of ``headers`` have underscores for hyphens."""
        given = without_omitted({**self.headers, **_hyphened(headers)})
        return self.door.send("POST", self.path, list(given.items()), encoded(message))

    def call(self, method: str, request_id: Any = 1, **params: Any) -> HTTPAnswer:
        """Send a request as the caller's revision has it."""
        if self.session is not None:
            return self.post(request(method, request_id, **params))
        message = modern_request(method, request_id, **params)
        return self.post(message, **mirrored(message))

    def send(self, method: str, body: bytes = b"", **headers: Any) -> HTTPAnswer:
        """Make a request of any HTTP method."""
        given = without_omitted({**self.headers, **_hyphened(headers)})
        return self.door.send(method, self.path, list(given.items()), body)

    def with_headers(self, **headers: Any) -> Caller:
        """Return a caller that sends these headers as well."""
        return replace(self, headers={**self.headers, **_hyphened(headers)})

    def initialize(self, revision: str, request_id: Any = 1, **params: Any) -> HTTPAnswer:
        """Send ``initialize``."""
        given = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
            **params,
        }
        return self.post(request("initialize", request_id, **given))

    def opened(self, revision: str = LEGACY[-1]) -> Caller:
        """Return a caller in a new session of ``revision``, which is ready."""
        answer = self.initialize(revision)
        session = answer.header("Mcp-Session-Id")
        assert session, answer
        assert answer.result["protocolVersion"] == revision
        member = replace(
            self.with_headers(Mcp_Session_Id=session, Mcp_Protocol_Version=revision),
            revision=revision,
            session=session,
        )
        assert member.post(notification("notifications/initialized")).status == 202
        return member

    def in_revision(self, revision: str) -> Caller:
        """Return a caller that speaks ``revision``, in a session if it needs one."""
        return self if revision == MODERN else self.opened(revision)


def _hyphened(headers: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
