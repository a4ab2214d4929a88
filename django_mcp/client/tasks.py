"""The tasks that a client runs beside its callers' own, none of which outlives it."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from .usercode import CALLER

T = TypeVar("T")

log = logging.getLogger("django_mcp.client")


class Tasks:
    """Background tasks, by strong reference."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], *, within_call: bool = False) -> asyncio.Task[T]:
        """Run ``work``; ``within_call`` if it ends no later than the call that starts it."""
        context = contextvars.copy_context()
        if not within_call:
            # The thread that waits for this call does not wait for what outlasts it.
            context.run(CALLER.set, None)
        task = asyncio.get_running_loop().create_task(work, context=context)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Whoever waits for the task has it as well. Asking for it here keeps asyncio quiet
            # about a task for which nobody waits any more.
            log.debug("A task in the background ended", exc_info=error)

    async def settle(self, seconds: float) -> None:
        """Give what runs so many seconds, and end the rest."""
        if self._running:
            await asyncio.wait(set(self._running), timeout=seconds)
        await self.cancel()

    async def cancel(self) -> None:
        """End all of them, and wait until they have ended."""
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(set(self._running))
