"""``logging/setLevel``: how severe a message must be to be sent to a session."""

from __future__ import annotations

from mcp_types import SetLevelRequestParams

from ...store.sessions.session_rows import SessionStore
from ..calling import Result
from ..exchange import Exchange


def set_level(exchange: Exchange, params: SetLevelRequestParams) -> Result:
    """Keep the level with the session (2025-11-25, server/utilities/logging)."""
    if exchange.session is not None:
        SessionStore(exchange.server.name).set_log_level(exchange.session, params.level)
    return Result({})
