"""The base protocol: ``initialize``, ``server/discover``, ``ping``, cancellation, log levels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from mcp_types import InitializeRequestParams, RequestParams, SetLevelRequestParams

from ...protocol.errors import invalid_params
from ...protocol.lifecycle import Sender, SessionInfo, negotiate
from ...protocol.messages import Notification, encode, is_request_id
from ...protocol.versions import MODERN, Revision, fit
from ...store import inbox
from ...store.sessions.session_rows import mark_initialized, open_session, set_log_level
from ..default_server import site_version
from ..exchange import Exchange
from ..paging import list_caching
from ..registry import MCPServer
from ..results import Result, dump
from ..ui_extension import EXTENSION, SETTINGS, shows_apps

MAX_INFO_BYTES: Final = 8 * 1024
"""Most that a session stores of ``clientInfo``, as JSON; and as much of ``capabilities``."""
MAX_SENDER_DEPTH: Final = 30
"""Deepest nesting of it. MariaDB keeps no JSON deeper than 32; one bound for every database."""

FEATURES: Final = ("completions", "prompts", "resources", "tools")
"""The capabilities that depend on what is registered."""

_CHANGES: Final = {
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "tools": {"listChanged": True},
}
"""What clients can be notified of; the same members in all revisions."""


def initialize(server: MCPServer, exchange: Exchange, params: InitializeRequestParams) -> Result:
    """Open a session (2025-11-25, basic/lifecycle, "Initialization")."""
    revision = negotiate(params.protocol_version)
    sender = Sender(
        _bounded("clientInfo", _without_large_icons(_storable(dump(params.client_info)))),
        _bounded("capabilities", _storable(dump(params.capabilities))),
    )
    _, secret = open_session(exchange.server_name, exchange.principal, revision, sender)
    version = exchange.settings.server_version or site_version()
    body: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": capabilities(server, revision, sender),
        "serverInfo": fit("Implementation", server.implementation(version), revision),
    }
    if server.instructions:
        body["instructions"] = server.instructions
    return Result(body, session_id=secret)


def initialized(notification: Notification, session: SessionInfo, server: str) -> None:
    """Note that the client is ready."""
    if not session.initialized:
        mark_initialized(session)


def cancel(notification: Notification, session: SessionInfo, server: str) -> None:
    """Cancel a request (2025-11-25, basic/utilities/cancellation); what is malformed is ignored."""
    request_id, reason = notification.params.get("requestId"), notification.params.get("reason")
    if is_request_id(request_id):
        text = reason if isinstance(reason, str) else ""
        inbox.cancel(server, session, request_id, text)


def set_level(server: MCPServer, exchange: Exchange, params: SetLevelRequestParams) -> Result:
    """Keep the level with the session (2025-11-25, server/utilities/logging)."""
    if exchange.session is not None:
        set_log_level(exchange.session, params.level)
    return Result({})


def ping(server: MCPServer, exchange: Exchange, params: RequestParams) -> Result:
    """Answer with nothing (2025-11-25, basic/utilities/ping)."""
    return Result({})


def discover(server: MCPServer, exchange: Exchange, params: RequestParams) -> Result:
    """Say what the server is and can do (2026-07-28, server/discover)."""
    body: dict[str, Any] = {
        "supportedVersions": [revision.name for revision in MODERN],
        "capabilities": capabilities(server, exchange.revision, exchange.sender),
    }
    if server.instructions:
        body["instructions"] = server.instructions
    caching = list_caching((), exchange)
    if server.has_translated_instructions:
        caching = replace(caching, scope="private")
    return Result(body, caching)


def capabilities(server: MCPServer, revision: Revision, client: Sender) -> dict[str, Any]:
    """Return ``ServerCapabilities``: the features for which the site has registered something.

    They follow from the registry, not from the worker that answers or the way in, so that every
    worker of a deployment says the same.
    """
    declared: dict[str, Any] = {
        name: dict(_CHANGES.get(name, {})) for name in FEATURES if name in server.features
    }
    if not revision.modern:
        # The session keeps the level that logging/setLevel asks for. In the modern era the level
        # comes with each request.
        declared["logging"] = {}
    if server.apps and (revision.modern or shows_apps(client.capabilities, revision)):
        # Schemas before 2026-07-28 have no word for extensions: clients that use it know it.
        declared["extensions"] = {EXTENSION: dict(SETTINGS)}
    return declared


def _without_large_icons(info: dict[str, Any]) -> dict[str, Any]:
    """Return what a client says of itself; icons may be whole images, which nobody here shows."""
    fits = len(encode(info)) <= MAX_INFO_BYTES
    return info if fits else {name: value for name, value in info.items() if name != "icons"}


def _bounded(what: str, value: dict[str, Any]) -> dict[str, Any]:
    if len(encode(value)) > MAX_INFO_BYTES:
        raise invalid_params(f"{what} is too large; keep it to {MAX_INFO_BYTES} bytes")
    return value


def _storable(value: Any, depth: int = 0) -> Any:
    if depth > MAX_SENDER_DEPTH:
        raise invalid_params(
            "clientInfo and capabilities are nested too deeply; keep them to "
            f"{MAX_SENDER_DEPTH} levels"
        )
    # U+0000 is legal in JSON and refused by PostgreSQL.
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, dict):
        return {_storable(key): _storable(member, depth + 1) for key, member in value.items()}
    return [_storable(item, depth + 1) for item in value] if isinstance(value, list) else value
