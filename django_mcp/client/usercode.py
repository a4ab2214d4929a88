"""Runs the functions of whoever uses the client: on the loop, in a thread, or where they wait.

A coroutine function runs on the loop. A plain one would block it, and may use Django's ORM, which
refuses to work there: so it runs in the thread that waits for the call, if there is one, with that
thread's connection and transaction, and else in a worker thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import queue
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger("django_mcp.client")

CALLER: contextvars.ContextVar[Caller | None] = contextvars.ContextVar("caller", default=None)
"""Who waits in a thread for what runs now on the loop."""


async def run(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, whichever kind it is, and return what it returned."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    caller = CALLER.get()
    if caller is None:
        result = await asyncio.to_thread(function, *arguments)
    else:
        result = await caller.run(partial(function, *arguments))
    return await result if inspect.isawaitable(result) else result


async def tell(function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function that only takes note of something: its failure must not end a call."""
    try:
        await run(function, *arguments)
    except Exception:
        log.exception("%r failed", function)


class Caller:
    """A thread that waits for a call on the loop, and meanwhile runs what is handed to it."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, function: Callable[[], T]) -> T:
        """Have a function run in the thread; called on the loop."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def job() -> None:
            outcome: Future[T] = Future()
            try:
                outcome.set_result(context.run(function))
            except Exception as error:
                outcome.set_exception(error)
            loop.call_soon_threadsafe(_hand_over, outcome, answer)

        self._jobs.put(job)
        return await answer

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


def _hand_over(outcome: Future[T], answer: asyncio.Future[T]) -> None:
    if answer.done():
        return
    error = outcome.exception()
    if error is None:
        answer.set_result(outcome.result())
    else:
        answer.set_exception(error)
