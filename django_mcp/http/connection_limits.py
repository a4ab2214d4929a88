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
from dataclasses import dataclass, field
from typing import Final

from ..conf import get_settings
from ..current_partition import current_partition
from ..protocol.errors import MCPError, TooManyRequests, Unavailable

RETRY_AFTER_SECONDS: Final = 30
"""Seconds after which it is worth while to ask again: connections last."""


@dataclass(slots=True, eq=False)
class Connection:
    """One of them, from before it is admitted to anything until :meth:`leave`."""

    among: Connections
    caller: str
    stays_open: bool
    session: str | None = None
    """The session whose own stream it shows."""
    _end: Callable[[], None] = lambda: None
    _makes_room: bool = False
    partition: str = field(default_factory=current_partition)
    """Where its session is."""

    def end_by(self, end: Callable[[], None]) -> None:
        """Have ``end`` called, perhaps at once, when it is to make room for a newer one."""
        self._end = end
        if self._makes_room:
            end()

    def make_room(self) -> None:
        """End it, or let it end as soon as it has begun. From any thread."""
        # First: what is begun at this moment finds it.
        self._makes_room = True
        self._end()

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

    def check(self, caller: str, *, stays_open: bool) -> None:
        """Raise :class:`MCPError` if one more would be one too many."""
        with self._lock:
            if self.left:
                self._forget_left()
            refusal = self._refusal(caller, stays_open=stays_open)
        if refusal is not None:
            raise refusal

    def enter(
        self, caller: str, *, stays_open: bool, session: str | None = None, is_checked: bool = False
    ) -> Connection:
        """Count one more; raises :class:`MCPError` if that is one too many, unless that has just
        been checked.

        ``caller`` is empty for callers of whom nothing is known; they have no cap of their own.
        An older stream of the same session makes room for a newer one, which has the messages from
        now on (2025-11-25, basic/transports, "Multiple Connections").
        """
        connection = Connection(self, caller, stays_open, session)
        older = None
        with self._lock:
            if self.left:
                self._forget_left()
            refusal = None if is_checked else self._refusal(caller, stays_open=stays_open)
            if refusal is not None:
                older = self._older(connection)
                if older is None:
                    raise refusal
                self._remove(older)
            self._open[connection] = None
            self._count(connection, 1)
        if older is not None:
            older.make_room()
        return connection

    def _refusal(self, caller: str, *, stays_open: bool) -> MCPError | None:
        settings = get_settings()
        counts = self._everything if stays_open else self._calls
        what = "streams are open" if stays_open else "calls are running"
        cap = settings.max_streams_per_user
        if caller and counts.each.get(caller, 0) >= cap:
            return TooManyRequests(
                f"Too many {what}: {cap} at most for each user and client.",
                retry_after=RETRY_AFTER_SECONDS,
            )
        if counts.total >= settings.max_streams:
            return Unavailable(f"Too many {what}; try again later", retry_after=RETRY_AFTER_SECONDS)
        return None

    def _older(self, connection: Connection) -> Connection | None:
        if connection.session is None:
            return None
        wanted = (connection.session, connection.partition)
        return next((each for each in self._open if (each.session, each.partition) == wanted), None)

    def _forget_left(self) -> None:
        while self.left:
            connection = self.left.popleft()
            if connection in self._open:
                self._remove(connection)

    def _remove(self, connection: Connection) -> None:
        del self._open[connection]
        self._count(connection, -1)

    def _count(self, connection: Connection, step: int) -> None:
        caller = connection.caller
        for counts in (
            (self._everything,) if connection.stays_open else (self._everything, self._calls)
        ):
            counts.total += step
            number = counts.each.get(caller, 0) + step
            if number:
                counts.each[caller] = number
            else:
                del counts.each[caller]


class _Counts:
    """So many in all, and of each caller."""

    def __init__(self) -> None:
        self.total = 0
        self.each: dict[str, int] = {}


open_connections = Connections()
