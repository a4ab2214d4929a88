"""Tasks that begin at once, and that last."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")


def start(coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Run ``coroutine`` as a task: at once up to where it first waits, where Python can do that."""
    return asyncio.Task(coroutine, loop=asyncio.get_running_loop(), **_AT_ONCE)


def keep(task: asyncio.Task[T]) -> asyncio.Task[T]:
    """See to it that a task is not collected while it runs, whatever becomes of its connection."""
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


_AT_ONCE: Final[dict[str, Any]] = {"eager_start": True} if sys.version_info >= (3, 12) else {}

_tasks: set[asyncio.Task[Any]] = set()
