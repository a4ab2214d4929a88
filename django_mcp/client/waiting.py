"""Ends of waiting. Whoever waits does so in the caller's own task; these let others end that wait.

They are asyncio's time-outs with a reason: for a deadline, for a lost session, for a client that is
closed. So no call needs a task of its own, and a call that is over leaves none behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from .errors import CallTimedOut


class Scope:
    """A stretch of waiting that can be ended from elsewhere, by raising a given error in it."""

    def __init__(self, reason: Exception | None = None) -> None:
        self._reason = reason
        self._timeout = asyncio.timeout(None)
        self._waits = False

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._waits = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._waits = False
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            if self._reason is None:
                raise
            raise self._reason from None

    @property
    def now(self) -> float:
        """The loop's own clock, which no change of the host's time touches."""
        return asyncio.get_running_loop().time()

    def end(self, reason: Exception, *, after: float = 0.0) -> None:
        """Raise ``reason`` where the scope waits, in ``after`` seconds; sooner stays sooner."""
        when, planned = self.now + after, self._timeout.when()
        if planned is None or when < planned:
            self._reason = reason
            self._plan(when)

    def _plan(self, when: float) -> None:
        if self._waits and not self._timeout.expired():
            self._timeout.reschedule(when)


class Deadline(Scope):
    """The time of one call: what the server may take in all, and the maximum for whatever happens.

    The time that the caller's own code takes, to answer a question for example, counts only for
    the maximum.
    """

    def __init__(
        self, method: str, timeout: float, maximum: float, *, extends: bool = False
    ) -> None:
        super().__init__(CallTimedOut(method, timeout))
        self._method = method
        self._seconds = timeout
        self._maximum = max(timeout, maximum)
        self.extends = extends
        """Whether progress begins the time anew."""
        self._pauses = 0
        self._closed = False

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._begun = self.now
        self._last = self.now + self._maximum
        self._restart()
        self._replan()
        return self

    def end(self, reason: Exception, *, after: float = 0.0) -> None:
        """End the call early, for good."""
        super().end(reason, after=after)
        self._closed = True

    def progressed(self) -> None:
        """Note that the server is at work; begin to count anew where that is wanted."""
        if self.extends:
            self._restart()
            self._replan()

    def allows(self, seconds: float) -> bool:
        """Return whether a pause of so many seconds ends before the call does."""
        when = self._timeout.when()
        return when is None or self.now + seconds < when

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count while the caller's own code runs."""
        if not self._pauses:
            self._paused = self.now
        self._pauses += 1
        self._replan()
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._due += self.now - self._paused
            self._replan()

    def _restart(self) -> None:
        self._due = self.now + self._seconds
        self._paused = self.now

    def _replan(self) -> None:
        if self._closed:
            return
        when = self._last if self._pauses else min(self._due, self._last)
        self._reason = CallTimedOut(self._method, when - self._begun)
        self._plan(when)
