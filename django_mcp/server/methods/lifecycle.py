"""How each era begins: ``initialize`` with its companions, and ``server/discover``."""

from __future__ import annotations

from typing import Any, Final

from mcp_types import InitializeRequestParams, RequestParams

from ...protocol.errors import invalid_params
from ...protocol.lifecycle import Sender, negotiate
from ...protocol.messages import encode
from ...protocol.versions import MODERN, fit
from ..calling import Result
from ..capabilities import capabilities
from ..exchange import Exchange
from ..paging import list_caching
from ..ports import SessionInfo, Sessions
from ..results import dump

MAX_SENDER_BYTES: Final = 64 * 1024
"""Most that a session keeps of what its client says about itself."""


def initialize(exchange: Exchange, params: InitializeRequestParams) -> Result:
    """Open a session (2025-11-25, basic/lifecycle, "Initialization")."""
    revision = negotiate(params.protocol_version)
    sender = Sender(_storable(dump(params.client_info)), _storable(dump(params.capabilities)))
    if len(encode([sender.info or {}, sender.capabilities])) > MAX_SENDER_BYTES:
        raise invalid_params("clientInfo and capabilities are too large to be kept")
    _, secret = exchange.ports.sessions.open(exchange.principal, revision, sender)
    server = exchange.server
    body: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": capabilities(server, revision),
        "serverInfo": fit("Implementation", server.implementation(), revision),
    }
    if server.instructions:
        body["instructions"] = server.instructions
    return Result(body, session_id=secret)


def initialized(session: SessionInfo, sessions: Sessions) -> None:
    """Note that the client is ready."""
    if not session.initialized:
        sessions.mark_initialized(session)


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


def _storable(value: Any) -> Any:
    # U+0000 is legal in JSON and refused by PostgreSQL.
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, dict):
        return {_storable(key): _storable(member) for key, member in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value
