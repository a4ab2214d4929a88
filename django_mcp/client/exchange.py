"""One request of a caller, on its way through as many sendings as it takes."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..protocol.messages import Batch, Invalid, Notification, Response, encode, same_id
from . import usercode
from .endpoint import remote_error
from .errors import (
    ConnectionFailed,
    NotProcessed,
    OutcomeUnknown,
    ServerBusy,
    SessionGone,
    SessionLost,
    UnexpectedAnswer,
)
from .limits import Limits
from .waiting import Deadline

log = logging.getLogger("django_mcp.client")

T = TypeVar("T")

Progress = Callable[[float, float | None, str | None], Any]
"""Called with progress, total and message; plain or a coroutine function."""


@dataclass(slots=True)
class Exchange:
    """A request with what belongs to it. Each sending has an id of its own, never used again."""

    method: str
    params: Mapping[str, Any]
    deadline: Deadline
    safe: bool = False
    """Whether it may be repeated though it may have run."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Mirrored arguments (2026-07-28)."""
    on_progress: Progress | None = None
    id: int = 0
    questions: set[asyncio.Task[None]] = field(default_factory=set)
    """The questions that the server has asked for its sake (legacy)."""
    _reached: float | None = None

    def renew(self, ids: itertools.count[int]) -> None:
        """Begin another sending."""
        self.id = next(ids)
        self._reached = None

    def body(self, meta: Mapping[str, Any]) -> bytes:
        """Return the message, with what the era adds to its ``_meta``."""
        own = self.params.get("_meta") or {}
        wants_progress = self.on_progress is not None or self.deadline.extends
        token = {"progressToken": self.id} if wants_progress else {}
        merged = {**own, **token, **meta}
        params = {**self.params, **({"_meta": merged} if merged else {})}
        envelope = {"jsonrpc": "2.0", "id": self.id, "method": self.method}
        return encode({**envelope, **({"params": params} if params else {})})

    def owns(self, response: Response) -> bool:
        """Return whether a response is the answer to this very sending; log if it is not."""
        if same_id(response.id, self.id):
            return True
        log.warning("Dropped a response to %r on the stream of %d", response.id, self.id)
        return False

    async def hear(self, notification: Notification) -> bool:
        """Take a notification if it is progress of this request; return whether it was."""
        if notification.method != "notifications/progress":
            return False
        params = notification.params
        token, progress = params.get("progressToken"), params.get("progress")
        if token != self.id or isinstance(token, bool) or not isinstance(progress, int | float):
            return False
        if self._reached is None or progress > self._reached:
            self._reached = progress
            self.deadline.progressed()
            await self._report(progress, params.get("total"), params.get("message"))
        return True

    async def _report(self, progress: float, total: Any, message: Any) -> None:
        if self.on_progress is None:
            return
        total = total if isinstance(total, int | float) else None
        message = message if isinstance(message, str) else None
        with self.deadline.paused():
            await usercode.tell(self.on_progress, progress, total, message)


def outcome(response: Response) -> dict[str, Any]:
    """Return the result that a response carries, or raise its error."""
    if response.result is not None:
        return response.result
    try:
        error = remote_error(response.error or {})
    except TypeError:
        raise UnexpectedAnswer("The server answered with an error of the wrong shape") from None
    raise error


def only_response(message: Any, exchange: Exchange) -> Response:
    """Return the response to ``exchange`` in an answer that is no stream."""
    items = message.items if isinstance(message, Batch) else (message,)
    for each in items:
        if isinstance(each, Response) and exchange.owns(each):
            return each
        if isinstance(each, Invalid):
            raise UnexpectedAnswer(f"The answer is not a message: {each.error.message}")
    raise UnexpectedAnswer("The answer is not a response to this request")


async def until_answered(send: Callable[[], Awaitable[T]], exchange: Exchange, limits: Limits) -> T:
    """Send, and send again what is safe to repeat.

    A request that was refused with its session, and a safe one whose answer is lost, is repeated
    once. One that the server could not take up is repeated while the call's time lasts: after a
    connection that failed, and after 429 or 503 with ``Retry-After``.
    """
    repeated, failures = False, 0
    lost: OutcomeUnknown | None = None
    while True:
        try:
            return await send()
        except SessionGone:
            if repeated:
                raise lost or SessionLost("The server forgot the new session as well") from None
            repeated = True
        except OutcomeUnknown as error:
            if repeated or not exchange.safe:
                raise
            repeated, lost = True, error
        except NotProcessed as error:
            failures += 1
            is_passing = isinstance(error, ConnectionFailed | ServerBusy)
            if is_passing and await _paused(error, failures, exchange, limits):
                continue
            if lost is not None:
                # The repetition was not processed. The first attempt may have been.
                raise lost from error
            raise


async def _paused(error: NotProcessed, failures: int, exchange: Exchange, limits: Limits) -> bool:
    """Wait until it is time for the next attempt; false if there is to be none."""
    asked = error.retry_after
    seconds = limits.pause(failures) if asked is None else asked
    if failures > limits.retries or not exchange.deadline.allows(seconds):
        return False
    await asyncio.sleep(seconds)
    return True
