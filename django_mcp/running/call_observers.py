"""Who watches calls: signals, the log, and what optional apps have registered.

Where nobody does, a call only finds that out. Otherwise there is an :class:`Observation` of it,
from before it is dispatched until its answer is encoded.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from typing import Any, Final, Protocol, TypeVar

from django.dispatch import Signal

from ..protocol.errors import ErrorCode, MCPError, cancelled
from ..server.exchange import Exchange
from ..server.function_call import Runner
from ..server.registry import MCPServer
from ..server.results import Result
from ..signals import CallInfo, call_finished, call_started
from ..store.database import has_loop
from .eager_tasks import keep
from .thread_lease import Lease
from .worker_threads import pools

T = TypeVar("T")

calls_log: Final = logging.getLogger("django_mcp.calls")
logger: Final = logging.getLogger("django_mcp.server")

known_levels: Final[Mapping[int, bool]] = getattr(calls_log, "_cache", {})
"""What :meth:`logging.Logger.isEnabledFor` remembers, until somebody changes a level. Where it says
no, the logger need not be asked, which takes a call; where Python keeps it elsewhere, it is asked.
"""

LONGEST_NAME: Final = 200
"""Characters that are kept of what a call asks for: a client may send anything."""
LONGEST_METHOD: Final = 100
"""Characters that are kept of its method."""


class CallObserver(Protocol):
    """Watches one call."""

    def enter(self) -> None:
        """Begin, in the context in which the call is dispatched and its function runs."""

    def leave(self) -> None:
        """Take back what :meth:`enter` has set in that context, also if that has failed."""

    def finish(self) -> None:
        """Note how it has ended, which its :class:`CallInfo` says by now. In any context."""


ObserverFactory = Callable[[CallInfo, Exchange, MCPServer], CallObserver]

observers: Final[list[ObserverFactory]] = []
"""Each makes an observer of every call. It must not keep the exchange, which a call that listens
lets go. Optional apps add theirs by :func:`register`."""

_being_told: set[asyncio.Task[None]] = set()


def register(factory: ObserverFactory) -> None:
    """Have all calls of this process watched, from the next one on."""
    if factory not in observers:
        observers.append(factory)


def unregister(factory: ObserverFactory) -> None:
    """Watch no further calls."""
    if factory in observers:
        observers.remove(factory)


def are_being_told() -> bool:
    """Return whether receivers of this process are still to hear of calls that have ended."""
    return bool(_being_told)


def run_within(observation: Observation | None, function: Callable[..., T], /, *args: Any) -> T:
    """Call a function for a call that may be observed, after its context has been left."""
    return function(*args) if observation is None else observation.run(function, *args)


class Observation:
    """One call, as those who watch it see it. What fails in them is logged, and harms nothing."""

    def __init__(self, server: MCPServer, exchange: Exchange, runner: Runner) -> None:
        request, principal, revision = exchange.request, exchange.principal, exchange.revision
        self.call = CallInfo(
            server=exchange.server_name,
            method=request.method[:LONGEST_METHOD],
            name=request.target[:LONGEST_NAME],
            user=principal.user,
            user_id=principal.user_id,
            client_id=principal.client_id,
            session_id=None if exchange.session is None else exchange.session.id,
            era=revision.era.value,
            revision=revision.name,
            request_id=request.id,
            # What fails before the function, such as a permission, does so before this is made.
            error=exchange.raised,
        )
        exchange.observed = self.call
        self._server = server
        self._runner = runner
        self._began = time.monotonic()
        self._entered: list[CallObserver] = []
        self._has_finished = False
        for factory in observers:
            observer: CallObserver | None = None
            try:
                observer = factory(self.call, exchange, server)
                observer.enter()
            except Exception:
                logger.exception("A call cannot be watched by %r", factory)
                if observer is not None:
                    _guarded(observer.leave)
            else:
                self._entered.append(observer)
        # Whoever is told of it later is told in the context of the call: a line of the log has the
        # span that it belongs to.
        self._context: Context = copy_context()

    async def start(self) -> None:
        """Send ``call_started``, and wait for its receivers."""
        if call_started.receivers:
            await self._send(call_started)

    def leave(self) -> None:
        """Leave what was entered, in the same context."""
        for observer in reversed(self._entered):
            _guarded(observer.leave)

    def abandon(self) -> None:
        """Leave a call that nobody answers any more, unless it has been."""
        self.leave()
        self.finish(cancelled(), b"")

    def run(self, function: Callable[..., T], /, *args: Any) -> T:
        """Call a function that belongs to the call, after its context has been left."""
        return self._context.copy().run(function, *args)

    def finish(self, outcome: Result | MCPError, answer: bytes) -> None:
        """Tell how the call has ended: with ``outcome``, encoded as ``answer``. Once."""
        if self._has_finished:
            return
        self._has_finished = True
        call = self.call
        call.duration = time.monotonic() - self._began
        call.outcome, call.error_code = _kind(outcome)
        call.answer_bytes = len(answer)
        for observer in self._entered:
            _guarded(observer.finish)
        if calls_log.isEnabledFor(logging.INFO):
            _guarded(lambda: self.run(_write, call))
        if call_finished.receivers:
            self._tell()

    def _tell(self) -> None:
        """Send ``call_finished``. On a loop nobody waits for its receivers, the answer least."""
        if not has_loop():
            _guarded(lambda: self.run(self._send_here, call_finished))
            return
        loop, context = asyncio.get_running_loop(), self._context.copy()
        task = keep(loop.create_task(self._send(call_finished), context=context))
        _being_told.add(task)
        task.add_done_callback(_being_told.discard)

    async def _send(self, signal: Signal) -> None:
        try:
            if not has_loop():
                self._send_here(signal)
                return
            # Receivers may block and use the ORM: on a worker thread, as functions do.
            async with Lease(pools().calls, self._runner.limit_key):
                await signal.asend_robust(sender=self._server, call=self.call)
        except Exception:
            logger.exception("The receivers of a signal could not be called")

    def _send_here(self, signal: Signal) -> None:
        signal.send_robust(sender=self._server, call=self.call)


def _guarded(function: Callable[[], Any]) -> None:
    try:
        function()
    except Exception:
        logger.exception("A call could not be watched to its end")


def _kind(outcome: Result | MCPError) -> tuple[str, int | None]:
    """Return the words for how a call has ended, and the code of its error."""
    if isinstance(outcome, MCPError):
        is_cancelled = outcome.code == ErrorCode.REQUEST_CANCELLED
        return ("cancelled" if is_cancelled else "error"), outcome.code
    if outcome.type == "input_required":
        return "input_required", None
    return ("tool_error" if outcome.body.get("isError") is True else "ok"), None


def _write(call: CallInfo) -> None:
    calls_log.info(
        "%s %r: %s in %.0f ms",
        call.method,
        call.name,
        call.outcome,
        call.duration * 1000,
        extra={f"mcp_{name}": getattr(call, name) for name in LOGGED},
    )


LOGGED: Final = (
    "server",
    "method",
    "name",
    "user_id",
    "client_id",
    "session_id",
    "era",
    "revision",
    "request_id",
    "duration",
    "outcome",
    "error",
    "error_code",
    "answer_bytes",
)
"""What of a call is in its line of the log, each as ``mcp_...``: texts, numbers and ``None``."""
