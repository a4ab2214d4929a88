"""One request of a caller, from its first sending to its response, and the streams in between.

2025-11-25, basic/transports, "Resumability and Redelivery": a stream that ends before its response
is asked for by GET with the id of the last event, after the pause that the server wished.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ..protocol import sse
from ..protocol.messages import Batch, Invalid, Message, Notification, Response, encode, same_id
from . import user_functions
from .bounds import Deadline, Limits
from .errors import (
    ClientError,
    ConnectionFailed,
    NotProcessed,
    OutcomeUnknown,
    ServerBusy,
    SessionGone,
    SessionLost,
    UnexpectedAnswer,
)
from .outgoing_meta import added, additions
from .remote_endpoint import RemoteResponse, remote_error

log = logging.getLogger("django_mcp.client")

T = TypeVar("T")

OnProgress = Callable[[float, float | None, str | None], Any]
"""Called with progress, total and message; plain or a coroutine function."""

REMEMBERED_EVENT_IDS: Final = 1000
"""How many ids of events are remembered of a stream, to drop what is sent twice."""


@dataclass(slots=True)
class OutgoingRequest:
    """A request with what belongs to it. Each sending has an id of its own, never used again."""

    method: str
    params: Mapping[str, Any]
    deadline: Deadline
    is_repeatable: bool = False
    """Whether it may be repeated though it may have run."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Mirrored arguments (2026-07-28)."""
    on_progress: OnProgress | None = None
    id: int = 0
    server_requests: set[asyncio.Task[None]] = field(default_factory=set)
    """Answer what the server asks for its sake (legacy)."""
    _progress: float | None = None

    def renew(self, ids: itertools.count[int]) -> None:
        """Begin another sending."""
        self.id = next(ids)
        self._progress = None

    def body(self, meta: Mapping[str, Any]) -> bytes:
        """Return the message, with what the era adds to its ``_meta``."""
        own = self.params.get("_meta") or {}
        wants_progress = self.on_progress is not None or self.deadline.extends
        token = {"progressToken": self.id} if wants_progress else {}
        merged = {**(added() if additions else {}), **own, **token, **meta}
        params = {**self.params, **({"_meta": merged} if merged else {})}
        envelope = {"jsonrpc": "2.0", "id": self.id, "method": self.method}
        return encode({**envelope, **({"params": params} if params else {})})

    def is_answered_by(self, response: Response) -> bool:
        """Return whether a response is that to this very sending; log if it is not."""
        if same_id(response.id, self.id):
            return True
        log.warning("Dropped a response to %r on the stream of %d", response.id, self.id)
        return False

    async def handle_progress(self, notification: Notification) -> bool:
        """Report a notification if it is progress of this request; return whether it was."""
        if notification.method != "notifications/progress":
            return False
        params = notification.params
        token, progress = params.get("progressToken"), params.get("progress")
        if token != self.id or isinstance(token, bool) or not isinstance(progress, int | float):
            return False
        if self._progress is None or progress > self._progress:
            self._progress = progress
            self.deadline.progressed()
            await self._report(progress, params.get("total"), params.get("message"))
        return True

    async def _report(self, progress: float, total: Any, message: Any) -> None:
        if self.on_progress is None:
            return
        total = total if isinstance(total, int | float) else None
        message = message if isinstance(message, str) else None
        with self.deadline.paused():
            await user_functions.report(self.on_progress, progress, total, message)


class StreamPosition:
    """How far a stream has been read, over as many connections as it takes."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known_ids: deque[str] = deque(maxlen=REMEMBERED_EVENT_IDS)
        self._retry_seconds: float | None = None
        self._retry_after_seconds = 0.0
        self._failures = 0
        self.last_event_id = ""

    @property
    def exhausted(self) -> bool:
        """Whether the server has been asked often enough without an event from it."""
        return self._failures > self._limits.reconnects

    def advance(self, event: sse.Event) -> bool:
        """Remember an event; return whether it is new."""
        self._failures = 0
        if event.retry_ms is not None:
            self._retry_seconds = event.retry_ms / 1000
        if event.id is None:
            return True
        self.last_event_id = event.id
        if event.id in self._known_ids:
            return False
        self._known_ids.append(event.id)
        return True

    def pause(self) -> float:
        """Count an end of the connection; return how many seconds to wait before the next one."""
        self._failures += 1
        least, self._retry_after_seconds = self._retry_after_seconds, 0.0
        if self._failures == 1 and self._retry_seconds is not None:
            return max(self._retry_seconds, least)
        return max(self._limits.pause(self._failures), self._retry_seconds or 0.0, least)

    def note_failure(self, error: ClientError) -> None:
        """Note why the last connection failed: the server may have said when to come back."""
        if isinstance(error, ServerBusy):
            self._retry_after_seconds = error.retry_after or 0.0

    @property
    def headers(self) -> dict[str, str]:
        """What asks for the rest of the stream."""
        return {"Last-Event-ID": self.last_event_id} if self.last_event_id else {}


async def stream_messages(
    response: RemoteResponse, position: StreamPosition | None = None
) -> AsyncGenerator[Message]:
    """Yield the messages of one connection, each once; raises :class:`UnexpectedAnswer`."""
    if response.media_type != sse.MEDIA_TYPE:
        what = response.media_type or "nothing"
        raise UnexpectedAnswer(f"The server sent {what} instead of a stream", response.status)
    async with aclosing(response.events()) as events:
        async for event in events:
            is_new = position is None or position.advance(event)
            if is_new and event.data and event.kind == "message":
                for message in valid_messages(response.parse(event.data)):
                    yield message


def valid_messages(message: Message | Batch | Invalid) -> list[Message]:
    """Return the messages of a batch, or the one; what is not a message is logged and left out."""
    items = message.items if isinstance(message, Batch) else (message,)
    for each in items:
        if isinstance(each, Invalid):
            log.warning("The server sent what is not a message: %s", each.error.message)
    return [each for each in items if not isinstance(each, Invalid)]


def only_response(message: Message | Batch | Invalid, request: OutgoingRequest) -> Response:
    """Return the response to ``request`` in a body that is no stream."""
    items = message.items if isinstance(message, Batch) else (message,)
    for each in items:
        if isinstance(each, Response) and request.is_answered_by(each):
            return each
        if isinstance(each, Invalid):
            raise UnexpectedAnswer(f"The answer is not a message: {each.error.message}")
    raise UnexpectedAnswer("The answer is not a response to this request")


def result_of(response: Response) -> dict[str, Any]:
    """Return the result that a response carries, or raise its error."""
    if response.result is not None:
        return response.result
    try:
        error = remote_error(response.error or {})
    except TypeError:
        raise UnexpectedAnswer("The server answered with an error of the wrong shape") from None
    raise error


async def send_until_answered(
    send: Callable[[], Awaitable[T]], request: OutgoingRequest, limits: Limits
) -> T:
    """Send a request, and again where that is safe; return what ``send`` returns.

    A request that was refused with its session, and a safe one whose answer is lost, is repeated
    once. One that the server could not take up is repeated while the call's time lasts: after a
    connection that failed, and after 429 or 503 with ``Retry-After``.
    """
    is_repeated, failures = False, 0
    lost: OutcomeUnknown | None = None
    while True:
        try:
            return await send()
        except SessionGone:
            if is_repeated:
                raise lost or SessionLost("The server forgot the new session as well") from None
            is_repeated = True
        except OutcomeUnknown as error:
            if is_repeated or not request.is_repeatable:
                raise
            is_repeated, lost = True, error
        except NotProcessed as error:
            failures += 1
            is_passing = isinstance(error, ConnectionFailed | ServerBusy)
            if is_passing and await _pause(error, failures, request, limits):
                continue
            if lost is not None:
                # The repetition was not processed. The first attempt may have been.
                raise lost from error
            raise


async def _pause(
    error: NotProcessed, failures: int, request: OutgoingRequest, limits: Limits
) -> bool:
    """Wait until it is time for the next attempt; false if there is to be none."""
    wished = error.retry_after
    seconds = limits.pause(failures) if wished is None else wished
    if failures > limits.retries or not request.deadline.allows(seconds):
        return False
    await asyncio.sleep(seconds)
    return True
