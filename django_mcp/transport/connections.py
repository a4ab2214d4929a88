"""How many connections this process keeps open, in all and for each caller.

Two kinds count. Those that wait for what may happen later (the stream that a session GETs,
``subscriptions/listen``) are refused when there are too many connections of whatever kind. Those of
calls are refused only when there are too many calls: waiting for news must not keep others from
working, and a call that runs is answered in any case.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..conf import get_settings
from ..protocol.errors import MCPError, TooManyRequests, Unavailable

RETRY_AFTER: Final = 30
"""Seconds after which it is worth while to ask again: connections last."""


@dataclass(slots=True, eq=False)
class Connection:
    """One of them, from before it is admitted to anything until :meth:`leave`."""

    among: Connections
    caller: str
    waits: bool
    session: str | None = None
    """The session whose own stream it shows."""
    end: Callable[[], None] = lambda: None
    """Ends it, so that its client may come back."""

    def leave(self) -> None:
        """Count it no longer. From any thread, and more than once.

        It waits for nothing: it may be called while memory is collected, in the middle of anything.
        """
        self.among.left.append(self)


class Connections:
    """The connections of one process. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[Connection, None] = {}
        self.left: deque[Connection] = deque()
        """Those that are gone, and are to be counted no longer."""
        self._calls = _Counts()
        self._everything = _Counts()

    def __len__(self) -> int:
        with self._lock:
            self._forget_left()
            return len(self._open)

    def enter(self, caller: str, *, waits: bool, session: str | None = None) -> Connection:
        """Count one more; raises :class:`MCPError` if that is one too many.

        ``caller`` is empty for callers of whom nothing is known; they have no cap of their own.
        An older stream of the same session makes room for a newer one, which has the messages from
        now on (2025-11-25, basic/transports, "Multiple Connections").
        """
        connection = Connection(self, caller, waits, session)
        older = None
        with self._lock:
            self._forget_left()
            refusal = self._refusal(connection)
            if refusal is not None:
                older = self._older(connection)
                if older is None:
                    raise refusal
                self._remove(older)
            self._open[connection] = None
            self._count(connection, 1)
        if older is not None:
            older.end()
        return connection

    def _refusal(self, connection: Connection) -> MCPError | None:
        settings, caller = get_settings(), connection.caller
        counts = self._everything if connection.waits else self._calls
        what = "streams are open" if connection.waits else "calls are running"
        cap = settings.max_streams_per_user
        if caller and counts.of(caller) >= cap:
            return TooManyRequests(
                f"Too many {what}: {cap} at most for each user and client.",
                retry_after=RETRY_AFTER,
            )
        if counts.total >= settings.max_streams:
            return Unavailable(f"Too many {what}; try again later", retry_after=RETRY_AFTER)
        return None

    def _older(self, connection: Connection) -> Connection | None:
        if connection.session is None:
            return None
        return next((each for each in self._open if each.session == connection.session), None)

    def _forget_left(self) -> None:
        while self.left:
            connection = self.left.popleft()
            if connection in self._open:
                self._remove(connection)

    def _remove(self, connection: Connection) -> None:
        del self._open[connection]
        self._count(connection, -1)

    def _count(self, connection: Connection, step: int) -> None:
        self._everything.add(connection.caller, step)
        if not connection.waits:
            self._calls.add(connection.caller, step)


class _Counts:
    """So many in all, and of each caller."""

    def __init__(self) -> None:
        self.total = 0
        self._each: dict[str, int] = {}

    def of(self, caller: str) -> int:
        return self._each.get(caller, 0)

    def add(self, caller: str, step: int) -> None:
        self.total += step
        self._each[caller] = self.of(caller) + step
        if not self._each[caller]:
            del self._each[caller]


open_connections = Connections()
