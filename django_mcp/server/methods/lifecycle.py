"""How each era begins: ``initialize`` with its companions, and ``server/discover``."""

from __future__ import annotations

from typing import Any, Final

from mcp_types import InitializeRequestParams, RequestParams

from ...protocol.errors import invalid_params
from ...protocol.lifecycle import Sender, SessionInfo, negotiate
from ...protocol.messages import Notification, encode, is_request_id
from ...protocol.versions import MODERN, fit
from ...store.requests.inbox import Inbox
from ...store.sessions.session_rows import SessionStore
from ..calling import Result
from ..capabilities import capabilities
from ..exchange import Exchange
from ..paging import list_caching
from ..results import dump

MAX_INFO_BYTES: Final = 8 * 1024
"""Most that a session keeps of ``clientInfo``, as JSON; and as much of ``capabilities``."""
MAX_SENDER_DEPTH: Final = 30
"""Deepest nesting of it. MariaDB keeps no JSON deeper than 32; one bound for every database."""


def initialize(exchange: Exchange, params: InitializeRequestParams) -> Result:
    """Open a session (2025-11-25, basic/lifecycle, "Initialization")."""
    revision = negotiate(params.protocol_version)
    sender = Sender(
        _bounded("clientInfo", _without_large_icons(_kept(dump(params.client_info)))),
        _bounded("capabilities", _kept(dump(params.capabilities))),
    )
    _, secret = SessionStore(exchange.server.name).open(exchange.principal, revision, sender)
    server = exchange.server
    body: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": capabilities(server, revision),
        "serverInfo": fit("Implementation", server.implementation(exchange.version), revision),
    }
    if server.instructions:
        body["instructions"] = server.instructions
    return Result(body, session_id=secret)


def initialized(notification: Notification, session: SessionInfo, server: str) -> None:
    """Note that the client is ready."""
    if not session.initialized:
        SessionStore(server).mark_initialized(session)


def cancel(notification: Notification, session: SessionInfo, server: str) -> None:
    """Cancel a request (2025-11-25, basic/utilities/cancellation); what is malformed is ignored."""
    request_id, reason = notification.params.get("requestId"), notification.params.get("reason")
    if is_request_id(request_id):
        Inbox(server).cancel(session, request_id, reason if isinstance(reason, str) else "")


def ping(exchange: Exchange, params: RequestParams) -> Result:
    """Answer with nothing (2025-11-25, basic/utilities/ping)."""
    return Result({})


def discover(exchange: Exchange, params: RequestParams) -> Result:
    """Say what the server is and can do (2026-07-28, server/discover)."""
    server = exchange.server
    body: dict[str, Any] = {
        "supportedVersions": [revision.name for revision in MODERN],
        "capabilities": capabilities(server, exchange.revision),
    }
    if server.instructions:
        body["instructions"] = server.instructions
    return Result(body, list_caching((), exchange))


def _without_large_icons(info: dict[str, Any]) -> dict[str, Any]:
    """Return what a client says of itself; icons may be whole images, which nobody here shows."""
    fits = len(encode(info)) <= MAX_INFO_BYTES
    return info if fits else {name: value for name, value in info.items() if name != "icons"}


def _bounded(what: str, value: dict[str, Any]) -> dict[str, Any]:
    if len(encode(value)) > MAX_INFO_BYTES:
        raise invalid_params(f"{what} is too large; keep it to {MAX_INFO_BYTES} bytes")
    return value


def _kept(value: Any, depth: int = 0) -> Any:
    if depth > MAX_SENDER_DEPTH:
        raise invalid_params(
            "clientInfo and capabilities are nested too deeply; keep them to "
            f"{MAX_SENDER_DEPTH} levels"
        )
    # U+0000 is legal in JSON and refused by PostgreSQL.
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, dict):
        return {_kept(key): _kept(member, depth + 1) for key, member in value.items()}
    return [_kept(item, depth + 1) for item in value] if isinstance(value, list) else value
