"""Error codes and the one exception that carries a JSON-RPC error.

Raise :class:`MCPError` wherever a rule of the protocol is broken: it becomes a reply, of which
``http.replies`` chooses the HTTP status. Nothing else builds error objects.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from mcp_types import jsonrpc


class ErrorCode(IntEnum):
    """The codes of the protocol that a server may emit."""

    PARSE_ERROR = jsonrpc.PARSE_ERROR
    INVALID_REQUEST = jsonrpc.INVALID_REQUEST
    METHOD_NOT_FOUND = jsonrpc.METHOD_NOT_FOUND
    INVALID_PARAMS = jsonrpc.INVALID_PARAMS
    INTERNAL_ERROR = jsonrpc.INTERNAL_ERROR
    #: Legacy revisions only, and on purpose although 2026-07-28 discourages codes of this range
    #: (basic/index, "Error Codes"): deployed clients recognise a lost session by it.
    SESSION_NOT_FOUND = -32001
    #: Revisions up to 2025-11-25 (server/resources, "Error Handling"); later ones: INVALID_PARAMS.
    RESOURCE_NOT_FOUND = -32002
    #: Outside the range that JSON-RPC reserves (2026-07-28, basic/index, "Error Codes").
    INSUFFICIENT_SCOPE = -31403
    #: What official servers answer to a request that its client has cancelled.
    REQUEST_CANCELLED = -32800
    HEADER_MISMATCH = jsonrpc.HEADER_MISMATCH
    MISSING_CLIENT_CAPABILITY = jsonrpc.MISSING_REQUIRED_CLIENT_CAPABILITY
    UNSUPPORTED_PROTOCOL_VERSION = jsonrpc.UNSUPPORTED_PROTOCOL_VERSION


class MCPError(Exception):
    """A JSON-RPC error on its way to the client.

    ``message`` is shown to the peer as it stands: one sentence that says what is wrong and, where
    possible, what would be right. ``data`` must be JSON.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = int(code)
        self.message = message
        self.data = data

    def as_object(self) -> dict[str, Any]:
        """Return the ``error`` member of a JSON-RPC error response."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


INTERNAL: Final = "Internal error; the server has logged the details"
"""A fixed sentence, because the reason belongs in the log."""


class Failed(MCPError):
    """Something was not foreseen. It has been logged under the reference that is in ``message``."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INTERNAL_ERROR, message)


class TryLater(MCPError):
    """The request is in order, and yet not served now. ``retry_after`` is in whole seconds."""

    retry_after: int


class Unavailable(TryLater):
    """The server cannot serve this now: HTTP 503."""

    def __init__(self, message: str, *, retry_after: int = 5) -> None:
        super().__init__(ErrorCode.INTERNAL_ERROR, message)
        self.retry_after = retry_after


class TooManyRequests(TryLater):
    """The caller has asked for more than one may: HTTP 429 (RFC 6585, section 4).

    In a batch there is no header for each, so ``data`` says the seconds as well.
    """

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, message, {"retryAfterSeconds": retry_after})
        self.retry_after = retry_after


class InsufficientScope(MCPError):
    """The credentials are not good for this: HTTP 403 (RFC 6750, section 3.1).

    401 where there were none. ``challenge`` has the parameters of the ``Bearer`` challenge; in a
    batch there is no header for each, so ``data`` has them as well.
    """

    def __init__(self, message: str, challenge: dict[str, str], *, status: int = 403) -> None:
        super().__init__(ErrorCode.INSUFFICIENT_SCOPE, message, challenge)
        self.challenge = challenge
        self.status = status


class SessionNotFound(MCPError):
    """Unknown, expired, ended or foreign session: one wording for all, so nothing is disclosed."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.SESSION_NOT_FOUND, "Session not found; send initialize to open a new one"
        )


def cancelled() -> MCPError:
    """Return the end of a request that was cancelled.

    2025-11-25, basic/utilities/cancellation, says SHOULD NOT respond. We do, in the legacy
    revisions, since clients otherwise wait for ever.
    """
    return MCPError(ErrorCode.REQUEST_CANCELLED, "Request cancelled")


def session_ended() -> MCPError:
    """Return the end of a request whose session was ended while it ran."""
    return MCPError(ErrorCode.SESSION_NOT_FOUND, "The session ended while the request ran")


def taken_for_dead() -> MCPError:
    """Return the end of a request whose process had given no sign of life for too long."""
    return internal_error(
        "The process that ran this request has ended before it could answer; whether the request "
        "took effect is unknown"
    )


def shutting_down() -> MCPError:
    """Return the end of a request whose process was asked to end while it ran."""
    return internal_error("The server is shutting down; whether the request took effect is unknown")


def access_revoked() -> MCPError:
    """Return the end of a request whose caller may use the server no longer."""
    return MCPError(ErrorCode.INVALID_REQUEST, "Access was revoked while the request ran")


def invalid_params(message: str, data: Any = None) -> MCPError:
    """Return the error for parameters that the method cannot accept."""
    return MCPError(ErrorCode.INVALID_PARAMS, message, data)


def internal_error(message: str) -> MCPError:
    """Return the error for what is no fault of the request."""
    return MCPError(ErrorCode.INTERNAL_ERROR, message)
