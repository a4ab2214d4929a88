"""Who of many callers may use one of a few threads now, and who is next.

A caller may have all of them while nobody else wants one. Half of them are a caller's share: who
has less than that is served first, and callers are served in turn. What somebody has beyond the
share is borrowed. Nobody can be made to end a call, so for each that is borrowed others may have
one more than there are: whoever comes does not wait for the calls of one caller. So there are half
as many more in all, at most.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from ..conf import get_settings
from ..protocol.errors import Unavailable

Waiter = asyncio.Future[None]


def too_busy() -> Unavailable:
    """Return the refusal of a request for which nothing is free: 503."""
    return Unavailable("The server is busy; try again later")


class FairTurns:
    """The use of ``size`` threads. For one event loop."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.running = 0
        """How many are in use."""
        self.waiting = 0
        """How many are waited for."""
        self._share = max(1, size // 2)
        self._held: dict[str, int] = {}
        self._borrowed = 0
        self._queues: OrderedDict[str, deque[Waiter]] = OrderedDict()
        """Those who wait, by caller; the callers in the order in which it is their turn."""

    def take_now(self, caller: str) -> bool:
        """Let ``caller`` have one, if that need not be waited for."""
        if self._held.get(caller, 0) < self._share:
            is_free = self.running - self._borrowed < self.size and caller not in self._queues
        else:
            is_free = self.running < self.size and not self._queues
        if is_free:
            self.hold(caller)
        return is_free

    async def wait(self, caller: str) -> None:
        """Wait a bounded time until ``caller`` has one, where not too many wait; else refuse."""
        settings = get_settings()
        if self.waiting >= settings.thread_queue:
            self._make_room(caller)
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, deque()).append(waiter)
        self.waiting += 1
        try:
            async with asyncio.timeout(settings.thread_wait_seconds):
                await waiter
        except BaseException as error:
            self._leave(caller, waiter)
            if isinstance(error, TimeoutError):
                raise too_busy() from None
            raise

    def hold(self, caller: str) -> None:
        """Count one for ``caller``, whoever waits."""
        self.running += 1
        self._held[caller] = held = self._held.get(caller, 0) + 1
        self._borrowed += held > self._share

    def give_back(self, caller: str) -> None:
        """Count one no longer, and serve those who wait."""
        self.running -= 1
        held = self._held.pop(caller)
        self._borrowed -= held > self._share
        if held > 1:
            self._held[caller] = held - 1
        while self._queues and (following := self._next()) is not None:
            waiter = self._queues[following].popleft()
            self._forget(following)
            if not waiter.done():
                self.hold(following)
                waiter.set_result(None)

    def _next(self) -> str | None:
        """Return the caller whose turn it is, if one is free for that one."""
        if self.running - self._borrowed >= self.size:
            return None
        for caller in self._queues:
            if self._held.get(caller, 0) < self._share:
                return caller
        return next(iter(self._queues)) if self.running < self.size else None

    def _make_room(self, caller: str) -> None:
        """Refuse the last of whoever waits for most; or ``caller``, if that is no better."""
        waiting = {each: len(queue) for each, queue in self._queues.items()}
        most = max(waiting, key=waiting.__getitem__, default=caller)
        if waiting.get(most, 0) < waiting.get(caller, 0) + 2:
            raise too_busy()
        refused = self._queues[most].pop()
        self.waiting -= 1
        if not refused.done():
            refused.set_exception(too_busy())

    def _leave(self, caller: str, waiter: Waiter) -> None:
        """Wait no more; what has been got in this very moment is given back."""
        queue = self._queues.get(caller, ())
        if waiter in queue:
            self._queues[caller].remove(waiter)
            self._forget(caller, stays=True)
        elif waiter.done() and not (waiter.cancelled() or waiter.exception()):
            self.give_back(caller)

    def _forget(self, caller: str, *, stays: bool = False) -> None:
        """Count a waiter no longer; the next turn of its caller comes after those of others."""
        self.waiting -= 1
        if not self._queues[caller]:
            del self._queues[caller]
        elif not stays:
            self._queues.move_to_end(caller)
