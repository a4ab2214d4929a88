"""Outcomes as HTTP: the one table from an error and its origin to a status."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from mcp_types import SERVER_INFO_META_KEY

from ..protocol import headers, messages, sse
from ..protocol.errors import (
    INTERNAL,
    ErrorCode,
    Failed,
    InsufficientScope,
    MCPError,
    SessionNotFound,
    TooManyRequests,
    TryLater,
    internal_error,
)
from ..protocol.messages import RequestId
from ..protocol.versions import Era
from ..server.failures import report
from ..server.results import Result, tool_failure
from .event_stream import EventStream
from .request import IncomingRequest

logger = logging.getLogger("django_mcp.request")

_NO_HEADERS: Final[Mapping[str, str]] = {}

#: Every reply is the caller's own, and JSON-RPC however it was asked for.
COMMON: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
JSON_TYPE: Final = "application/json"
JSON: Final = {**COMMON, "Content-Type": JSON_TYPE}

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


class Reply:
    """A response as the view or the mount sends it."""

    __slots__ = ("body", "events", "headers", "status")

    def __init__(
        self,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] = _NO_HEADERS,
        events: EventStream | None = None,
    ) -> None:
        """``events`` are a stream instead of a body: chunks, each sent as soon as it comes."""
        self.status = status
        self.body = body
        self.headers = headers
        self.events = events

    def with_headers(self, more: Mapping[str, str]) -> Reply:
        """Return the same reply with more headers."""
        return Reply(self.status, self.body, {**self.headers, **more}, self.events)


class Refused(Exception):
    """A request that admission turned away, with the status that says so."""

    def __init__(self, status: int, error: MCPError, **response_headers: str) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = {name.replace("_", "-"): text for name, text in response_headers.items()}


class Forbidden(Refused):
    """A caller who is known, and whose credentials do not suffice for this."""


def refusal(
    status: int, message: str, *, code: int = ErrorCode.INVALID_REQUEST, **response_headers: str
) -> Refused:
    """Return the refusal of a request: raise it in admission."""
    return Refused(status, MCPError(code, message), **response_headers)


def admission_status(error: MCPError) -> int:
    """Return the status of an error found before dispatch, in either era."""
    return _status_of_its_own(error) or 400


def dispatch_status(error: MCPError, era: Era) -> int:
    """Return the status of an error that a handler or user code ended with."""
    ordinary = _MODERN_DISPATCH.get(error.code, 200) if era is Era.MODERN else 200
    return _status_of_its_own(error) or ordinary


def _status_of_its_own(error: MCPError) -> int | None:
    if isinstance(error, TryLater):
        return 429 if isinstance(error, TooManyRequests) else 503
    if isinstance(error, InsufficientScope):
        return error.status
    return 404 if isinstance(error, SessionNotFound) else None


def answer(outcome: Result | MCPError, body: bytes, era: Era, said: Sequence[bytes] = ()) -> Reply:
    """Return the reply to a request that was dispatched; ``said`` comes before its end."""
    if said:
        return events_of([*said, body])
    if isinstance(outcome, MCPError):
        return _error(body, outcome, dispatch_status(outcome, era))
    if outcome.session_id is None:
        return Reply(200, body, JSON)
    return _json(200, body, **{headers.SESSION_ID: outcome.session_id})


def encode(
    request_id: RequestId, outcome: Result | MCPError, limit: int
) -> tuple[Result | MCPError, bytes]:
    """Return an outcome, within ``limit`` bytes, and the message that says it.

    One that is too large becomes something that says so. Raises ``ValueError`` for what JSON has
    no form for.
    """
    body = _encoded(request_id, outcome)
    if len(body) > limit:
        logger.warning("An answer has %d bytes, and is not sent; see MAX_RESULT_BYTES", len(body))
        outcome = _too_large(outcome, len(body), limit)
        body = _encoded(request_id, outcome)
    return outcome, body


def _encoded(request_id: RequestId | None, outcome: Result | MCPError) -> bytes:
    if isinstance(outcome, MCPError):
        return messages.encode(messages.error_response(request_id, outcome))
    assert request_id is not None
    if outcome.key is not None:
        return messages.encode_result(request_id, _encoded_once(_Keyed(outcome.key, outcome.body)))
    return messages.encode({"jsonrpc": "2.0", "id": request_id, "result": outcome.body})


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A body that its key stands for."""

    key: Hashable
    body: dict[str, Any] = field(compare=False)


@lru_cache(maxsize=64)
def _encoded_once(keyed: _Keyed) -> bytes:
    return messages.encode(keyed.body)


def _too_large(outcome: Result | MCPError, size: int, limit: int) -> Result | MCPError:
    text = f"The result has {size} bytes, and at most {limit} are sent."
    if isinstance(outcome, MCPError) or not outcome.is_tool_result or outcome.type != "complete":
        return internal_error(text)
    advice = "Ask for a smaller part of it, page by page, or for a link to a resource that has it."
    return instead(outcome, f"{text} {advice}")


def instead(outcome: Result, text: str, *, failed: bool = False) -> Result:
    """Return the result of a tool that says ``text`` where ``outcome`` cannot be sent."""
    kept = {name: outcome.body[name] for name in ("resultType",) if name in outcome.body}
    info = outcome.body.get("_meta", {}).get(SERVER_INFO_META_KEY)
    kept |= {} if info is None else {"_meta": {SERVER_INFO_META_KEY: info}}
    failed = failed or outcome.failed
    return replace(outcome, body={**tool_failure(text), **kept}, failed=failed)


def batch(answers: Sequence[bytes], said: Sequence[bytes] = ()) -> Reply:
    """Return the reply to a batch: an array, or nothing where nothing was asked."""
    if said:
        return events_of([*said, *answers])
    return _json(200, b"[" + b",".join(answers) + b"]") if answers else accepted()


def error(
    request_id: RequestId | None, error: MCPError, status: int, **response_headers: str
) -> Reply:
    """Return an error reply. ``request_id`` is ``None`` where the body could not be read."""
    return _error(_encoded(request_id, error), error, status, **response_headers)


def failed(failure: Exception, request_id: RequestId | None, request: IncomingRequest) -> Reply:
    """Return the reply to a request that could not be answered, and log why."""
    if isinstance(failure, Refused):
        problem, status, extra = failure.error, failure.status, failure.headers
    elif isinstance(failure, MCPError):
        problem, status, extra = failure, admission_status(failure), {}
    else:
        event = f"{request.method} failed"
        reference = report(failure, event, request.django, logger)
        problem = Failed(f"{INTERNAL} {reference}")
        return error(request_id, problem, 500 if request_id is None else 200)
    level = logging.INFO if _is_ordinary(status, request) else logging.WARNING
    logger.log(level, "%s refused with %d: %s", request.method, status, problem.message)
    return error(request_id, problem, status, **extra)


def _is_ordinary(status: int, request: IncomingRequest) -> bool:
    """Return whether a refusal is in the course of things.

    Clients ask for credentials, for a stream, after a session; and some, before they have one, what
    a GET gives.
    """
    looks = request.method == "GET" and request.session_id is None
    return status in (401, 404, 405) or (looks and status in (400, 406))


def accepted() -> Reply:
    """Return the reply to a notification or a response."""
    return Reply(202, headers=COMMON)


def ended() -> Reply:
    """Return the reply to DELETE."""
    return Reply(204, headers=COMMON)


def nothing_more() -> Reply:
    """Return the reply to who has read a stream to its end, and comes back to it."""
    return Reply(204, headers=COMMON)


def stream(events: EventStream) -> Reply:
    """Return a reply whose events are sent as they come."""
    return Reply(200, headers=STREAMED, events=events)


def as_events(reply: Reply) -> Reply:
    """Return a JSON reply as a stream of one event, for a client that takes nothing else."""
    if reply.headers.get("Content-Type") == sse.MEDIA_TYPE:
        return reply
    return Reply(reply.status, sse.event(reply.body), {**reply.headers, **STREAMED})


def events_of(messages: Sequence[bytes]) -> Reply:
    """Return a stream that is complete already."""
    return Reply(200, b"".join(sse.event(each) for each in messages), STREAMED)


def _error(body: bytes, error: MCPError, status: int, **response_headers: str) -> Reply:
    if isinstance(error, TryLater):
        response_headers.setdefault("Retry-After", str(error.retry_after))
    elif isinstance(error, InsufficientScope):
        response_headers["WWW-Authenticate"] = headers.bearer_challenge(**error.challenge)
    return _json(status, body, **response_headers)


def _json(status: int, body: bytes, **response_headers: str) -> Reply:
    return Reply(status, body, {**JSON, **response_headers})
