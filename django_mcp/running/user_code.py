"""Where the site's functions run: the one place that decides it, and what lies around them.

With :class:`InlineRunner` everything runs in the thread of the request; asynchronous functions on
the server's own loop, under ASGI, or else on one made for the call. With :class:`LoopRunner`
synchronous code runs on worker threads and asynchronous code on the server's loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from asgiref.sync import async_to_sync, sync_to_async

from ..server.errors import CallStopped, InputRequired, ToolTimedOut, UnexpectedExit
from ..server.failures import ExceptionTranslator
from ..server.function_call import FunctionCall, HandlerOutcome
from ..server.functions import is_async
from ..server.transactions import atomic_aliases, open_transactions, savepoints
from ..store.publisher import deferred
from .batch_loader import batch_loader
from .peers import BufferedPeer
from .worker_threads import Lease, pools

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def run_inline(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, as the endpoint's does with :class:`InlineRunner`."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        value: T = finished.value
        return value
    coroutine.close()
    raise RuntimeError("The endpoint suspended where it runs inline.")


class InlineRunner:
    """Runs everything in the thread, and on the database connection, of the request."""

    can_stream = False
    """Whether a reply can be sent piece by piece, without a thread that waits."""
    limit_key = ""

    def __init__(self) -> None:
        self.transactions = open_transactions()

    def peer(self, *, can_notify: bool) -> BufferedPeer:
        """Return the client of the calls of a POST, which is answered in one piece."""
        return BufferedPeer(can_notify=can_notify)

    async def run_blocking(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run ``function`` here."""
        return function(*args)

    async def find_batched(
        self, find: Callable[[Sequence[K]], Mapping[K, T]], key: K, /
    ) -> T | None:
        """Run ``find`` here."""
        return find([key]).get(key)

    async def run(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run a function, asynchronous or not."""
        if is_async(function):
            return async_to_sync(function)(*args)
        return function(*args)

    async def call(self, call: FunctionCall) -> HandlerOutcome:
        """Call a function of the site here."""
        if not call.is_async:
            if call.timeout is None:
                return call_function(call, self.transactions)
            return _call_in_time(call, self.transactions)
        with deferred():
            return async_to_sync(_await_in_time)(call, acall_function(call))


class LoopRunner:
    """Runs synchronous code on worker threads, asynchronous code on the loop.

    Threads are taken for whom ``limit_key`` names, who is to leave some to others; until it is
    known who calls, for everybody as for one.
    """

    can_stream = True
    transactions: Sequence[str] = ()

    def __init__(self) -> None:
        self.limit_key = ""
        self._pools = pools()

    async def run_blocking(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run ``function`` on a worker thread."""
        return await self._pools.admission.run(function, *args, caller=self.limit_key)

    async def find_batched(
        self, find: Callable[[Sequence[K]], Mapping[K, T]], key: K, /
    ) -> T | None:
        """Run ``find`` on a worker thread, for all who come while it is under way at once."""
        return await batch_loader(find).find(key)

    async def run(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run a function, asynchronous or not; its ORM, too, has a worker thread."""
        if getattr(function, "nonblocking", False):
            return function(*args)
        threads = self._pools.admission
        if not is_async(function):
            return await threads.ask_on(await threads.take(self.limit_key), function, *args)
        async with Lease(threads, self.limit_key):
            return await function(*args)

    async def call(self, call: FunctionCall) -> HandlerOutcome:
        """Call a function of the site; the ORM of an asynchronous one has a worker thread."""
        threads = self._pools.calls
        if call.is_async:
            async with Lease(threads, self.limit_key):
                if call.timeout is None:
                    return await acall_function(call)
                return await _await_in_time(call, acall_function(call))
        thread = await threads.take(self.limit_key)
        running = threads.run_on(thread, call_function_apart, call)
        return await (running if call.timeout is None else _await_in_time(call, running))


def call_function(call: FunctionCall, transactions: Sequence[str] = ()) -> HandlerOutcome:
    """Call a synchronous function, in this thread.

    Where ``transactions`` are open around it, or the site asks for them, it gets a savepoint.
    """
    try:
        if call.questions is not None:
            # Outside of the call's own transaction: what is rolled back there has been used all
            # the same.
            call.questions.redeem()
        aliases = atomic_aliases(transactions) if call.atomic else ()
        if not aliases:
            return _call_and_finish(call)
        with savepoints(aliases):
            return _call_and_finish(call)
    except (Exception, BaseExceptionGroup, InputRequired) as error:
        return _translator(call, error).outcome(error)


def _call_and_finish(call: FunctionCall) -> HandlerOutcome:
    value = call.function(**call.arguments)
    if call.exchange.stopped:
        # Nobody gets the result, so what a transaction covers must not stay either.
        raise CallStopped
    outcome = call.finish(value)
    if call.questions is not None:
        call.questions.close()
    return outcome


def call_function_apart(call: FunctionCall) -> HandlerOutcome:
    """Do as :func:`call_function`, in a thread that only the function itself can bring to an end.

    What would end the process, or the task that waits, is a failure there like any other.
    """
    try:
        return call_function(call)
    except (SystemExit, asyncio.CancelledError) as error:
        return _translator(call, error).outcome(UnexpectedExit(error))


async def acall_function(call: FunctionCall) -> HandlerOutcome:
    """Call an asynchronous function, on this loop."""
    try:
        questions = call.questions
        if questions is not None and questions.redeems:
            await sync_to_async(questions.redeem)()
        outcome = call.finish(await call.function(**call.arguments))
        if questions is not None:
            questions.close()
        return outcome
    except (Exception, BaseExceptionGroup, InputRequired) as error:
        return await _translator(call, error).aoutcome(error)
    except asyncio.CancelledError as error:
        if _is_cancelled():
            raise
        # Out of something that the function has awaited. Its client waits for an answer.
        return await _translator(call, error).aoutcome(UnexpectedExit(error))


def _translator(call: FunctionCall, error: BaseException) -> ExceptionTranslator:
    if call.fail is None:
        raise error
    return ExceptionTranslator(
        call.server, call.exchange, call.fail, call.failure_kinds, call.questions
    )


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _await_in_time(call: FunctionCall, running: Awaitable[HandlerOutcome]) -> HandlerOutcome:
    """Await a call for as long as it may take."""
    if call.timeout is None:
        return await running
    try:
        async with asyncio.timeout(call.timeout) as limit:
            return await running
    except TimeoutError as error:
        if not limit.expired():
            raise
        # A synchronous function goes on in its thread until its next word.
        call.exchange.stop()
        timed_out = ToolTimedOut(call.timeout)
        return _translator(call, error).outcome(timed_out)


def _call_in_time(call: FunctionCall, transactions: Sequence[str]) -> HandlerOutcome:
    """Call a synchronous function in its caller's thread, where nobody can leave it early."""
    assert call.timeout is not None
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        call.exchange.stop()

    timer = threading.Timer(call.timeout, expire)
    timer.daemon = True
    timer.start()
    try:
        return call_function(call, transactions)
    except CallStopped as error:
        if not expired.is_set():
            raise
        return _translator(call, error).outcome(ToolTimedOut(call.timeout))
    finally:
        timer.cancel()
