"""Where synchronous and asynchronous code meet: one runner for the view, one for the mount."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from asgiref.sync import ThreadSensitiveContext, async_to_sync, sync_to_async
from django.db import close_old_connections, connections

from ..conf import get_settings
from ..protocol.errors import Unavailable
from ..server.calling import Call, CallTimedOut, Outcome
from ..server.functions import is_async

T = TypeVar("T")


def run_inline(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, as the endpoint's does with :class:`Inline`."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        value: T = finished.value
        return value
    coroutine.close()
    raise RuntimeError("The endpoint suspended where it runs inline.")


class Inline:
    """Runs everything in the thread, and on the database connection, of the request.

    Under ASGI, asynchronous user code goes to the server's own loop.
    """

    async def blocking(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run ``function`` here."""
        return function(*args)

    async def ask(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run a function of either colour."""
        if is_async(function):
            return async_to_sync(function)(*args)
        return function(*args)

    async def call(self, call: Call) -> Outcome:
        """Make ``call`` here."""
        return async_to_sync(_bounded)(call) if call.is_async else call.run()


class OnLanes:
    """Runs synchronous code on a lane of the process, asynchronous code on the loop."""

    async def blocking(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run ``function`` on a lane."""
        async with _lanes().lease() as lane:
            return await lane.run(function, *args)

    async def ask(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run a function of either colour; its ORM, too, has a lane."""
        if not is_async(function):
            return await self.blocking(function, *args)
        async with _lanes().lease() as lane, ThreadSensitiveContext(executor=lane):
            return await function(*args)

    async def call(self, call: Call) -> Outcome:
        """Make ``call``; the ORM of an asynchronous function has a lane."""
        if not call.is_async:
            return await self.blocking(call.run)
        async with _lanes().lease() as lane, ThreadSensitiveContext(executor=lane):
            return await _bounded(call)


async def _bounded(call: Call) -> Outcome:
    try:
        async with asyncio.timeout(call.timeout) as limit:
            return await call.arun()
    except TimeoutError as error:
        if limit.expired():
            raise CallTimedOut from error
        raise


class Lane(Executor):
    """A thread with database connections of its own.

    Connections that have gone stale are closed before the first thing that a lease runs and after
    the last; without that, one killed backend would break every later call on the lane.
    """

    def __init__(self, number: int) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"mcp-lane-{number}")
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

    async def run(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run ``function`` in the present context and wait for it.

        Through asgiref, for a context alone does not carry Django's locals into the thread: the
        script prefix, the language, the time zone.
        """
        executor: Any = self  # more than the thread pool that asgiref's types ask for
        return await sync_to_async(function, thread_sensitive=False, executor=executor)(*args)

    def release(self, done: Callable[[], None]) -> None:
        """Call ``done`` once nothing runs any more; a cancelled wait does not stop a thread."""
        if self._last is None:
            done()
            return
        self._last = None
        self.fresh = True
        self._thread.submit(close_old_connections).add_done_callback(lambda _: done())

    async def close(self) -> None:
        """Close the lane's connections and end its thread."""
        await self.run(connections.close_all)
        self._thread.shutdown()


class Lanes:
    """The lanes of one event loop; the one used last goes first, its connections are warm."""

    def __init__(self, size: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._size = size
        self._free = deque(Lane(number) for number in range(size))
        self._available = asyncio.Semaphore(size)

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Lane]:
        """Lend a lane. Waits a bounded time for one, then answers 503."""
        seconds = get_settings().lane_wait_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._available.acquire()
        except TimeoutError:
            raise Unavailable("The server is busy; try again later") from None
        lane = self._free.pop()
        try:
            yield lane
        finally:
            lane.release(lambda: self._return(lane))

    async def close(self) -> None:
        """Wait for all lanes to be returned, and end them."""
        for _ in range(self._size):
            await self._available.acquire()
            await self._free.pop().close()

    def _return(self, lane: Lane) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._give_back, lane)

    def _give_back(self, lane: Lane) -> None:
        self._free.append(lane)
        self._available.release()


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Lanes] = WeakKeyDictionary()


async def close_lanes() -> None:
    """Close the database connections and threads of this loop's lanes; tests want that."""
    lanes = _by_loop.pop(asyncio.get_running_loop(), None)
    if lanes is not None:
        await lanes.close()


def _lanes() -> Lanes:
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = Lanes(get_settings().lanes)
    return _by_loop[loop]
