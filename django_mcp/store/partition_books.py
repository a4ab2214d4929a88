"""The books of one partition: what :class:`~django_mcp.store.ledger.Ledger` keeps, for it alone.

They have no thread of their own: a :class:`~django_mcp.store.bookkeeper.Bookkeeper` has it, for all
partitions in one database, and has entered the partition whenever it touches these.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from django.db import DatabaseError, Error

from .database import has_collided, is_outage
from .doorbell import Doorbell
from .in_flight.running_requests import StopReason
from .ledger import PAUSE_SECONDS, Ledger
from .sweep import Sweep

SHARE_OF_FAILURES: Final = 0.2
"""The part of its time for which the thread may wait for a partition that fails: others wait for
the thread.
"""
LONGEST_OUTAGE_PAUSE_SECONDS: Final = 5.0
"""Seconds after which one that was away is tried again at the latest: leases are to be renewed."""
LONGEST_PAUSE_SECONDS: Final = 30.0
"""Seconds after which it is tried again at the latest where something else fails than a
connection: tables that are not there, for instance."""


class TurnSweep(Sweep):
    """The cleaning of one partition, which happens when it is that partition's turn."""

    def __init__(self, note_activity: Callable[[], None]) -> None:
        super().__init__()
        self._note_activity = note_activity
        self._is_open = False

    def __bool__(self) -> bool:
        """Whether there may be something left to do in this turn."""
        return self._is_open and (self._due or super().__bool__())

    @property
    def pause(self) -> float:
        """The seconds until the next step."""
        if not self._is_open:
            return float("inf")
        return 0.0 if self._due else super().pause

    def note_activity(self) -> None:
        """Let all partitions have a turn again, some time. From any thread."""
        self._note_activity()

    def tick(self) -> None:
        """Take one step, if one is due, and it is this partition's turn."""
        if self._is_open:
            super().tick()

    def begin_turn(self) -> None:
        """Clean from now on."""
        self._is_open = self._due = True
        self._round = float("-inf")

    def end_turn(self) -> None:
        """Clean no more; what is left to do is done in the next turn."""
        self._is_open = self._due = False


class PartitionBooks(Ledger):
    """The books of one partition."""

    def __init__(
        self,
        partition: str,
        process_id: str,
        doorbell: Doorbell,
        wake: Callable[[PartitionBooks], None],
        note_activity: Callable[[], None],
    ) -> None:
        super().__init__(process_id)
        self.partition = partition
        self.doorbell = doorbell
        self.turn_sweep = self.sweep = TurnSweep(note_activity)
        self._wake = wake
        self._was_woken = False
        self._next_tick = 0.0
        self._retry_at = float("-inf")
        self._failed = 0
        self._begun = time.monotonic()
        """When it was last begun to look after it."""
        self._is_in_doubt = False
        self.is_quiet = False
        """Whether there was nothing in flight when it was last looked at."""

    def wake(self) -> None:
        """Be looked at soon. From any thread."""
        self._was_woken = True
        self.is_resting = False
        self._wake(self)

    def start_looking(self) -> None:
        """Be looked at from time to time."""
        if self.is_resting:
            self.wake()

    def wake_everybody(self) -> None:
        """Tell all processes that something has changed."""
        self.doorbell.wake_everybody()

    def look_for_changes(self) -> None:
        """Look what has changed, unless there is nobody here who is told."""
        if self.changes:
            self.changes.look_soon()
            self.wake()

    @property
    def pause(self) -> float:
        """Seconds until it is to be looked at."""
        now = time.monotonic()
        due = now if self._was_woken else self._next_tick
        return max(0.0, due - now, self._retry_at - now)

    def keep(self, interval: float = 0.0) -> None:
        """Do everything that is due. Within the partition; raises what has gone wrong.

        Unless it is woken, it is not due again before ``interval`` seconds.
        """
        self._begun = time.monotonic()
        self.is_quiet, self._was_woken = not self._was_woken, False
        try:
            self.tick()
        finally:
            self._next_tick = time.monotonic() + max(interval, self._pause())
        self._failed = 0

    def note_failure(self, error: Exception, *, is_outage: bool) -> None:
        """Wait before it is tried again: for longer the longer it took, or each time."""
        self._failed += 1
        took = time.monotonic() - self._begun
        pause = min(LONGEST_OUTAGE_PAUSE_SECONDS, took * (1 / SHARE_OF_FAILURES - 1))
        if not is_outage:
            pause = min(LONGEST_PAUSE_SECONDS, PAUSE_SECONDS * 2 ** min(self._failed, 10))
        self._retry_at = time.monotonic() + max(PAUSE_SECONDS, pause)
        if is_outage and isinstance(error, Error):
            self._log_failure(error)

    def take_doubt(self) -> bool:
        """Return whether writing has failed since the last time as it does without tables."""
        doubt, self._is_in_doubt = self._is_in_doubt, False
        return doubt

    def _log_failure(self, error: Exception) -> None:
        if isinstance(error, DatabaseError) and not (has_collided(error) or is_outage(error)):
            self._is_in_doubt = True
        super()._log_failure(error)

    @property
    def failed(self) -> int:
        """How often in a row it could not be looked at."""
        return self._failed

    def let_rest(self) -> bool:
        """Return whether nothing is in flight here, nor was a moment ago; then it rests.

        Set before it is asked whether there is anything: whoever adds something after that finds
        it set, and wakes the thread.
        """
        is_busy = self._is_busy()
        self.is_resting = self.is_quiet and not is_busy and not self._was_woken
        if self.is_resting and (self._is_busy() or self._was_woken):
            self.is_resting = False
        return self.is_resting

    def begin_visit(self) -> None:
        """Recover what dead processes left here, and clean: it is this partition's turn."""
        self.recovery.note_activity()
        self.turn_sweep.begin_turn()
        self.wake()

    def abandon(self) -> None:
        """End everything that is in flight: the partition is no more."""
        for running in self.requests.running():
            running.stop(StopReason.SESSION_ENDED)
        with self._lock:
            writers, self._to_write = list(self._to_write), {}
        self._jobs.clear()
        for writer in writers:
            if not (batch := writer.take()).empty:
                self._give_up(batch)
        for reader in self.readers.all():
            self.readers.remove(reader)
            reader.finish()

    def close(self) -> None:
        """Write what waits. Within the partition; what cannot be written is lost."""
        self.use.write(at_once=True)
        self._write()
