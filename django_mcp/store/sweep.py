"""The sweep: cleaning beside everything else, in steps, by one process at a time.

What may go is said by :mod:`django_mcp.store.cleanup`. Here it is decided who cleans, when, and how
much of its time that takes: a bounded share, whatever there is to do, so that more goes where more
comes. Each kind of rows has its turn in order; one that has much to do never keeps another waiting.
"""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import DatabaseError
from django.db.models import Q

from ..clock import DatabaseNow
from ..forks import jitter
from ..models import Claim
from .cleanup import CleanupRule, CleanupStep, cleanup_rules
from .database import alias, has_collided, is_outage

logger = logging.getLogger("django_mcp.store")

ROUND_SECONDS: Final = 30.0
"""How often each kind is looked at, while the process is in use."""
LOOK_SECONDS: Final = 0.5
"""Pause of a kind after a look at a part of its rows of which none was to go."""
SHARE: Final = 0.1
"""The part of its time for which the thread cleans, as long as a round is enough for what comes."""
MOST_SHARE: Final = 0.5
"""The part of its time for which it cleans at most, where more comes: messages wait for it."""
STEP_ROWS: Final = 200
"""Most rows that go in one statement of a step: some milliseconds, for which others may wait."""
CLAIM_SECONDS: Final = 2 * ROUND_SECONDS
"""For how long a process is the one that cleans, unless it says so again."""
JOB: Final = "cleaning"


@dataclass(slots=True, eq=False)
class _Turn:
    """One kind of which something may be left to do in this round."""

    kind: CleanupRule
    due: float
    """When it may take its next step, by the monotonic clock."""
    is_behind: bool = False
    """Whether there was more to remove than the last step took on."""


class Sweep:
    """Cleans now and then, one small step at a time. For the ledger's thread.

    A process does so only when it is in use, so that a site where nothing happens costs nothing.
    """

    def __init__(self) -> None:
        self._owner = secrets.token_hex(16)
        # Processes that were started together do not look together whose turn it is.
        self._round = time.monotonic() + jitter(ROUND_SECONDS)
        self._step = float("-inf")
        self._turns: list[_Turn] = []
        self._share = SHARE
        self._due = False

    def __bool__(self) -> bool:
        """Whether there may be something left to do."""
        return bool(self._turns)

    @property
    def pause(self) -> float:
        """The seconds until the next step."""
        if not self._turns:
            return float("inf")
        due = min(turn.due for turn in self._turns)
        return max(0.0, max(self._step, due) - time.monotonic())

    def note_activity(self) -> None:
        """Let there be another round, for something is written. From any thread."""
        self._due = True

    def tick(self) -> None:
        """Take one step, if one is due."""
        now = time.monotonic()
        if now >= self._round and (self._due or self._turns):
            self._begin_round(now)
        ready = [turn for turn in self._turns if turn.due <= now]
        if ready and now >= self._step:
            self._take(min(ready, key=lambda turn: turn.due))

    def _begin_round(self, now: float) -> None:
        try:
            is_ours = _claim(self._owner)
        except DatabaseError as error:
            self._round = now + (LOOK_SECONDS if has_collided(error) else ROUND_SECONDS)
            _log_failure(error, "What is old is not removed, for none could be chosen to do so")
            return
        self._due, self._round = False, now + ROUND_SECONDS
        if not is_ours:
            self._turns.clear()
            return
        is_behind = any(turn.is_behind for turn in self._turns)
        self._share = min(MOST_SHARE, 2 * self._share) if is_behind else SHARE
        # What is under way goes on where it is.
        under_way = {turn.kind.name for turn in self._turns}
        self._turns += [_Turn(kind, now) for kind in cleanup_rules() if kind.name not in under_way]

    def _take(self, turn: _Turn) -> None:
        begun = time.monotonic()
        done = _forget(turn)
        ended = time.monotonic()
        self._step = begun + (ended - begun) / self._share
        turn.is_behind = done.more and not done.found_nothing
        # Behind all others that are ready.
        turn.due = ended + (LOOK_SECONDS if done.found_nothing else 0)
        if not done.more:
            self._turns.remove(turn)


def _forget(turn: _Turn) -> CleanupStep:
    try:
        return turn.kind.forget(STEP_ROWS)
    except DatabaseError as error:
        # The next round is soon enough: others write, and messages must not wait for this.
        _log_failure(error, f"Old {turn.kind.name} could not be removed")
        return CleanupStep(0, more=False)


def _log_failure(error: DatabaseError, what: str) -> None:
    """Say what has failed, unless others were in the way; raises if the database is away."""
    if is_outage(error):
        raise error
    if not has_collided(error):
        logger.warning("%s: %s", what, error)


def _claim(owner: str) -> bool:
    """Return whether this process is the one that cleans, for a while from now on.

    Two would delete the same rows, each waiting for the other. That is the only harm: who has lost
    its claim without having noticed yet may finish its step.
    """
    rows = Claim.objects.using(alias()).filter(pk=JOB)
    until = DatabaseNow() + timedelta(seconds=CLAIM_SECONDS)
    free = rows.filter(Q(owner=owner) | Q(until__lt=DatabaseNow()))
    if free.update(owner=owner, until=until):
        return True
    if rows.exists():
        return False
    Claim.objects.using(alias()).bulk_create(
        [Claim(job=JOB, owner=owner, until=until)], ignore_conflicts=True
    )
    return rows.filter(owner=owner).exists()
