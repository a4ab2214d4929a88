"""The end of a process that is asked to stop: a deploy, a restart, Ctrl-C.

Servers wait for open streams, or break them off. So before the server learns of the signal, the
calls that run get some grace, then each ends with an error, and every stream in a way that its
client understands. Nothing relies on it: what a process leaves behind is settled by others.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final

from ..conf import get_settings
from ..forks import PerProcess
from ..protocol import sse
from ..protocol.errors import Unavailable
from ..store.ledger import ledger
from ..store.pending import LISTEN
from ..store.requests import Stop
from .streams import RETRY_MS, Mailbox, showing

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
FLUSH: Final = 4.0
"""Most seconds that last words may take to be stored, and then to be sent."""
PAUSE: Final = 0.05
"""Seconds between two looks whether something has ended."""


class Shutdown:
    """What one process does about it, on the loop that serves."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._before: dict[int, Any] = {}
        self._draining: asyncio.Task[None] | None = None
        self._closing = False

    def watch(self) -> None:
        """Hear of signals before the server does, which has set its own handlers by now.

        Where the loop does not run in the main thread nobody can: under ``runserver``, whose
        threads end with it.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        self._loop = asyncio.get_running_loop()
        for number in SIGNALS:
            before = signal.getsignal(number)
            if before is not None:  # not one that Python knows nothing of
                self._before[number] = before
                signal.signal(number, self._heard)
                signal.siginterrupt(number, False)

    def check(self) -> None:
        """Refuse to begin what might have to be broken off."""
        if self._closing:
            raise Unavailable("The server is shutting down; try again", retry_after=1)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self._loop is None or self._loop.is_closed() or self._draining is not None:
            # The second time somebody is in a hurry.
            self._pass_on(number)
            return
        self._loop.call_soon_threadsafe(self._begin, number)

    def _begin(self, number: int) -> None:
        if self._draining is None:
            # What began now would only be broken off in the end; another process may take it.
            self._closing = True
            self._draining = asyncio.ensure_future(self._drain(number))

    async def _drain(self, number: int) -> None:
        # Who presses Ctrl-C does not want to wait.
        grace = get_settings().shutdown_seconds if number == signal.SIGTERM else 0
        await _until(lambda: not _calls(), grace)
        for running in ledger().requests.running():
            running.stop(Stop.SHUTTING_DOWN)
        _finish(mailbox for mailbox, lasts in list(showing.items()) if lasts)
        await _until(lambda: not (ledger().requests or ledger().is_writing), FLUSH)
        await _until(lambda: not showing, FLUSH)
        self._pass_on(number)
        while True:  # for streams that were about to begin, as long as the loop runs
            _finish(list(showing))
            await asyncio.sleep(PAUSE)

    def _pass_on(self, number: int) -> None:
        before = self._before[number]
        if callable(before):
            before(number, None)
        elif before == signal.SIG_DFL:
            signal.signal(number, before)
            os.kill(os.getpid(), number)


def prepare() -> None:
    """Get ready for the end of this process, before a call or a stream begins.

    Raises :class:`Unavailable` if that has come.
    """
    _shutdown().check()


def _calls() -> bool:
    return any(each.call.method != LISTEN for each in ledger().requests.running())


def _finish(mailboxes: Iterable[Mailbox]) -> None:
    for mailbox in mailboxes:
        mailbox.finish(sse.pause(RETRY_MS))


async def _until(ask: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not ask() and time.monotonic() < end:
        await asyncio.sleep(PAUSE)


def _watched() -> Shutdown:
    shutdown = Shutdown()
    shutdown.watch()
    return shutdown


_shutdown: Final = PerProcess(_watched)
