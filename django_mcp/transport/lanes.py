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
from .threads import DaemonThread, Work, attempt, call_on
from .turns import Turns

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
        self.caller = ""
        """For whom it runs."""
        self.is_lent = False
        """Whether another runs in its place while it waits for a person."""

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

    def retire(self) -> Future[None]:
        """Close the lane's connections and end its thread, once nothing runs on it any more."""
        closed = self._thread.submit(connections.close_all)
        self._thread.shutdown(wait=False)
        return closed

    async def close(self) -> None:
        """Do that, and wait for it."""
        await asyncio.wrap_future(self.retire())
        self._thread.shutdown()


class Lanes:
    """The lanes of one event loop; the one used last goes first, its connections are warm.

    About ``size`` of them run at once, and no caller keeps them from others: see :class:`Turns`. A
    thread that waits for a person does not count: another lane takes its place until it goes on.
    """

    def __init__(self, size: int, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._made = 0
        self._lanes: set[Lane] = set()
        self._lent = 0
        self._free: deque[Lane] = deque()
        self.turns = Turns(size)

    async def run(self, function: Callable[..., T], /, *args: Any, caller: str = "") -> T:
        """Run a function of this package on a lane, for ``caller``.

        What only the site's code asks for does not come along: the language, the time zone, the
        script prefix. That would cost more than all the rest.
        """
        lane = await self.take(caller)
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
        token = _lane_of_thread.set((self, lane))
        try:
            return await sync_to_async(function, thread_sensitive=False, executor=executor)(*args)
        finally:
            _lane_of_thread.reset(token)

    async def take(self, caller: str = "") -> Lane:
        """Return a lane for ``caller``, which must be given back.

        Waits a bounded time for one, where not too many wait already; then answers 503.
        """
        if not self.turns.take_now(caller):
            await self.turns.wait(caller)
        lane = self._free.pop() if self._free else self._make()
        lane.caller = caller
        return lane

    def _make(self) -> Lane:
        lane = Lane(f"mcp-{self._name}-{self._made}")
        self._made += 1
        self._lanes.add(lane)
        return lane

    def give_back(self, lane: Lane) -> None:
        """Take a lane back, as soon as nothing runs on it."""
        lane.release(lambda: self._on_loop(self._keep, lane))

    @contextmanager
    def idle(self, lane: Lane) -> Iterator[None]:
        """Let another lane run while the present thread, which is that of ``lane``, waits."""
        connections.close_all()
        self._on_loop(self._lend, lane)
        try:
            yield
        finally:
            self._on_loop(self._go_on, lane)

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
        self.turns.give_back(lane.caller)
        if len(self._lanes) - self._lent > max(self.turns.size, self.turns.running):
            surplus = self._free.popleft()
            self._lanes.discard(surplus)
            surplus.retire()

    def _lend(self, lane: Lane) -> None:
        if self._lent < MAX_IDLE:
            self._lent += 1
            lane.is_lent = True
            self.turns.give_back(lane.caller)

    def _go_on(self, lane: Lane) -> None:
        if lane.is_lent:
            self._lent -= 1
            lane.is_lent = False
            # One more than the others, until the next lane is returned.
            self.turns.hold(lane.caller)

    def _on_loop(self, function: Callable[..., Any], *args: Any) -> None:
        call_on(self._loop, function, *args)


class Lease(Executor):
    """A lane for the ORM of one asynchronous function: taken when it is first needed, given back
    when the function waits for a person or ends. The function runs within ``async with``.
    """

    def __init__(self, lanes: Lanes, caller: str = "") -> None:
        self._lanes = lanes
        self._caller = caller
        self._taking: asyncio.Task[Lane] | None = None
        self._wanting: set[Future[Any]] = set()
        """What is to run on the lane that is being taken."""

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
            taking = self._lanes.take(self._caller)
            self._taking, self._wanting = asyncio.create_task(taking), set()
        outer: Future[T] = Future()
        work = partial(function, *args, **kwargs)
        if self._taking.done():
            _begin(outer, work, self._taking)
        else:
            self._taking.add_done_callback(partial(_begin, outer, work))
            self._want(outer, self._taking, self._wanting)
        return outer

    def _want(
        self, outer: Future[Any], taking: asyncio.Task[Lane], wanting: set[Future[Any]]
    ) -> None:
        """Wait for the lane no longer than somebody waits for what is to run on it."""

        def given_up(_: Future[Any]) -> None:
            wanting.discard(outer)
            if not wanting and taking.cancel() and self._taking is taking:
                self._taking = None

        wanting.add(outer)
        outer.add_done_callback(given_up)

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
    found = _lane_of_thread.get(None)
    if found is None:
        yield
        return
    lanes, lane = found
    with lanes.idle(lane):
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


def _begin(outer: Future[T], work: Callable[[], T], taking: asyncio.Task[Lane]) -> None:
    """Run ``work`` on the lane that was taken, unless nobody waits for that any more."""
    error = asyncio.CancelledError() if taking.cancelled() else taking.exception()
    if not outer.set_running_or_notify_cancel():
        return
    if error is not None:
        outer.set_exception(error)
    else:
        _chain(taking.result().submit(work), outer)


def _chain(inner: Future[T], outer: Future[T]) -> None:
    def settle(done: Future[T]) -> None:
        error = done.exception()
        if error is None:
            outer.set_result(done.result())
        else:
            outer.set_exception(error)

    inner.add_done_callback(settle)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Lanes]] = WeakKeyDictionary()
_lane_of_thread: ContextVar[tuple[Lanes, Lane]] = ContextVar("lane")
_lease: ContextVar[Lease] = ContextVar("lease")
