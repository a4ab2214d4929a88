"""From thread to thread: one that runs what it is given, and how to have a loop do something."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

Work = Callable[[], None]


def attempt(future: Future[T], function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Work:
    """Run ``function``, unless that is wanted no more; return what tells ``future`` of it."""
    if not future.set_running_or_notify_cancel():
        return lambda: None
    try:
        return partial(future.set_result, function(*args, **kwargs))
    except BaseException as error:
        return partial(future.set_exception, error)


def call_on(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: Any) -> None:
    """Call ``function`` on ``loop``, soon. From any thread.

    A loop that is closed, perhaps in this very moment, has nobody left who waits.
    """
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        return


class DaemonThread(Executor):
    """What ``ThreadPoolExecutor(1)`` does, but nobody joins it at the interpreter's end.

    A function that has not ended by then would hold up a deploy, or the reloading of
    ``runserver``, for as long as it likes.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``function`` on the thread."""
        future: Future[T] = Future()

        self.post(lambda: attempt(future, function, *args, **kwargs)())
        return future

    def post(self, work: Work) -> None:
        """Do ``work`` on the thread. It must not raise.

        Raises ``RuntimeError`` if the system has no more threads; the next one tries again.
        """
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            thread.start()
            self._thread = thread
        self._work.put(work)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the thread once it has done its work."""
        self._work.put(None)
        if wait and self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            # Nothing of it is kept while the thread waits for more.
            del work
