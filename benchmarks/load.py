"""The load generator: one thread, sockets that are kept open, one request at a time on each.

Written without an HTTP library and without an event loop, because it has to be faster than what it
measures. It says how much of its own core it used: where that is all of it, the figure is its own.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from .legs import FIRST, Caller, Wrong
from .responses import Garbled, Reader

PATIENCE = 20.0
"""Seconds without any answer after which a server counts as hung."""
CHUNK = 1 << 18


@dataclass
class Outcome:
    """What came of a load."""

    answered: int = 0
    """Right answers."""
    wrong: list[str] = field(default_factory=list)
    """Why each other was none."""
    reconnects: int = 0
    """Connections that the server closed after a response, as it may."""
    seconds: float = 0.0
    own_seconds: float = 0.0
    """Processor time of the generator."""
    latencies: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Right answers per second."""
        return self.answered / self.seconds if self.seconds else 0.0


class _Line:
    """A connection, and the request that is on it."""

    __slots__ = ("begun", "caller", "number", "reader", "socket")

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.number = 0
        self.begun = 0.0
        self.reader = Reader()
        self.socket: socket.socket | None = None

    def connect(self, port: int) -> int:
        """Connect; return the number of the socket."""
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = Reader()
        return self.socket.fileno()

    def send(self, number: int) -> None:
        """Send the request of a number."""
        assert self.socket is not None
        self.number = number
        self.begun = time.perf_counter()
        self.socket.sendall(self.caller.request(number))


class Load:
    """Connections to a server, one for each caller. They are kept from one run to the next.

    None is opened before it has something to send: a thread of gunicorn's waits for whoever has
    connected.
    """

    def __init__(self, port: int, callers: Sequence[Caller]) -> None:
        self._port = port
        self._poll = select.epoll()
        self._lines = [_Line(caller) for caller in callers]
        self._connected: dict[int, _Line] = {}
        self._next = FIRST

    def run(self, seconds: float, requests: int | None = None) -> Outcome:
        """Ask for so long, but no more than so many; wait for the last answers."""
        outcome = Outcome()
        left = requests or float("inf")
        begun, own = time.perf_counter(), time.process_time()
        end = begun + seconds
        waiting = 0
        for line in self._lines:
            if left > 0:
                left -= 1
                waiting += self._send(line, outcome)
        while waiting:
            ready = self._poll.poll(PATIENCE)
            if not ready:
                outcome.wrong += ["no answer"] * waiting
                for line in self._lines:
                    self._disconnect(line)
                break
            for number, _ in ready:
                line = self._connected[number]
                if not self._receive(line, outcome):
                    continue
                waiting -= 1
                if left > 0 and time.perf_counter() < end:
                    left -= 1
                    waiting += self._send(line, outcome)
        outcome.seconds = time.perf_counter() - begun
        outcome.own_seconds = time.process_time() - own
        return outcome

    def close(self) -> None:
        """Close the connections."""
        for line in self._lines:
            self._disconnect(line)
        self._poll.close()

    def _connect(self, line: _Line) -> None:
        number = line.connect(self._port)
        self._connected[number] = line
        self._poll.register(number, select.EPOLLIN)

    def _disconnect(self, line: _Line) -> None:
        if line.socket is not None:
            self._poll.unregister(line.socket)
            del self._connected[line.socket.fileno()]
            line.socket.close()
            line.socket = None

    def _send(self, line: _Line, outcome: Outcome) -> bool:
        """Send the next request; return whether it is on its way."""
        self._next += 1
        try:
            if line.socket is None:
                self._connect(line)
            line.send(self._next)
        except OSError as error:
            outcome.wrong.append(f"not sent: {error}")
            self._disconnect(line)
            return False
        return True

    def _receive(self, line: _Line, outcome: Outcome) -> bool:
        """Take what has come; return whether the request has its end."""
        assert line.socket is not None
        try:
            data = line.socket.recv(CHUNK)
            response = line.reader.feed(data) if data else line.reader.close()
            if response is not None:
                line.caller.check(response, line.number)
            elif data:
                return False
            else:
                raise Garbled("The connection ended without a response")
        except (OSError, Garbled, Wrong) as error:
            outcome.wrong.append(f"{error}")
            self._disconnect(line)
            return True
        outcome.latencies.append(time.perf_counter() - line.begun)
        outcome.answered += 1
        if response.head.closes:
            outcome.reconnects += 1
            self._disconnect(line)
        return True
