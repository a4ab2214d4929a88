"""One question for all who ask at the same time, where each answer alone would cost as much."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from ..conf import get_settings
from ..current_partition import current_partition
from ..store.prepared import MOST
from .eager_tasks import keep, start
from .fair_turns import too_busy
from .worker_threads import pools

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

PATIENCE_SECONDS: Final = 0.02
"""Seconds after which a question no longer holds up the next: its connection may hang."""


class BatchLoader(Generic[K, T]):
    """Asks ``find``, on a thread for admission, for one key or for several.

    Whoever comes while nothing is asked asks at once. Whoever comes meanwhile is part of the next
    question: never of one that has begun, whose answer may be older than his own.
    """

    def __init__(self, find: Callable[[Sequence[K]], Mapping[K, T]]) -> None:
        self._find = find
        self._waiting: list[tuple[K, asyncio.Future[T | None]]] = []
        self._current: object = None
        self._begun = 0.0
        self._alarm: asyncio.TimerHandle | None = None

    async def find(self, key: K) -> T | None:
        """Return what there is for ``key``; 503 where too many wait."""
        if not (self._waiting or self._is_held_up()):
            return (await self._ask([key])).get(key)
        if len(self._waiting) >= MOST + get_settings().thread_queue:
            raise too_busy()
        answer: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, answer))
        self._go_on()
        return await answer

    def _is_held_up(self) -> bool:
        return (
            self._current is not None
            and asyncio.get_running_loop().time() - self._begun < PATIENCE_SECONDS
        )

    async def _ask(self, keys: Sequence[K]) -> Mapping[K, T]:
        mine = self._current = object()
        self._begun = asyncio.get_running_loop().time()
        try:
            return await pools().admission.run(self._find, keys)
        finally:
            if self._current is mine:
                self._current = None
                # Not at once: where no thread is free, each question would end within the last.
                asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        """Ask for some of those who wait, unless a question is under way that does not hang."""
        if self._waiting and not self._is_held_up():
            keep(start(self._ask_for_some()))
        if self._waiting and self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._wake_up)

    def _wake_up(self) -> None:
        self._alarm = None
        self._go_on()

    async def _ask_for_some(self) -> None:
        some, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        if not some:
            return
        try:
            found = await self._ask([key for key, _ in some])
        except Exception as error:
            for _, answer in some:
                _settle(answer, answer.set_exception, error)
        except BaseException:
            for _, answer in some:
                answer.cancel()
            raise
        else:
            for key, answer in some:
                _settle(answer, answer.set_result, found.get(key))


def _settle(answer: asyncio.Future[Any], settle: Callable[[Any], None], value: Any) -> None:
    if not answer.done():  # else whoever has asked has gone
        settle(value)


def batch_loader(find: Callable[[Sequence[K]], Mapping[K, T]]) -> BatchLoader[K, T]:
    """Return what gathers the questions to ``find`` on the present loop, in this partition."""
    mine = _by_loop.setdefault(asyncio.get_running_loop(), {})
    key = (find, current_partition())
    if key not in mine:
        mine[key] = BatchLoader(find)
    return mine[key]


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, BatchLoader[Any, Any]]]
_by_loop = WeakKeyDictionary()
