"""Signals that are received before the server is told of them, and passed on to it later."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """What asks this process to stop. To be made on the loop, in the main thread.

    A server hears of it by a handler of Python's, in whose place we come, or by one of its loop's:
    this reads the numbers of signals from a descriptor, to which the interpreter writes them.
    """

    def __init__(self, received: Callable[[int], object]) -> None:
        self._received = received
        self._loop = asyncio.get_running_loop()
        self._before: dict[int, Any] = {}
        self._wakes_loop = -1
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        for number in SIGNALS:
            before = signal.getsignal(number)
            # Not one that Python knows nothing of; nor one that asks nothing of this process, as
            # Ctrl-C where a shell has started it in the background.
            if before not in (None, signal.SIG_IGN):
                self._before[number] = before
                signal.signal(number, self._receive)
                signal.siginterrupt(number, False)
        self._come_before_loop()

    def handler_before(self, number: int) -> Any:
        """Return the handler that was there."""
        return self._before[number]

    def pass_on(self, number: int) -> None:
        """Let the server hear of a signal."""
        before = self._before[number]
        if callable(before):
            before(number, None)
        elif before == signal.SIG_DFL:
            signal.signal(number, before)
            os.kill(os.getpid(), number)
        self._wake_loop(bytes([number]))

    def close(self) -> None:
        """Let the server hear of signals by itself again."""
        for number, before in self._before.items():
            if signal.getsignal(number) == self._receive:
                signal.signal(number, before)
        if self._sockets is not None:
            self._give_way()
            self._loop.remove_reader(self._sockets[0])
            for each in self._sockets:
                each.close()

    def _give_way(self) -> None:
        """Let the loop be told of signals as before, unless it has given that up itself."""
        assert self._sockets is not None
        present = signal.set_wakeup_fd(-1)
        wanted = self._wakes_loop if present == self._sockets[1].fileno() else present
        # A loop that has closed its descriptor leaves a number that may be anybody's by now.
        with suppress(ValueError, OSError):
            signal.set_wakeup_fd(wanted)

    def _receive(self, number: int, frame: Any) -> None:
        if self._loop.is_closed():
            self.pass_on(number)
        else:
            self._loop.call_soon_threadsafe(self._received, number)

    def _come_before_loop(self) -> None:
        reading, writing = socket.socketpair()
        reading.setblocking(False)
        writing.setblocking(False)
        self._wakes_loop = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        if self._wakes_loop < 0:  # it has no handlers of its own
            signal.set_wakeup_fd(-1)
            reading.close()
            writing.close()
            return
        self._sockets = reading, writing
        self._loop.add_reader(reading, self._relay, reading)

    def _relay(self, reading: socket.socket) -> None:
        with suppress(BlockingIOError):
            numbers = reading.recv(4096)
            self._wake_loop(bytes(each for each in numbers if each not in SIGNALS))

    def _wake_loop(self, numbers: bytes) -> None:
        if numbers and self._wakes_loop >= 0 and not self._loop.is_closed():
            with suppress(OSError):
                os.write(self._wakes_loop, numbers)
