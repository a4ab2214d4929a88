"""Messages of either era, and the headers that go with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

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

CLIENT_INFO = {"name": "test", "version": "1"}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
"""What every POST has."""

_NAME_SOURCES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


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


INITIALIZED = notification("notifications/initialized")


def tool_call(tool: str, request_id: Any = 1, **arguments: Any) -> dict[str, Any]:
    """Return the call of a tool, without metadata."""
    return request("tools/call", request_id, name=tool, arguments=arguments)


def cancellation(request_id: Any, **more: Any) -> dict[str, Any]:
    """Return the notification that takes a request back."""
    return notification("notifications/cancelled", requestId=request_id, **more)


def response(request_id: Any, result: Any) -> dict[str, Any]:
    """Return the answer to a request of the server's."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def opening(revision: str, **params: Any) -> dict[str, Any]:
    """Return the parameters of ``initialize``."""
    standing = {"protocolVersion": revision, "capabilities": {}, "clientInfo": CLIENT_INFO}
    return {**standing, **params}


def modern_request(
    method: str, request_id: Any = 1, meta: Mapping[str, Any] | None = None, **params: Any
) -> dict[str, Any]:
    """Return a modern request. ``meta`` changes its metadata; :data:`OMIT` removes a member."""
    standing = {META_VERSION: MODERN, META_CAPABILITIES: {}, META_CLIENT: CLIENT_INFO}
    return request(
        method, request_id, **params, _meta=without_omitted({**standing, **(meta or {})})
    )


def mirrored(message: Any) -> dict[str, str]:
    """Return the headers that mirror a modern request of plain ASCII."""
    params = message.get("params", {})
    headers = {"Mcp-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
    source = params.get(_NAME_SOURCES.get(message["method"], ""))
    return headers | {"Mcp-Name": source} if isinstance(source, str) else headers


def modern(
    method: str, request_id: Any = 1, **params: Any
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a modern request and the headers that mirror it."""
    message = modern_request(method, request_id, **params)
    return message, mirrored(message)


def without_omitted(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``members`` without those that are :data:`OMIT`."""
    return {name: value for name, value in members.items() if value is not OMIT}


def hyphened(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return headers by their names, which keyword arguments have with underscores."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


def encoded(message: Any) -> bytes:
    """Return a message as the body of a POST; bytes are a body already."""
    return message if isinstance(message, bytes) else json.dumps(message).encode()
