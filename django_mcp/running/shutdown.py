"""The end of a process that is asked to stop: a deploy, a restart, Ctrl-C.

It refuses nothing that reaches it: whoever balances the load may go by closed sockets alone, and
find out late. So it takes no more connections, says on those that are open that each answer is the
last, and lets calls run for a while; what then still runs ends with an error. Streams that wait
for news end soon, each at its own moment, so that their clients come back to another process.
Nothing relies on any of it: what a process leaves behind is settled by others.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from ..conf import get_settings
from ..forks import PerProcess, jitter
from ..protocol import sse
from ..store.delivery.request_rows import LISTEN
from ..store.in_flight.running_requests import RunningRequest, StopReason
from ..store.ledger import ledger
from .call_observers import are_being_told
from .eager_tasks import keep
from .known_servers import Server, server_behind
from .send_queue import SendQueue, open_streams
from .stop_signals import StopSignals
from .threads import call_on

logger = logging.getLogger("django_mcp.server")

LINGER_SECONDS: Final = 2.0
"""For how long open connections may bring another request before the server closes them.

A client that has just been answered may be sending one; with its answer it is told that the
connection closes.
"""
SPREAD_SECONDS: Final = 2.0
"""Within so many seconds all streams end that wait for news."""
LONGEST_RETRY_SECONDS: Final = 30.0
"""After so many seconds a client may come back in any case. Official ones try twice."""
FLUSH_SECONDS: Final = 4.0
"""How long last words may take to be stored, or to be sent."""
PAUSE_SECONDS: Final = 0.05
"""How long it takes at most until it is noticed that something has ended."""

_is_closing = False


def is_closing() -> bool:
    """Return whether this process has been asked to stop."""
    return _is_closing


class Shutdown:
    """What one process does about it, on the loop that serves."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signals: StopSignals | None = None
        self._is_passed_on = False
        self._deadline = float("inf")
        """When the calls that still run are to end, by the monotonic clock."""
        self._moments: dict[SendQueue | RunningRequest, float] = {}
        """When each of those ends that wait for news."""
        self.has_lifespan = False
        """Whether the server waits for :meth:`drain`."""
        self.is_over = False
        """Whether another lifespan has begun, as adapters of serverless platforms begin one with
        each request."""

    def watch(self) -> None:
        """Hear of signals before the server does, which has set its own handlers by now.

        Where the loop does not run in the main thread nobody can: under ``runserver``, whose
        threads end with it. Windows has other ways to stop a process.
        """
        self._loop = asyncio.get_running_loop()
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and sys.platform != "win32":
            self._signals = StopSignals(self._asked)

    def begin_soon(self) -> None:
        """Begin to end what lasts. From any thread, for a server that lets nobody hear of signals.

        Calls have their grace; streams that wait for news end soon.
        """
        if self._loop is not None:
            call_on(self._loop, self._begin, get_settings().shutdown_seconds)

    async def drain(self) -> None:
        """Wait until nothing is left of what was begun here, as long as the grace lasts."""
        self._begin(get_settings().shutdown_seconds)
        await self._until(lambda: not (ledger().requests or ledger().is_writing))
        ledger().write_use()
        await self._until(lambda: not (ledger().is_writing or are_being_told()))
        if self._signals is not None:
            self._signals.close()

    def _asked(self, number: int) -> None:
        assert self._signals is not None
        if _is_closing:
            # The second time somebody is in a hurry.
            self._deadline = time.monotonic()
            self._pass_on(self._signals, number)
            return
        # Who presses Ctrl-C does not want to wait.
        self._begin(get_settings().shutdown_seconds if number == signal.SIGTERM else 0)
        keep(asyncio.ensure_future(self._pass_on_in_time(self._signals, number)))

    def _begin(self, grace: float) -> None:
        global _is_closing
        if not _is_closing:
            _is_closing = True
            self._deadline = time.monotonic() + grace
            keep(asyncio.ensure_future(self._end_what_lasts()))

    async def _end_what_lasts(self) -> None:
        """End streams and calls when their time has come, also those that begin meanwhile."""
        retry_ms = round(_retry_seconds() * 1000)
        while not self.is_over:
            left = self._deadline - time.monotonic()
            for running in ledger().requests.running():
                if left <= 0 or (running.method == LISTEN and self._is_due(running)):
                    running.stop(StopReason.SHUTTING_DOWN)
            for queue, ends_first in list(open_streams.items()):
                if left <= -FLUSH_SECONDS or (ends_first and self._is_due(queue)):
                    queue.finish(sse.pause(retry_ms))
            await asyncio.sleep(PAUSE_SECONDS)

    def _is_due(self, waiting: SendQueue | RunningRequest) -> bool:
        """Return whether the moment of something that waits has come. Not all come back at once."""
        now = time.monotonic()
        if waiting not in self._moments:
            spread = min(SPREAD_SECONDS, (self._deadline - now) / 2)
            self._moments[waiting] = now + jitter(max(0, spread))
        return now >= min(self._moments[waiting], self._deadline)

    async def _pass_on_in_time(self, signals: StopSignals, number: int) -> None:
        """Pass a signal on to the server when that finishes what is left, or nothing is."""
        try:
            await self._until_server_can_end(server_behind(signals.handler_before(number)))
        except Exception:
            logger.exception("The process ends without having waited for what is left")
        if not self._is_passed_on:
            self._pass_on(signals, number)

    async def _until_server_can_end(self, server: Server) -> None:
        await server.stop_listening()
        linger = min(time.monotonic() + LINGER_SECONDS, self._deadline)
        while server.has_connections and time.monotonic() < linger:
            await asyncio.sleep(PAUSE_SECONDS)
        if server.breaks_off:
            await self._until(
                lambda: (server.is_idle or self._has_time_passed) and _has_nothing_left()
            )
        elif not self.has_lifespan:
            # It waits for connections, and not for calls whose clients come back for the answer.
            await self._until(_has_no_lonely_call)
        if not self.has_lifespan:
            ledger().write_use()
            await self._until(lambda: not (ledger().is_writing or are_being_told()))

    @property
    def _has_time_passed(self) -> bool:
        return time.monotonic() >= self._deadline

    async def _until(self, ask: Callable[[], bool]) -> None:
        """Wait until ``ask`` says so; or until calls have ended and their end has been sent."""
        while not ask() and time.monotonic() < self._deadline + 2 * FLUSH_SECONDS:
            await asyncio.sleep(PAUSE_SECONDS)

    def _pass_on(self, signals: StopSignals, number: int) -> None:
        self._is_passed_on = True
        signals.pass_on(number)


def start() -> None:
    """Get ready, on the loop of a server that begins, and waits for :func:`drain` as it ends."""
    global _is_closing
    _is_closing = False
    before = _shutdown.forget()
    if before is not None:
        before.is_over = True
    _shutdown().has_lifespan = True


async def drain() -> None:
    """Wait, as the server ends, until nothing is left of what was begun in this process."""
    await _shutdown().drain()


def begin_on_thread() -> None:
    """Begin to end what lasts, in a process whose server has no event loop. Returns at once."""
    shutdown = _shutdown.found()
    if shutdown is not None:
        shutdown.begin_soon()
    timer = threading.Timer(get_settings().shutdown_seconds, _end_calls)
    timer.daemon = True
    timer.start()


def drain_on_thread() -> None:
    """Wait, as such a process ends, for calls whose clients come back for the answer elsewhere."""
    deadline = time.monotonic() + get_settings().shutdown_seconds + FLUSH_SECONDS
    books = ledger()
    while (books.requests or books.is_writing) and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
    books.write_use()
    while books.is_writing and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)


def _end_calls() -> None:
    for running in ledger().requests.running():
        running.stop(StopReason.SHUTTING_DOWN)


def _retry_seconds() -> float:
    """Return when clients of streams are to come back.

    By then the other processes have ended too that were asked to stop at the same time, and take
    no connections meanwhile.
    """
    return min(get_settings().shutdown_seconds + 1, LONGEST_RETRY_SECONDS)


def _has_nothing_left() -> bool:
    books = ledger()
    return not (books.requests or books.is_writing or open_streams)


def _has_no_lonely_call() -> bool:
    books = ledger()
    has_lonely = any(not each.has_client for each in books.requests.running())
    return not (has_lonely or books.is_writing)


def _watched() -> Shutdown:
    shutdown = Shutdown()
    shutdown.watch()
    return shutdown


_shutdown: Final = PerProcess(_watched)
prepare: Final[Callable[[], object]] = _shutdown
"""Gets ready for the end of this process, on the loop that serves."""
