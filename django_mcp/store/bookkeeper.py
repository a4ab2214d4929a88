"""The thread that keeps the books of all partitions in one database, with one connection.

It enters a partition around everything that it does there, asks only those where something is in
flight, and goes round the rest, one now and then. What fails in one partition is tried again
later, while the others go on. Each database has a thread of its own: one that hangs holds up
nobody else.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Final

from django.db import Error, connections

from ..partitions import enter_for_bookkeeping
from .database import has_collided, is_outage, shorten_lock_wait
from .ledger import PAUSE_SECONDS
from .partition_books import PartitionBooks

logger = logging.getLogger("django_mcp.store")

VISIT_SECONDS: Final = 0.5
"""Seconds from one visit to the next, at least: so many partitions are gone round without haste."""
MOST_SHARE: Final = 0.5
"""The part of its time for which the thread looks by itself: of very many partitions where
something is in flight, it looks at each less often.
"""
LONGEST_INTERVAL_SECONDS: Final = 2.0
"""Seconds from one look at such a partition to the next, at the most."""
LONGEST_VISIT_SECONDS: Final = 10.0
"""Seconds after which another has its turn, although there is more to clean."""


class Bookkeeper:
    """Keeps the books of partitions in one database. Safe to use from any thread but for
    :meth:`tick`.
    """

    def __init__(
        self,
        alias: str,
        books_of: Callable[[str], PartitionBooks],
        before_visits: Callable[[], None],
        is_gone: Callable[[str], bool],
        forget: Callable[[PartitionBooks], None],
    ) -> None:
        """``before_visits`` is called from time to time: it may plan visits."""
        self._alias = alias
        self._books_of = books_of
        self._before_visits = before_visits
        self._is_gone = is_gone
        self._forget = forget
        self._lock = threading.Lock()
        self._active: dict[PartitionBooks, None] = {}
        """Those where something may be in flight."""
        self._visits: deque[str] = deque()
        self._visited: PartitionBooks | None = None
        self._visit_at = self._visit_until = float("-inf")
        self._cost = 0.0
        """Seconds that a look at a partition takes, on average."""
        self._awake = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self.wants_round: Callable[[], float] = lambda: float("inf")
        """Returns the seconds until visits are to be planned."""

    def wake(self, books: PartitionBooks | None = None) -> None:
        """Look at ``books`` soon."""
        if books is not None:
            self._active[books] = None
        self._start()
        self._awake.set()

    def active(self) -> list[PartitionBooks]:
        """Return those where something may be in flight."""
        return list(self._active)

    @property
    def has_visits(self) -> bool:
        """Whether it has not been everywhere yet."""
        return bool(self._visits or self._visited)

    def plan_visits(self, names: Iterable[str]) -> None:
        """Go round these partitions, in this order, besides everything else."""
        self._visits.extend(names)
        self.wake()

    def tick(self, *, at_once: bool = False) -> None:
        """Do everything that is due; ``at_once``: also what would be only soon. For tests, too."""
        for books in self.active():
            if at_once or not books.pause:
                self._keep(books)
        self._before_visits()
        self._visit()

    def close(self) -> None:
        """End the thread, once it has written what waits."""
        self._is_closing = True
        self._awake.set()
        if self._thread is not None:
            self._thread.join(5)

    def _start(self) -> None:
        if self._thread is not None or self._is_closing:
            return
        with self._lock:
            if self._thread is None:
                name = f"mcp-ledger-{self._alias}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        shorten_lock_wait(self._alias)
        while not self._is_closing:
            pause = self._pause()
            if pause is None:
                # Of many databases most are quiet at most times.
                connections.close_all()
            self._awake.wait(pause)
            self._awake.clear()
            try:
                self.tick()
            except Exception:
                logger.exception("The bookkeeping failed; it goes on")
                time.sleep(PAUSE_SECONDS)
        for books in self.active():
            with suppress(Exception), enter_for_bookkeeping(books.partition):
                books.close()
        connections.close_all()

    def _pause(self) -> float | None:
        """Return how many seconds the thread may sleep; ``None`` for as long as nobody wakes it."""
        moments = [books.pause for books in self.active()]
        moments.append(self.wants_round())
        if self._visits or self._visited:
            moments.append(max(0.0, self._visit_at - time.monotonic()))
        pause = min(moments)
        return None if pause == float("inf") else pause

    def _keep(self, books: PartitionBooks) -> None:
        begun = time.monotonic()
        interval = len(self._active) * self._cost / MOST_SHARE
        try:
            with enter_for_bookkeeping(books.partition):
                books.keep(min(interval, LONGEST_INTERVAL_SECONDS))
            self._cost += (time.monotonic() - begun - self._cost) / 10
            if books.take_doubt():
                self._end_if_gone(books)
        except Error as error:
            self._note_failure(books, error)
        except Exception as error:
            logger.exception("The bookkeeping of %r failed; it goes on", books.partition)
            books.note_failure(error, is_outage=False)
        if books.let_rest():
            self._active.pop(books, None)
            if not books.is_resting:
                self._active[books] = None  # somebody has come in this moment

    def _note_failure(self, books: PartitionBooks, error: Error) -> None:
        if has_collided(error) or is_outage(error):
            books.note_failure(error, is_outage=True)
            return
        # Tables that are not there, above all. A transaction that has failed may be open.
        connections.close_all()
        self._end_if_gone(books)
        books.note_failure(error, is_outage=False)
        level = logging.ERROR if books.failed == 2 else logging.DEBUG
        logger.log(level, "The rows of %r cannot be used: %s", books.partition, error)

    def _end_if_gone(self, books: PartitionBooks) -> None:
        if not self._is_gone(books.partition):
            return
        logger.info("The partition %r is no more; what runs there ends", books.partition)
        books.abandon()
        if not books.requests:
            self._active.pop(books, None)
            self._forget(books)

    def _visit(self) -> None:
        """Go on with the round: to the next partition, when its turn has come."""
        now = time.monotonic()
        visited = self._visited
        if visited is not None:
            if visited.turn_sweep and not visited.failed and now < self._visit_until:
                return
            visited.turn_sweep.end_turn()
            self._visited = None
        if self._visits and now >= self._visit_at:
            self._visit_at, self._visit_until = now + VISIT_SECONDS, now + LONGEST_VISIT_SECONDS
            self._visited = self._books_of(self._visits.popleft())
            self._visited.begin_visit()


def active_books(bookkeepers: Collection[Bookkeeper]) -> list[PartitionBooks]:
    """Return those of several."""
    return [books for each in bookkeepers for books in each.active()]
