"""Where the site's functions run: the one place that decides it, and what lies around them.

What precedes a function (``AUTH``, permissions) runs where the request has come in: in the thread
that the server or Django has given it, or at the mount on a worker thread. The function itself:

=========================================  ================  ================  =============
the function                               view, WSGI        view, ASGI        mount
=========================================  ================  ================  =============
takes the ``HttpRequest``, ``def``         request's thread  request's thread  worker thread
takes neither that nor a context, ``def``  request's thread  worker thread     worker thread
takes a context, ``def``                   worker thread     worker thread     worker thread
``async def``                              process's loop    server's loop     server's loop
any, where nothing can be streamed         request's thread  request's thread
=========================================  ================  ================  =============

Nothing can be streamed under WSGI beyond ``WSGI_STREAMS``, and inside an open transaction, as in a
test; :func:`runner_of_view` knows.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from contextvars import Context, copy_context
from functools import cache
from types import CoroutineType
from typing import Any, TypeVar

from asgiref.sync import async_to_sync, sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest

from ..conf import get_settings
from ..native_threads import has_threads, waiting_for
from ..server.errors import CallStopped, InputRequired, ToolTimedOut, UnexpectedExit
from ..server.failures import ExceptionTranslator
from ..server.function_call import FunctionCall, HandlerOutcome
from ..server.functions import is_async
from ..server.transactions import atomic_aliases, open_transactions, savepoints
from ..store.publisher import deferred
from . import shutdown
from .batch_loader import batch_loader
from .peers import BufferedPeer
from .process_loop import process_loop
from .thread_lease import Lease, note_begun
from .thread_locals import adopt_locals
from .threads import call_on
from .worker_threads import CallContext, WorkerThreads, pools
from .wsgi_streams import wsgi_streams

logger = logging.getLogger("django_mcp.request")

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

    limit_key = ""
    call_context: CallContext | None = None
    holds_connections = False
    can_request = False
    """Whether the client answers while a call waits, although nothing is streamed."""

    def __init__(self, transactions: Sequence[str] | None = None) -> None:
        self.transactions = open_transactions() if transactions is None else transactions
        """The databases in which a transaction is open around the request, as in a test."""

    def reserve_stream(self) -> bool:
        """Return that nothing can be streamed."""
        return False

    def release(self) -> None:
        """Give back what :meth:`reserve_stream` has reserved. More than once."""

    def is_run_apart(self, call: FunctionCall) -> bool:
        """Return that every call runs here."""
        return False

    async def run_on_loop(
        self, function: Callable[..., Coroutine[Any, Any, T]], /, *args: Any
    ) -> T:
        """Refuse: nothing is streamed."""
        raise NotImplementedError

    async def run_within(self, context: Context, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run ``coroutine`` here, in ``context``."""
        return context.run(run_inline, coroutine)

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
            return waiting_for(function)(*args)
        return function(*args)

    async def call(self, call: FunctionCall) -> HandlerOutcome:
        """Call a function of the site here."""
        if not call.is_async:
            if call.timeout is None:
                return call_function(call, self.transactions)
            return _call_in_time(call, self.transactions)
        try:
            wait = waiting_for(_await_in_time)
        except RuntimeError as error:
            return _translator(call, error).outcome(error)
        with deferred():
            outcome: HandlerOutcome = wait(call, acall_function(call))
            return outcome


class WSGIRunner(InlineRunner):
    """The thread of a request under WSGI, beside the loop of the process."""

    _has_reserved = False

    def reserve_stream(self) -> bool:
        """Return whether this thread may wait for a stream, with those that do already."""
        if not self._has_reserved:
            self._has_reserved = wsgi_streams().take()
        return self._has_reserved

    def release(self) -> None:
        """Let another wait for a stream: this thread does not, or no longer. More than once."""
        if self._has_reserved:
            self._has_reserved = False
            wsgi_streams().give_back()

    def is_run_apart(self, call: FunctionCall) -> bool:
        """Return whether a call may say something while this thread sends it."""
        return call.sends_messages and self.reserve_stream()

    async def run_on_loop(
        self, function: Callable[..., Coroutine[Any, Any, T]], /, *args: Any
    ) -> T:
        """Run ``function`` on the loop of the process."""
        value: T = process_loop().run(_run_on_loop, self, function, *args)
        return value

    async def call(self, call: FunctionCall) -> HandlerOutcome:
        """Call a function here, an asynchronous one on the loop of the process."""
        if call.is_async:
            outcome: HandlerOutcome = process_loop().run(_run_on_loop, self, LoopRunner.call, call)
            return outcome
        return await super().call(call)


class ASGIRunner(InlineRunner):
    """The thread that Django gives a request under ASGI, beside the server's loop."""

    holds_connections = True

    def reserve_stream(self) -> bool:
        """Return that an answer can be a stream: it holds no thread of the server's."""
        return True

    def is_run_apart(self, call: FunctionCall) -> bool:
        """Return whether a call runs on the loop or a worker thread."""
        return call.is_async or not call.takes_request

    async def run_on_loop(
        self, function: Callable[..., Coroutine[Any, Any, T]], /, *args: Any
    ) -> T:
        """Run ``function`` on the server's loop."""
        return async_to_sync(_run_on_loop)(self, function, *args)

    async def call(self, call: FunctionCall) -> HandlerOutcome:
        """Call a function that takes the request here; as few at once as on worker threads."""
        threads = async_to_sync(_take_turn)(self.limit_key)
        try:
            return await super().call(call)
        finally:
            call_on(threads.loop, threads.turns.give_back, self.limit_key)


def runner_of_view(request: HttpRequest) -> InlineRunner:
    """Return what runs the calls of a request at the view.

    Where a transaction is open around it everything runs there, or what is not committed, such as
    the data of a test, would not be seen.
    """
    transactions = open_transactions()
    if transactions:
        return InlineRunner(transactions)
    if isinstance(request, ASGIRequest):
        return ASGIRunner(transactions)
    environ = getattr(request, "environ", {})
    if environ.get("wsgi.multithread") and has_threads():
        return WSGIRunner(transactions)
    if get_settings().wsgi_streams:
        _note_that_nothing_streams()
    return InlineRunner(transactions)


@cache
def _note_that_nothing_streams() -> None:
    """Say once in a process what the setting cannot do here."""
    logger.warning(
        "WSGI_STREAMS does nothing here: the server has one thread, or gevent or eventlet took "
        "the place of threads. Answers come in one piece"
    )


class LoopRunner:
    """Runs synchronous code on worker threads, asynchronous code on the loop.

    Threads are taken for whom ``limit_key`` names, who is to leave some to others; until it is
    known who calls, for everybody as for one.
    """

    can_request = False
    holds_connections = True
    transactions: Sequence[str] = ()

    def __init__(self) -> None:
        shutdown.prepare()
        self.limit_key = ""
        self.call_context: CallContext | None = None
        self._pools = pools()

    def reserve_stream(self) -> bool:
        """Return that an answer can be a stream."""
        return True

    def is_run_apart(self, call: FunctionCall) -> bool:
        """Return that no call runs here, where others are served."""
        return True

    async def run_on_loop(
        self, function: Callable[..., Coroutine[Any, Any, T]], /, *args: Any
    ) -> T:
        """Run ``function`` on this loop."""
        return await function(self, *args)

    async def run_within(self, context: Context, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run ``coroutine`` in ``context``, which may come from another thread."""
        # What it calls there makes no difference: only the locals are to come along.
        context.run(adopt_locals, context, copy_context)
        return await asyncio.get_running_loop().create_task(coroutine, context=context)

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
            answer = function(*args)
            # Of an asynchronous one that is a coroutine. Asking the function would cost a call.
            return await answer if type(answer) is CoroutineType else answer
        threads = self._pools.admission
        if not is_async(function):
            thread = await threads.take(self.limit_key, self.call_context)
            return await threads.ask_on(thread, function, *args)
        async with Lease(threads, self.limit_key, self.call_context):
            return await function(*args)

    async def call(self, call: FunctionCall) -> HandlerOutcome:
        """Call a function of the site; the ORM of an asynchronous one has a worker thread."""
        threads = self._pools.calls
        if call.is_async:
            async with Lease(threads, self.limit_key, self.call_context):
                if call.timeout is None:
                    return await acall_function(call)
                return await _await_in_time(call, acall_function(call))
        thread = await threads.take(self.limit_key, self.call_context)
        running = threads.run_on(thread, call_function_apart, call)
        return await (running if call.timeout is None else _await_in_time(call, running))


async def _run_on_loop(
    origin: InlineRunner, function: Callable[..., Coroutine[Any, Any, T]], *args: Any
) -> T:
    """Run ``function`` on this loop, for a request that has come in at a thread."""
    runner = LoopRunner()
    runner.limit_key, runner.call_context = origin.limit_key, origin.call_context
    return await function(runner, *args)


async def _take_turn(caller: str) -> WorkerThreads:
    """Let ``caller`` have a turn among those who have the worker threads of this loop."""
    threads = pools().calls
    if not threads.turns.take_now(caller):
        await threads.turns.wait(caller)
    return threads


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
        note_begun()
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
