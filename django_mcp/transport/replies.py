"""Outcomes as HTTP: the one table from an error and its origin to a status."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Final

from ..protocol import headers, messages, sse
from ..protocol.errors import ErrorCode, MCPError, SessionNotFound, Unavailable, internal_error
from ..protocol.messages import RequestId
from ..protocol.versions import Era
from ..server.calling import Result
from .http import Reply

logger = logging.getLogger("django_mcp.request")

#: Every reply is the caller's own, and JSON-RPC however it was asked for.
COMMON: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

#: Nothing on the way may hold back, compress or keep what belongs to one connection.
STREAMED: Final = {
    "Content-Type": sse.MEDIA_TYPE,
    "Cache-Control": "no-cache, no-transform",
    "Content-Encoding": "identity",
    "X-Accel-Buffering": "no",
    "X-Content-Type-Options": "nosniff",
}

# 2026-07-28, basic/transports/streamable-http, "Protocol Version Header" and "Server Validation",
# and basic/index, "Per-request protocol fields". In legacy revisions an error of dispatch is an
# ordinary answer: clients take other statuses for a failure of the transport, and 404 for the
# loss of their session.
_MODERN_DISPATCH: Final[dict[int, int]] = {
    ErrorCode.METHOD_NOT_FOUND: 404,
    ErrorCode.HEADER_MISMATCH: 400,
    ErrorCode.MISSING_CLIENT_CAPABILITY: 400,
    ErrorCode.UNSUPPORTED_PROTOCOL_VERSION: 400,
}


class Refused(Exception):
    """A request that the gate turned away, with the status that says so."""

    def __init__(self, status: int, error: MCPError, **response_headers: str) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = {name.replace("_", "-"): text for name, text in response_headers.items()}


class Forbidden(Refused):
    """A caller who is known, and whose credentials do not suffice for this."""


def refuse(
    status: int, message: str, *, code: int = ErrorCode.INVALID_REQUEST, **response_headers: str
) -> Refused:
    """Return the refusal of a request: raise it in the gate."""
    return Refused(status, MCPError(code, message), **response_headers)


def gate_status(error: MCPError) -> int:
    """Return the status of an error found before dispatch, in either era."""
    if isinstance(error, SessionNotFound):
        return 404
    return 503 if isinstance(error, Unavailable) else 400


def dispatch_status(error: MCPError, era: Era) -> int:
    """Return the status of an error that a handler or user code ended with."""
    if isinstance(error, Unavailable):
        return 503
    if isinstance(error, SessionNotFound):
        return 404
    return _MODERN_DISPATCH.get(error.code, 200) if era is Era.MODERN else 200


def answer(
    request_id: RequestId, outcome: Result | MCPError, era: Era, said: Sequence[bytes] = ()
) -> Reply:
    """Return the reply to a request that was dispatched; ``said`` comes before its end."""
    if said:
        return events_of([*said, encode(request_id, outcome)])
    if isinstance(outcome, MCPError):
        return error(request_id, outcome, dispatch_status(outcome, era))
    extra = {} if outcome.session_id is None else {headers.SESSION_ID: outcome.session_id}
    return _json(200, encode(request_id, outcome), **extra)


def encode(request_id: RequestId | None, outcome: Result | MCPError) -> bytes:
    """Return one answer as bytes; a result that JSON has no form for becomes an error."""
    if isinstance(outcome, MCPError):
        return messages.encode(messages.error_response(request_id, outcome))
    assert request_id is not None
    try:
        return messages.encode(messages.result_response(request_id, outcome.body))
    except ValueError:
        logger.exception("A result could not be encoded")
        return messages.encode(messages.error_response(request_id, internal_error()))


def batch(answers: Sequence[bytes], said: Sequence[bytes] = ()) -> Reply:
    """Return the reply to a batch: an array, or nothing where nothing was asked."""
    if said:
        return events_of([*said, *answers])
    return _json(200, b"[" + b",".join(answers) + b"]") if answers else accepted()


def error(
    request_id: RequestId | None, error: MCPError, status: int, **response_headers: str
) -> Reply:
    """Return an error reply. ``request_id`` is ``None`` where the body could not be read."""
    if isinstance(error, Unavailable):
        response_headers.setdefault("Retry-After", str(error.retry_after))
    return _json(status, encode(request_id, error), **response_headers)


def accepted() -> Reply:
    """Return the reply to a notification or a response."""
    return Reply(202, headers=COMMON)


def ended() -> Reply:
    """Return the reply to DELETE."""
    return Reply(204, headers=COMMON)


def stream(events: AsyncGenerator[bytes]) -> Reply:
    """Return a reply whose events are sent as they come."""
    return Reply(200, headers=STREAMED, events=events)


def as_events(reply: Reply) -> Reply:
    """Return a JSON reply as a stream of one event, for a client that takes nothing else."""
    if reply.headers.get("Content-Type") == sse.MEDIA_TYPE:
        return reply
    return replace(reply, body=sse.event(reply.body), headers={**reply.headers, **STREAMED})


def events_of(messages: Sequence[bytes]) -> Reply:
    """Return a stream that is complete already."""
    return Reply(200, b"".join(sse.event(each) for each in messages), STREAMED)


def _json(status: int, body: bytes, **response_headers: str) -> Reply:
    return Reply(status, body, {**COMMON, "Content-Type": "application/json", **response_headers})
