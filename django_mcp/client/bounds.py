"""How much, how often and how long: the numbers of a client, and the time of each of its calls.

Whoever waits does so in the caller's own task; a scope lets others end that wait. It is asyncio's
time-out with a reason: a deadline, a lost session, a client that is closed. So no call needs a task
of its own, and a call that is over leaves none behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from .errors import CallTimedOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of a client. Seconds, unless the name says something else."""

    max_timeout: float = 600.0
    """The longest that a call lasts, whatever progress it reports and whatever it asks."""
    connect_timeout: float = 10.0
    """How long opening a connection may take."""
    idle_timeout: float = 300.0
    """How long an open stream may be silent before it counts as broken, and is asked for again."""
    message_bytes: int = 4 * 1024 * 1024
    """The largest message that is read, in bytes."""
    message_values: int = 100_000
    """How many values it may hold: members of objects and items of arrays, at any depth."""
    list_bytes: int = 16 * 1024 * 1024
    """The largest list that is read, in bytes of all its pages."""
    list_values: int = 400_000
    """How many values they may hold."""
    rounds: int = 8
    """How often one call may come back with questions (2026-07-28)."""
    questions: int = 32
    """How many questions of the server are worked on at once, or come together (2026-07-28)."""
    pages: int = 1000
    """How many pages of a list are read."""
    retries: int = 2
    """How often in all a call's request is sent again that the server did not process."""
    reconnects: int = 5
    """How often in a row a broken stream is asked for without an event from it."""
    drain: float = 1.0
    """How long calls of a lost session still wait for what their old streams hold."""
    backoff: float = 0.5
    """The pause before the second attempt where the server names none; it doubles from there."""
    max_backoff: float = 30.0
    """The longest such pause."""
    close_timeout: float = 5.0
    """How long closing may take, the end of the session at the server included."""

    def pause(self, failures: int) -> float:
        """Return how many seconds to wait after so many failures in a row."""
        return min(self.max_backoff, self.backoff * 2.0 ** min(max(failures - 1, 0), 30))


class CancelScope:
    """A stretch of waiting that can be ended from elsewhere, by raising a given error in it."""

    def __init__(self, reason: Exception | None = None) -> None:
        self._reason = reason
        self._timeout = asyncio.timeout(None)
        self._is_entered = False

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._is_entered = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_entered = False
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            if self._reason is None:
                raise
            raise self._reason from None

    @property
    def now(self) -> float:
        """Seconds of the loop's own clock, which no change of the host's time touches."""
        return asyncio.get_running_loop().time()

    def end(self, reason: Exception, *, after: float = 0.0) -> None:
        """Raise ``reason`` where the scope waits, in ``after`` seconds; sooner stays sooner."""
        when, planned = self.now + after, self._timeout.when()
        if planned is None or when < planned:
            self._reason = reason
            self._schedule(when)

    def _schedule(self, when: float) -> None:
        if self._is_entered and not self._timeout.expired():
            self._timeout.reschedule(when)


class Deadline(CancelScope):
    """The time of one call: what the server may take in all, and the maximum for whatever happens.

    Both are in seconds. The time that the caller's own code takes, to answer a question for
    example, counts only for the maximum. With ``extends``, progress restarts the server's time.
    """

    def __init__(
        self, method: str, timeout: float, maximum: float, *, extends: bool = False
    ) -> None:
        super().__init__(CallTimedOut(method, timeout))
        self.extends = extends
        self._method = method
        self._seconds = timeout
        self._maximum = max(timeout, maximum)
        self._pauses = 0
        self._is_ended = False

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._outer = DEADLINE.get()
        DEADLINE.set(self)
        self._begun = self.now
        self._last = self.now + self._maximum
        self._restart()
        self._reschedule()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        DEADLINE.set(self._outer)
        await super().__aexit__(kind, error, traceback)

    def end(self, reason: Exception, *, after: float = 0.0) -> None:
        """End the call early, for good."""
        super().end(reason, after=after)
        self._is_ended = True

    def progressed(self) -> None:
        """Note that the server is at work, which restarts its time where that is wanted."""
        if self.extends:
            self._restart()
            self._reschedule()

    def allows(self, seconds: float) -> bool:
        """Return whether a pause of so many seconds ends before the call does."""
        when = self._timeout.when()
        return when is None or self.now + seconds < when

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count while the caller's own code runs."""
        if not self._pauses:
            self._paused_at = self.now
        self._pauses += 1
        self._reschedule()
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._due += self.now - self._paused_at
            self._reschedule()

    def _restart(self) -> None:
        self._due = self.now + self._seconds
        self._paused_at = self.now

    def _reschedule(self) -> None:
        if self._is_ended:
            return
        when = self._last if self._pauses else min(self._due, self._last)
        self._reason = CallTimedOut(self._method, when - self._begun)
        self._schedule(when)


DEADLINE: ContextVar[Deadline | None] = ContextVar("deadline", default=None)
"""The time of the call for which code runs that is not told of it: httpx calls a login."""


@contextmanager
def not_counted() -> Iterator[None]:
    """Do not count the time of the block as the server's, if it is within a call."""
    deadline = DEADLINE.get()
    if deadline is None:
        yield
        return
    with deadline.paused():
        yield
