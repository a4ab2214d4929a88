"""The event loop of a process whose server has none, as under WSGI.

Asynchronous functions run on it, and what is streamed while the thread of a request waits. It is
there from the first need on, on a thread of its own, which nobody waits for as the process ends. A
fork gets one of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, Final, Generic, TypeVar

from ..forks import PerProcess
from .eager_tasks import keep, start
from .thread_locals import adopt_locals
from .worker_threads import close_worker_threads

T = TypeVar("T")


class ProcessLoop:
    """A loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="mcp-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def run(self, function: Callable[..., Coroutine[Any, Any, T]], /, *args: Any) -> T:
        """Run an asynchronous function on the loop, and wait in this thread for what it returns.

        It runs in a copy of the present context: context variables and Django's locals, such as the
        language, are those of the caller.
        """
        waiting: _Waiting[T] = _Waiting(function, args)
        context = copy_context()
        self._loop.call_soon_threadsafe(adopt_locals, context, waiting.begin, context=context)
        return waiting.result()

    def stop(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class _Waiting(Generic[T]):
    """A thread that waits for a task of the loop: for one task, and without a time-out."""

    __slots__ = ("_args", "_error", "_function", "_has_ended", "_value")

    _value: T

    def __init__(
        self, function: Callable[..., Coroutine[Any, Any, T]], args: tuple[Any, ...]
    ) -> None:
        self._function = function
        self._args = args
        self._error: BaseException | None = None
        self._has_ended = threading.Lock()
        self._has_ended.acquire()

    def begin(self) -> None:
        """Begin the task. On the loop."""
        task = start(self._run())
        if not task.done():
            keep(task)

    async def _run(self) -> None:
        try:
            self._value = await self._function(*self._args)
        except BaseException as error:
            # Whatever it is, the loop goes on, and the thread that waits gets it.
            self._error = error
        finally:
            self._has_ended.release()

    def result(self) -> T:
        """Wait for the task, and return its result, or raise what it has raised."""
        with self._has_ended:
            pass
        if self._error is not None:
            raise self._error
        return self._value


process_loop: Final = PerProcess(ProcessLoop)
"""Returns the loop of this process."""


def close_process_loop() -> None:
    """End the loop and the worker threads that it has; tests want that."""
    loop = process_loop.forget()
    if loop is not None:
        loop.run(close_worker_threads)
        loop.stop()
