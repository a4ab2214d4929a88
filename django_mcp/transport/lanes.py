"""Lanes: the threads, each with database connections of its own, on which blocking code runs.

The gate has lanes of its own, so that calls, however slow, never keep a request from being looked
at, a cancellation from being heard, an answer from being taken.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections, connections

from ..conf import get_settings
from ..protocol.errors import Unavailable
from .threads import DaemonThread, Work, attempt, call_on

T = TypeVar("T")

GATE_LANES: Final = 4
"""Lanes for what every request needs before its call, which takes milliseconds."""
MAX_IDLE: Final = 200
"""Threads that may wait for people; one more keeps its lane while it waits."""


class Lane(Executor):
    """A thread with database connections of its own.

    Connections that have gone stale are closed before the first thing that a lease runs and after
    the last; without that, one killed backend would break every later call on the lane.
    """

    def __init__(self, name: str) -> None:
        self._thread = DaemonThread(name)
        self._last: Future[Any] | None = None
        self.fresh = True

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``function`` on the lane's thread, after what was submitted before."""
        if self.fresh:
            self.fresh = False
            self._thread.submit(close_old_connections)
        future = self._thread.submit(function, *args, **kwargs)
        self._last = future
        return future

    def release(self, done: Callable[[], None]) -> None:
        """Call ``done`` once nothing runs any more; a cancelled wait does not stop a thread."""
        if self._last is None:
            done()
            return
        self._last = None
        self.fresh = True
        self._thread.submit(close_old_connections).add_done_callback(lambda _: done())

    def post(self, work: Callable[[], Work], done: Work) -> None:
        """Do ``work``, which must not raise, and nothing else before ``done`` is called.

        What ``work`` returns is called last: whoever waits for it finds the lane free again.
        """

        def alone() -> None:
            with suppress(Exception):
                close_old_connections()
            tell = work()
            with suppress(Exception):
                close_old_connections()
            done()
            tell()

        self._thread.post(alone)

    async def close(self) -> None:
        """Close the lane's connections and end its thread."""
        await asyncio.wrap_future(self._thread.submit(connections.close_all))
        self._thread.shutdown()


class Lanes:
    """The lanes of one event loop; the one used last goes first, its connections are warm.

    ``size`` of them run at once. A thread that waits for a person does not count: another lane
    takes its place until it goes on.
    """

    def __init__(self, size: int, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._made = 0
        self._lanes: set[Lane] = set()
        self._idle = 0
        self._size = size
        self._free: deque[Lane] = deque()
        self._waiting = 0
        self._available = asyncio.Semaphore(size)

    async def run(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run a function of this package on a lane.

        What only the site's code asks for does not come along: the language, the time zone, the
        script prefix. That would cost more than all the rest.
        """
        lane = await self.take()
        result: asyncio.Future[T] = self._loop.create_future()
        work = partial(self._attempt, result, copy_context(), function, args)
        lane.post(work, lambda: self._on_loop(self._keep, lane))
        return await result

    async def run_on(self, lane: Lane, function: Callable[..., T], /, *args: Any) -> T:
        """Run a function of the site on ``lane``, which is given back when it has ended.

        Through asgiref, for a context alone does not carry Django's locals into the thread: the
        script prefix, the language, the time zone.
        """
        # More than the thread pool that asgiref's types ask for.
        executor: Any = _Once(lane, lambda: self._on_loop(self._keep, lane))
        token = _lanes_of_thread.set(self)
        try:
            return await sync_to_async(function, thread_sensitive=False, executor=executor)(*args)
        finally:
            _lanes_of_thread.reset(token)

    async def take(self) -> Lane:
        """Return a lane, which must be given back.

        Waits a bounded time for one, where not too many wait already; then answers 503.
        """
        if self._available.locked():
            await self._wait()
        else:
            await self._available.acquire()  # at once
        if self._free:
            return self._free.pop()
        lane = Lane(f"mcp-{self._name}-{self._made}")
        self._made += 1
        self._lanes.add(lane)
        return lane

    async def _wait(self) -> None:
        settings = get_settings()
        if self._waiting >= settings.lane_queue:
            raise busy()
        self._waiting += 1
        try:
            async with asyncio.timeout(settings.lane_wait_seconds):
                await self._available.acquire()
        except TimeoutError:
            raise busy() from None
        finally:
            self._waiting -= 1

    def give_back(self, lane: Lane) -> None:
        """Take a lane back, as soon as nothing runs on it."""
        lane.release(lambda: self._on_loop(self._keep, lane))

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Let another lane run while the present thread, which is a lane's, waits."""
        connections.close_all()
        self._on_loop(self._grow)
        try:
            yield
        finally:
            self._on_loop(self._shrink)

    async def close(self) -> None:
        """End all lanes, each once nothing runs on it any more."""
        for lane in list(self._lanes):
            await lane.close()

    def _attempt(
        self,
        result: asyncio.Future[T],
        context: Context,
        function: Callable[..., T],
        args: tuple[Any, ...],
    ) -> Work:
        tell: Work
        try:
            tell = partial(result.set_result, context.run(function, *args))
        except BaseException as error:
            tell = partial(result.set_exception, error)
        return lambda: self._on_loop(lambda: None if result.done() else tell())

    def _keep(self, lane: Lane) -> None:
        self._free.append(lane)
        self._available.release()

    def _grow(self) -> None:
        self._idle += 1
        if self._idle <= MAX_IDLE:
            self._available.release()

    def _shrink(self) -> None:
        self._idle -= 1
        if self._idle < MAX_IDLE:
            # One more than the others runs until the next lane is returned.
            task = self._loop.create_task(self._take_one_out())
            _shrinking.add(task)
            task.add_done_callback(_shrinking.discard)

    async def _take_one_out(self) -> None:
        await self._available.acquire()
        if self._free and len(self._lanes) - self._idle > self._size:
            lane = self._free.popleft()
            self._lanes.discard(lane)
            await lane.close()

    def _on_loop(self, function: Callable[..., Any], *args: Any) -> None:
        call_on(self._loop, function, *args)


class Lease(Executor):
    """A lane for the ORM of one asynchronous function: taken when it is first needed, given back
    when the function waits for a person or ends. The function runs within ``async with``.
    """

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._taking: asyncio.Task[Lane] | None = None

    async def __aenter__(self) -> None:
        # More than the thread pool that asgiref's types ask for.
        executor: Any = self
        self._context = ThreadSensitiveContext(executor=executor)
        self._token = _lease.set(self)
        await self._context.__aenter__()  # type: ignore[no-untyped-call]

    async def __aexit__(self, *raised: Any) -> None:
        self.drop()  # first: whatever becomes of the rest, the lane is others'
        await self._context.__aexit__(*raised)  # type: ignore[no-untyped-call]
        del self._context  # the two know each other
        _lease.reset(self._token)

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``function`` on the lane, as soon as there is one. Called on the loop."""
        if self._taking is None:
            self._taking = asyncio.create_task(self._lanes.take())
        outer: Future[T] = Future()

        def begin(taking: asyncio.Task[Lane]) -> None:
            if taking.cancelled() or taking.exception() is not None:
                outer.set_exception(taking.exception() or asyncio.CancelledError())
            else:
                _chain(taking.result().submit(function, *args, **kwargs), outer)

        if self._taking.done():
            begin(self._taking)
        else:
            self._taking.add_done_callback(begin)
        return outer

    def drop(self) -> None:
        """Give the lane back; the next need takes another."""
        taking, self._taking = self._taking, None
        if taking is None:
            return
        taking.add_done_callback(self._return)

    def _return(self, taking: asyncio.Task[Lane]) -> None:
        if not taking.cancelled() and taking.exception() is None:
            self._lanes.give_back(taking.result())


class _Once(Executor):
    """A lane for one function."""

    def __init__(self, lane: Lane, done: Callable[[], None]) -> None:
        self._lane = lane
        self._done = done

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``function`` on the lane."""
        future: Future[T] = Future()
        self._lane.post(lambda: attempt(future, function, *args, **kwargs), self._done)
        return future


@contextmanager
def idle() -> Iterator[None]:
    """Wait in the present thread for somebody outside, without keeping a lane from others."""
    lanes = _lanes_of_thread.get(None)
    if lanes is None:
        yield
        return
    with lanes.idle():
        yield


def drop_lane() -> None:
    """Give back the lane of the asynchronous function that runs, which is about to wait."""
    lease = _lease.get(None)
    if lease is not None:
        lease.drop()


def gate_lanes() -> Lanes:
    """Return the lanes for what precedes a call."""
    return _lanes("gate", GATE_LANES)


def call_lanes() -> Lanes:
    """Return the lanes for calls."""
    return _lanes("lane", get_settings().lanes)


async def close_lanes() -> None:
    """Close the database connections and threads of this loop's lanes; tests want that."""
    for lanes in _by_loop.pop(asyncio.get_running_loop(), {}).values():
        await lanes.close()


def _lanes(name: str, size: int) -> Lanes:
    mine = _by_loop.setdefault(asyncio.get_running_loop(), {})
    if name not in mine:
        mine[name] = Lanes(size, name)
    return mine[name]


def busy() -> Unavailable:
    """Return the refusal of a request for which nothing is free: 503."""
    return Unavailable("The server is busy; try again later")


def _chain(inner: Future[T], outer: Future[T]) -> None:
    def settle(done: Future[T]) -> None:
        if not outer.set_running_or_notify_cancel():
            return
        error = done.exception()
        if error is None:
            outer.set_result(done.result())
        else:
            outer.set_exception(error)

    inner.add_done_callback(settle)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Lanes]] = WeakKeyDictionary()
_lanes_of_thread: ContextVar[Lanes] = ContextVar("lanes")
_lease: ContextVar[Lease] = ContextVar("lease")
_shrinking: set[asyncio.Task[None]] = set()
