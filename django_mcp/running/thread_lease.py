"""The thread for the ORM of an asynchronous function: the drivers of databases are synchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import ThreadSensitiveContext

from ..current_partition import current_partition
from ..partitions import call_in, enter_partition
from ..protocol.errors import Unavailable
from ..server.errors import NoThreadFree
from .fair_turns import too_busy
from .worker_threads import CallContext, WorkerThread, WorkerThreads

T = TypeVar("T")


class Lease(Executor):
    """A thread for the ORM of one asynchronous function: taken when it is first needed, given back
    when the function waits for a person or ends. The function runs within ``async with``.
    """

    def __init__(
        self, threads: WorkerThreads, caller: str = "", call_context: CallContext | None = None
    ) -> None:
        self._threads = threads
        self._caller = caller
        if call_context is not None and current_partition():
            call_context = partial(_within_partition, current_partition(), call_context)
        self._call_context = call_context
        self.has_begun = False
        """Whether the function has begun, so that no thread is a failure of its own."""
        self._partition = current_partition()
        self._taking: asyncio.Task[WorkerThread] | None = None
        self._wanting: set[Future[Any]] = set()
        """What is to run on the thread that is being taken."""

    async def __aenter__(self) -> None:
        # More than the thread pool that asgiref's types ask for.
        executor: Any = self
        self._context = ThreadSensitiveContext(executor=executor)
        self._token = _lease.set(self)
        await self._context.__aenter__()  # type: ignore[no-untyped-call]

    async def __aexit__(self, *raised: Any) -> None:
        self.drop()  # first: whatever becomes of the rest, the thread is others'
        await self._context.__aexit__(*raised)  # type: ignore[no-untyped-call]
        del self._context  # the two know each other
        _lease.reset(self._token)

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``function`` on the thread, as soon as there is one. Called on the loop."""
        if self._taking is None:
            taking = self._threads.take(self._caller, self._call_context)
            self._taking, self._wanting = asyncio.create_task(taking), set()
        outer: Future[T] = Future()
        work = partial(function, *args, **kwargs)
        if self._partition:
            work = partial(call_in, self._partition, work)
        if self._taking.done():
            self._begin(outer, work, self._taking)
        else:
            self._taking.add_done_callback(partial(self._begin, outer, work))
            self._want(outer, self._taking, self._wanting)
        return outer

    def _begin(
        self, outer: Future[T], work: Callable[[], T], taking: asyncio.Task[WorkerThread]
    ) -> None:
        """Run ``work`` on the thread that was taken, unless nobody waits for that any more."""
        error = asyncio.CancelledError() if taking.cancelled() else taking.exception()
        if not outer.set_running_or_notify_cancel():
            return
        if error is None:
            try:
                inner = taking.result().submit(work)
            except RuntimeError:  # the system has no more threads to give
                error = too_busy()
            else:
                _chain(inner, outer)
                return
        if self.has_begun and isinstance(error, Unavailable):
            error = NoThreadFree("No worker thread was free in time; see WORKER_THREADS")
        outer.set_exception(error)

    def _want(
        self, outer: Future[Any], taking: asyncio.Task[WorkerThread], wanting: set[Future[Any]]
    ) -> None:
        """Wait for the thread no longer than somebody waits for what is to run on it."""

        def given_up(_: Future[Any]) -> None:
            wanting.discard(outer)
            if not wanting and taking.cancel() and self._taking is taking:
                self._taking = None

        wanting.add(outer)
        outer.add_done_callback(given_up)

    def drop(self) -> None:
        """Give the thread back; the next need takes another."""
        taking, self._taking = self._taking, None
        if taking is None:
            return
        taking.add_done_callback(self._return)

    def _return(self, taking: asyncio.Task[WorkerThread]) -> None:
        if not taking.cancelled() and taking.exception() is None:
            self._threads.give_back(taking.result())


def note_begun() -> None:
    """Note that the asynchronous function of the present lease begins."""
    lease = _lease.get(None)
    if lease is not None:
        lease.has_begun = True


def drop_lease() -> None:
    """Give back the thread of the asynchronous function that runs, which is about to wait."""
    lease = _lease.get(None)
    if lease is not None:
        lease.drop()


@contextmanager
def _within_partition(partition: str, call_context: CallContext) -> Iterator[None]:
    with enter_partition(partition), call_context():
        yield


def _chain(inner: Future[T], outer: Future[T]) -> None:
    def settle(done: Future[T]) -> None:
        error = done.exception()
        if error is None:
            outer.set_result(done.result())
        else:
            outer.set_exception(error)

    inner.add_done_callback(settle)


_lease: ContextVar[Lease] = ContextVar("lease")
