"""What this process tells its database: each look of the ledger, and the columns that it writes."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from django.db.backends.signals import connection_created

from django_mcp.store.ledger import Ledger

_LIST = re.compile(r"\(\s*%s(?:\s*,\s*%s)*\s*\)")
_UPDATE = re.compile(r"UPDATE\s+[\"`](\w+)[\"`]\s+SET\s+(.*)", re.DOTALL)
_ASSIGNED = re.compile(r"\s*[\"`](\w+)[\"`]\s*=")


class Statements:
    """A record of statements. Lists of values in them are cut short, however long they are."""

    def __init__(self) -> None:
        self.ticks: deque[list[str]] = deque(maxlen=200)
        """What each tick of the ledger executed; those that executed nothing are left out."""
        self.updates: set[tuple[str, ...]] = set()
        """Table and columns of each kind of UPDATE so far, on any connection."""
        self._tick: list[str] = []

    def install(self) -> None:
        """Begin to record."""
        connection_created.connect(self._connected, weak=False, dispatch_uid="statements")
        original = Ledger.tick

        def tick(ledger: Ledger) -> None:
            self._tick = []
            original(ledger)
            if self._tick:
                self.ticks.append(self._tick)

        Ledger.tick = tick  # type: ignore[method-assign]

    def _connected(self, connection: Any, **rest: Any) -> None:
        # A connection that is opened again keeps its wrappers.
        if self._execute not in connection.execute_wrappers:
            connection.execute_wrappers.append(self._execute)

    def _execute(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        text = sql if isinstance(sql, str) else str(sql)
        if threading.current_thread().name == "mcp-ledger":
            self._tick.append(_LIST.sub("(...)", text))
        if text.startswith("UPDATE"):
            self.updates.add(_columns(text))
        return execute(sql, params, many, context)


def _columns(update: str) -> tuple[str, ...]:
    found = _UPDATE.match(update)
    return (found[1], *sorted(_assigned(found[2]))) if found else (update,)


def _assigned(clause: str) -> Iterator[str]:
    """Yield the columns that a SET clause, and whatever follows it, assigns to."""
    for part in _parts(clause):
        column = _ASSIGNED.match(part)
        yield column[1] if column else part


def _parts(clause: str) -> Iterator[str]:
    depth, start = 0, 0
    for index, letter in enumerate(clause):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        ends = depth == 0 and clause.startswith(" WHERE ", index)
        if ends or (depth == 0 and letter == ","):
            yield clause[start:index]
            start = index + 1
        if ends:
            return
    yield clause[start:]


statements = Statements()
