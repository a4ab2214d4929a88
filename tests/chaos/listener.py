"""Whoever hears of changes, by whichever way its client hears of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from .following import BOUND


class Listener:
    """Whoever hears of changes: when it last did, and whether it is sure to hear of the next."""

    def __init__(self) -> None:
        self.certain = False
        self._losses = 0
        self._heard = 0.0
        self._news = asyncio.Event()

    async def hear(self, message: Any) -> None:
        """Take note of a message."""
        if message.get("method") == "notifications/resources/updated":
            self._heard = time.monotonic()
            self._news.set()

    def lose(self) -> None:
        """Take note that from now on something may have been missed."""
        self.certain = False
        self._losses += 1
        self._news.set()

    def mark(self) -> tuple[float, int]:
        """Return this moment, for :meth:`heard_since`."""
        return time.monotonic(), self._losses

    async def heard_since(self, mark: tuple[float, int]) -> bool:
        """Wait until a change has been heard of; false if none was within the bound, although
        nothing can have been missed.
        """
        when, losses = mark
        with suppress(TimeoutError):
            async with asyncio.timeout(BOUND):
                while self._heard < when and self._losses == losses:
                    self._news.clear()
                    await self._news.wait()
                return True
        return False


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let something run for as long as the block lasts."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
