"""Worker threads, each with database connections of its own, on which blocking code runs.

What precedes a call has threads of its own, so that calls, however slow, never keep a request from
being looked at, a cancellation from being noticed, an answer from being taken.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context, ContextVar, copy_context
from functools import cached_property, partial
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from django.db import connections

from ..conf import get_settings
from ..current_partition import PARTITION
from ..partitions import call_in
from .fair_turns import FairTurns, too_busy
from .thread_locals import adopt_locals, restore_context
from .threads import DaemonThread, call_on

logger = logging.getLogger("django_mcp.request")

T = TypeVar("T")

CallContext = Callable[[], AbstractContextManager[Any]]
"""Makes what the site wants around its code on a thread, for one request."""

ADMISSION_THREADS: Final = 4
"""Threads for what every request needs before its call, which takes milliseconds."""
MAX_IDLE_THREADS: Final = 200
"""Threads that may wait for people; one more keeps its place while it waits."""


class WorkerThread(Executor):
    """A thread with database connections of its own.

    Connections that have gone stale are closed before the first thing that it runs for somebody and
    after the last; without that, one killed backend would break every later call on the thread.
    """

    def __init__(self, name: str) -> None:
        self._thread = DaemonThread(name)
        self.post: Callable[[Callable[[], None]], None] = self._thread.post
        """Does work, which must not raise, after what was submitted before."""
        self._last: Future[Any] | None = None
        self._is_fresh = True
        self._has_connections = False
        self.caller = ""
        """For whom it runs."""
        self.call_context: CallContext | None = None
        """What the site wants around its code here, for whom it runs."""
        self._entered: AbstractContextManager[Any] | None = None
        self.waits = 0
        """For how many answers of people it waits: what it runs may ask several at once."""
        self.is_lent = False
        """Whether another runs in its place meanwhile."""

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``function`` after what was submitted before; for a lease."""
        if self._is_fresh:
            self._is_fresh = False
            self._thread.submit(self.close_stale_connections)
        if self.call_context is not None:
            function = partial(self._enter_and_run, function)
        future = self._thread.submit(function, *args, **kwargs)
        self._last = future
        return future

    def _enter_and_run(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        self.enter()
        return function(*args, **kwargs)

    def run_within(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run a function of the site within its ``CALL_CONTEXT``. On the thread."""
        self.enter()
        try:
            return function(*args)
        finally:
            self.leave()

    def enter(self) -> None:
        """Enter the ``CALL_CONTEXT`` of the site, unless it is entered already. On the thread."""
        if self.call_context is not None and self._entered is None:
            entered = self.call_context()
            entered.__enter__()
            self._entered = entered

    def leave(self) -> None:
        """Leave it, if it is entered. On the thread."""
        entered, self._entered = self._entered, None
        if entered is not None:
            entered.__exit__(*sys.exc_info())

    def release(self, done: Callable[[], None]) -> None:
        """Call ``done`` once nothing runs any more; a cancelled wait does not stop a thread."""
        if self._last is None:
            done()
            return
        self._last = None
        self._is_fresh = True
        ended = self._thread.submit(self._leave_and_note_connections)
        ended.add_done_callback(lambda _: done())

    def _leave_and_note_connections(self) -> None:
        try:
            self.leave()
        except Exception:
            logger.exception("CALL_CONTEXT could not be left")
        self.note_connections()

    def close_stale_connections(self) -> None:
        """Close connections that are of no use any more. On the thread."""
        if self._has_connections:
            self.note_connections()

    def note_connections(self) -> None:
        """Close connections that are of no use any more, also new ones. On the thread."""
        opened = connections.all(initialized_only=True)
        self._has_connections = bool(opened)
        for connection in opened:
            try:
                connection.close_if_unusable_or_obsolete()
            except Exception:
                logger.exception("A connection to the database could not be closed")

    def retire(self) -> Future[None]:
        """Close the connections and end the thread, once nothing runs on it any more."""
        closed = self._thread.submit(connections.close_all)
        self._thread.shutdown(wait=False)
        return closed

    async def close(self) -> None:
        """Do that, and wait for it."""
        await asyncio.wrap_future(self.retire())
        self._thread.shutdown()


class WorkerThreads:
    """The worker threads of one event loop; the one used last goes first: its connections are warm.

    About ``size`` of them run at once, and no caller keeps them from others: see
    :class:`~django_mcp.running.fair_turns.FairTurns`. A thread that waits for a person does not
    count: another takes its place until it goes on.
    """

    def __init__(self, size: int, name: str) -> None:
        self.loop = asyncio.get_running_loop()
        self._name = name
        self._made = 0
        self._threads: set[WorkerThread] = set()
        self._lent = 0
        self._free: deque[WorkerThread] = deque()
        self.turns = FairTurns(size)

    async def run(self, function: Callable[..., T], /, *args: Any, caller: str = "") -> T:
        """Run a function of this package on a thread, for ``caller``.

        What only the site's code asks for does not come along: the language, the time zone, the
        script prefix. That would cost more than all the rest.
        """
        result: T = await self.begin(await self.take(caller), copy_context(), function, args)
        return result

    def run_on(
        self, thread: WorkerThread, function: Callable[..., T], /, *args: Any
    ) -> asyncio.Future[T]:
        """Run a function of the site on ``thread``, which is given back when it has ended."""
        context = copy_context()
        context.run(_thread_of_call.set, (self, thread))
        return self._begin_within(thread, context, function, args)

    async def ask_on(self, thread: WorkerThread, function: Callable[..., T], /, *args: Any) -> T:
        """Do as :meth:`run_on`; what the function sets in its context is set here, too."""
        context = copy_context()
        answer: T = await self._begin_within(thread, context, function, args)
        restore_context(context)
        return answer

    def _begin_within(
        self,
        thread: WorkerThread,
        context: Context,
        function: Callable[..., T],
        args: tuple[Any, ...],
    ) -> asyncio.Future[T]:
        if thread.call_context is not None:
            function, args = thread.run_within, (function, *args)
        return self.begin(thread, context, adopt_locals, (context, function, *args))

    def begin(
        self,
        thread: WorkerThread,
        context: Context,
        function: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> asyncio.Future[Any]:
        """Run a function on ``thread``, which is given back when it has ended."""
        job = _Job(self, thread, context, function, args)
        try:
            thread.post(job)
        except RuntimeError:
            # The system has no more threads to give.
            self.keep(thread)
            raise too_busy() from None
        return job.result

    async def take(self, caller: str = "", call_context: CallContext | None = None) -> WorkerThread:
        """Return a thread for ``caller``, which must be given back.

        Code of the site's runs there within ``call_context``. Waits a bounded time for one, where
        not too many wait already; then answers 503.
        """
        if not self.turns.take_now(caller):
            await self.turns.wait(caller)
        thread = self._free.pop() if self._free else self._make()
        thread.caller, thread.call_context = caller, call_context
        return thread

    def _make(self) -> WorkerThread:
        thread = WorkerThread(f"mcp-{self._name}-{self._made}")
        self._made += 1
        self._threads.add(thread)
        return thread

    def give_back(self, thread: WorkerThread) -> None:
        """Take a thread back, as soon as nothing runs on it."""
        thread.release(lambda: call_on(self.loop, self.keep, thread))

    @contextmanager
    def idle(self, thread: WorkerThread) -> Iterator[None]:
        """Let another thread run while the present one, which is ``thread``, waits."""
        thread.leave()
        connections.close_all()
        call_on(self.loop, self._lend, thread)
        try:
            yield
        finally:
            call_on(self.loop, self._go_on, thread)
            thread.enter()

    async def close(self) -> None:
        """End all threads, each once nothing runs on it any more."""
        for thread in list(self._threads):
            await thread.close()

    def keep(self, thread: WorkerThread) -> None:
        """Take a thread back, on which nothing runs any more. On the loop."""
        thread.call_context = None
        self._free.append(thread)
        self.turns.give_back(thread.caller)
        if len(self._threads) - self._lent > max(self.turns.size, self.turns.running):
            surplus = self._free.popleft()
            self._threads.discard(surplus)
            surplus.retire()

    def _lend(self, thread: WorkerThread) -> None:
        thread.waits += 1
        if thread.waits == 1 and self._lent < MAX_IDLE_THREADS:
            self._lent += 1
            thread.is_lent = True
            self.turns.give_back(thread.caller)

    def _go_on(self, thread: WorkerThread) -> None:
        thread.waits -= 1
        if thread.is_lent and not thread.waits:
            self._lent -= 1
            thread.is_lent = False
            # One more than the others, until the next thread is returned.
            self.turns.hold(thread.caller)


class _Job:
    """One function on a worker thread: called there, it settles ``result`` on the loop."""

    __slots__ = ("_args", "_context", "_function", "_thread", "_threads", "result")

    def __init__(
        self,
        threads: WorkerThreads,
        thread: WorkerThread,
        context: Context,
        function: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> None:
        self._threads = threads
        self._thread = thread
        self._context = context
        self._function = function
        self._args = args
        self.result: asyncio.Future[Any] = threads.loop.create_future()

    def __call__(self) -> None:
        value: Any = None
        error: BaseException | None = None
        if not self.result.cancelled():
            self._thread.close_stale_connections()
            try:
                # No connection keeps the partition of whoever had the thread before.
                if partition := self._context.get(PARTITION):
                    value = self._context.run(call_in, partition, self._function, *self._args)
                else:
                    value = self._context.run(self._function, *self._args)
            except StopIteration as stopped:
                # No future may have it for an exception.
                error = RuntimeError("the function raised StopIteration")
                error.__cause__ = stopped
            except BaseException as raised:
                error = raised
            self._thread.note_connections()
        call_on(self._threads.loop, self._end, value, error)

    def _end(self, value: Any, error: BaseException | None) -> None:
        # First: whoever waits for the result finds the thread free again.
        self._threads.keep(self._thread)
        if self.result.done():
            return
        if error is None:
            self.result.set_result(value)
        else:
            self.result.set_exception(error)


@contextmanager
def idle() -> Iterator[None]:
    """Wait in the present thread for somebody outside, without keeping it from others."""
    found = _thread_of_call.get(None)
    if found is None:
        yield
        return
    threads, thread = found
    with threads.idle(thread):
        yield


class Pools:
    """The worker threads of one event loop."""

    @cached_property
    def admission(self) -> WorkerThreads:
        """For what precedes a call."""
        return WorkerThreads(ADMISSION_THREADS, "admission")

    @cached_property
    def calls(self) -> WorkerThreads:
        """For calls."""
        return WorkerThreads(get_settings().worker_threads, "call")


def pools() -> Pools:
    """Return those of the present loop."""
    loop = asyncio.get_running_loop()
    found = _by_loop.get(loop)
    if found is None:
        found = _by_loop[loop] = Pools()
    return found


async def close_worker_threads() -> None:
    """Close the database connections and threads of this loop; tests want that."""
    found = _by_loop.pop(asyncio.get_running_loop(), None)
    if found is not None:
        for threads in vars(found).values():
            await threads.close()


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Pools] = WeakKeyDictionary()
_thread_of_call: ContextVar[tuple[WorkerThreads, WorkerThread]] = ContextVar("worker_thread")
