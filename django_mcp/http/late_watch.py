"""Whether clients go while their calls run: looked after once a call has lasted for a moment.

A call that ends within a moment ends before its client can have gone, and the look costs as much as
the rest of it. All who wait on a loop share one timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from .request import IncomingRequest

WATCHED_AFTER_SECONDS: Final = 0.05


class _Waiting:
    """Somebody who waits for a call of a client's."""

    __slots__ = ("gone", "request", "task")

    def __init__(self, request: IncomingRequest, gone: Callable[[], object]) -> None:
        self.request = request
        self.gone = gone
        self.task: asyncio.Future[None] | None = None


class _LateWatch:
    """Those who have come lately, on one loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._young: dict[_Waiting, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, waiting: _Waiting) -> None:
        self._young[waiting] = None
        if self._timer is None:
            self._timer = self._loop.call_later(WATCHED_AFTER_SECONDS, self._begin)

    def remove(self, waiting: _Waiting) -> None:
        self._young.pop(waiting, None)
        if waiting.task is not None:
            waiting.task.cancel()

    def _begin(self) -> None:
        self._timer = None
        young, self._young = self._young, {}
        for waiting in young:
            waiting.task = asyncio.ensure_future(waiting.request.disconnected())
            waiting.task.add_done_callback(partial(_tell, waiting.gone))


def _tell(gone: Callable[[], object], task: asyncio.Future[None]) -> None:
    if not task.cancelled():
        gone()


def watch_later(request: IncomingRequest, gone: Callable[[], object]) -> Callable[[], None]:
    """Call ``gone`` once the client of ``request`` has gone; return what ends the watch."""
    loop = asyncio.get_running_loop()
    watch = _by_loop.get(loop)
    if watch is None:
        watch = _by_loop[loop] = _LateWatch()
    waiting = _Waiting(request, gone)
    watch.add(waiting)
    return partial(watch.remove, waiting)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _LateWatch] = WeakKeyDictionary()
