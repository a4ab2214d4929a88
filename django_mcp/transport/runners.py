"""Where synchronous and asynchronous code meet: one runner for the view, one for the mount."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from asgiref.sync import async_to_sync

from ..server.calling import Call, CallStopped, CallTimedOut, Outcome
from ..server.functions import is_async
from ..store.changes.publisher import deferred
from .gathering import gathering
from .lanes import Lease, call_lanes, gate_lanes

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


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

    async def gathered(self, find: Callable[[Sequence[K]], Mapping[K, T]], key: K, /) -> T | None:
        """Run ``find`` here."""
        return find([key]).get(key)

    async def ask(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run a function of either colour."""
        if is_async(function):
            return async_to_sync(function)(*args)
        return function(*args)

    async def call(self, call: Call) -> Outcome:
        """Make ``call`` here."""
        if not call.is_async:
            return _run_in_time(call)
        with deferred():
            return async_to_sync(_bounded)(call, call.arun())


class OnLanes:
    """Runs synchronous code on a lane of the process, asynchronous code on the loop.

    Lanes are taken for ``caller``, who is to leave some to others; those of the gate, for everybody
    whose name is not known yet, as for one.
    """

    def __init__(self, caller: str = "") -> None:
        self._caller = caller

    async def blocking(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run ``function`` on a lane of the gate."""
        return await gate_lanes().run(function, *args, caller=self._caller)

    async def gathered(self, find: Callable[[Sequence[K]], Mapping[K, T]], key: K, /) -> T | None:
        """Run ``find`` on a lane of the gate, for all who come while it is under way at once."""
        return await gathering(find).find(key)

    async def ask(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run a function of either colour; its ORM, too, has a lane."""
        if getattr(function, "nonblocking", False):
            return function(*args)
        if not is_async(function):
            lanes = gate_lanes()
            return await lanes.run_on(await lanes.take(self._caller), function, *args)
        async with Lease(gate_lanes(), self._caller):
            return await function(*args)

    async def call(self, call: Call) -> Outcome:
        """Make ``call``; the ORM of an asynchronous function has a lane."""
        if not call.is_async:
            lanes = call_lanes()
            lane = await lanes.take(self._caller)
            return await _bounded(call, lanes.run_on(lane, call.run_apart))
        async with Lease(call_lanes(), self._caller):
            return await _bounded(call, call.arun())


async def _bounded(call: Call, running: Awaitable[Outcome]) -> Outcome:
    if call.timeout is None:
        return await running
    try:
        async with asyncio.timeout(call.timeout) as limit:
            return await running
    except TimeoutError as error:
        if limit.expired():
            # A synchronous function goes on in its thread until its next word.
            call.peer.stop()
            raise CallTimedOut(call.timeout) from error
        raise


def _run_in_time(call: Call) -> Outcome:
    """Run a synchronous call in its caller's thread, where nobody can leave it before it ends."""
    if call.timeout is None:
        return call.run()
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        call.peer.stop()

    timer = threading.Timer(call.timeout, expire)
    timer.daemon = True
    timer.start()
    try:
        return call.run()
    except CallStopped as error:
        if expired.is_set():
            raise CallTimedOut(call.timeout) from error
        raise
    finally:
        timer.cancel()
