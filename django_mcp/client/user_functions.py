"""Where the functions of whoever uses the client run, and the tasks that the client runs itself.

A coroutine function runs on the loop. A plain one would block it, and may use Django's ORM, which
refuses to work there: so it runs in the thread that waits for the call, if there is one, with that
thread's connection and transaction, and else in a worker thread. What a coroutine function gives to
``sync_to_async``, as the ORM does, runs where a plain one would.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import queue
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, TypeVar

from .bounds import DEADLINE

T = TypeVar("T")

log = logging.getLogger("django_mcp.client")

WAITING_THREAD: contextvars.ContextVar[WaitingThread | None] = contextvars.ContextVar(
    "waiting_thread", default=None
)
"""The thread that waits for what runs on the loop, if one does."""


async def run(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, plain or a coroutine function, and return what it returned."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    waiting = WAITING_THREAD.get()
    if waiting is None:
        result = await asyncio.to_thread(function, *arguments)
    else:
        result = await waiting.run(partial(function, *arguments))
    return await result if inspect.isawaitable(result) else result


async def report(function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function to which something is only reported: its failure must not end a call."""
    try:
        await run(function, *arguments)
    except Exception:
        log.exception("%r failed", function)


class WaitingThread(Executor):
    """A thread that waits for a call on the loop, and meanwhile runs what is handed to it."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    async def run(self, function: Callable[[], T]) -> T:
        """Have a function run in the thread, and return what it returned; called on the loop."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def job() -> None:
            done: Future[T] = Future()
            try:
                done.set_result(context.run(function))
            except Exception as error:
                done.set_exception(error)
            loop.call_soon_threadsafe(_copy_outcome, done, result)

        self._jobs.put(job)
        return await result

    async def serve(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run ``work`` on the loop; plain functions for which it waits run in the thread.

        Else ``sync_to_async`` would wait for the thread that the context of the caller names, as
        that of a request: the very one that waits.
        """
        WAITING_THREAD.set(self)
        asgiref = _asgiref()
        if asgiref is None:
            return await work()
        async with asgiref.ThreadSensitiveContext(executor=self):
            return await work()

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have a function run in the thread; for ``sync_to_async``, called on the loop."""
        future: Future[T] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            # What async_to_sync goes by: the thread's own loop is another one than the client's.
            noted = vars(_asgiref().SyncToAsync.threadlocal)
            before = dict(noted)
            try:
                result = function(*args, **kwargs)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            finally:
                noted.clear()
                noted.update(before)

        self._jobs.put(job)
        return future

    def wait_for(self, future: Future[T]) -> T:
        """Wait for a call, and do the jobs that come until it ends; called in the thread."""
        future.add_done_callback(lambda _: self._jobs.put(None))
        try:
            while (job := self._jobs.get()) is not None:
                job()
        except BaseException:
            future.cancel()
            raise
        return future.result()


def _asgiref() -> Any:
    """Return what makes ``sync_to_async``, if it is in use: the client itself needs no Django, and
    no context names a thread before somebody has imported this.
    """
    return sys.modules.get("asgiref.sync")


def _copy_outcome(done: Future[T], result: asyncio.Future[T]) -> None:
    if result.done():
        return
    error = done.exception()
    if error is None:
        result.set_result(done.result())
    else:
        result.set_exception(error)


class BackgroundTasks:
    """The tasks that a client runs beside its callers' own, none of which outlasts it."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self.is_closing = False
        """Whether nothing more is to begin that need not."""

    def start(self, work: Coroutine[Any, Any, T], *, within_call: bool = False) -> asyncio.Task[T]:
        """Run ``work``; ``within_call`` if it ends no later than the call that starts it."""
        context = contextvars.copy_context()
        if not within_call:
            # The thread that waits for this call does not wait for what outlasts it.
            context.run(WAITING_THREAD.set, None)
            if (asgiref := _asgiref()) is not None:
                context.run(asgiref.SyncToAsync.thread_sensitive_context.set, None)
            context.run(DEADLINE.set, None)
        task = asyncio.get_running_loop().create_task(work, context=context)
        self._running.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Whoever waits for the task has it as well. Asking for it here keeps asyncio quiet
            # about a task for which nobody waits any more.
            log.debug("A task in the background ended", exc_info=error)

    async def finish(self, seconds: float) -> None:
        """Wait so many seconds for what runs, and cancel the rest."""
        self.is_closing = True
        if self._running:
            await asyncio.wait(set(self._running), timeout=seconds)
        await self.cancel()

    async def cancel(self) -> None:
        """Cancel all of them, and wait until they have ended."""
        self.is_closing = True
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(set(self._running))
