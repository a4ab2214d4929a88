"""Use of sessions: noted with each request, and written now and then.

Idle times are hours, so that nobody needs to know of the last use to the second; and a row that
were written with each request would be the hottest of all.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Final

from django.db import transaction
from django.db.models import F

from ...clock import DatabaseHour, DatabaseNow
from ...conf import get_settings
from ...forks import jitter
from ...models import Session
from ..database import alias, in_batches
from ..parent_rows import LIVE, lock_sessions

LONGEST_PERIOD_SECONDS: Final = 10.0
"""Use of a session is written at most once in so many seconds, whichever processes it is at."""
PERIODS_PER_IDLE_TIME: Final = 10
"""And in so small a part of the time after which it would expire."""
SPREAD_PERIODS: Final = 0.2
"""Within so much more than a period each process tries, so that none is always the last."""


def period_seconds() -> float:
    """Return for how many seconds the last use that is written is recent enough."""
    return min(LONGEST_PERIOD_SECONDS, get_settings().session_idle_seconds / PERIODS_PER_IDLE_TIME)


class SessionUse:
    """The requests of this process that no row counts yet, by session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: dict[str, int] = {}
        """Since the last look."""
        self._counts: dict[str, int] = {}
        """Before that."""
        self._moments: list[tuple[float, str]] = []
        """When, by the monotonic clock, a session may be written next: a heap, with one moment
        for each in ``_waiting``."""
        self._waiting: set[str] = set()

    def __bool__(self) -> bool:
        """Whether there is something that is still to be written."""
        return bool(self._noted or self._counts)

    def note(self, session_id: str) -> None:
        """Count a request of a session. From any thread."""
        with self._lock:
            self._noted[session_id] = self._noted.get(session_id, 0) + 1

    def write(self, *, at_once: bool = False) -> None:
        """Write what is due, or ``at_once`` everything. Called by the ledger's thread.

        What could not be written is due again.
        """
        due = self._take_due(at_once=at_once)
        try:
            for batch in in_batches(list(due)):
                requests = {session: self._counts[session] for session in batch}
                postponed = write_use(requests, at_once=at_once)
                now, period = time.monotonic(), period_seconds()
                for session in batch:
                    if session not in postponed:
                        del self._counts[session]
                    spread = jitter(SPREAD_PERIODS * period)
                    self._wait(session, now + postponed.get(session, period) + spread)
                    del due[session]
        finally:
            for session in due:
                self._wait(session, float("-inf"))

    def _take_due(self, *, at_once: bool) -> dict[str, None]:
        with self._lock:
            noted, self._noted = self._noted, {}
        for session, number in noted.items():
            self._counts[session] = self._counts.get(session, 0) + number
        due = {session: None for session in noted if session not in self._waiting}
        limit = float("inf") if at_once else time.monotonic()
        while self._moments and self._moments[0][0] <= limit:
            _, session = heappop(self._moments)
            self._waiting.discard(session)
            if session in self._counts:
                due[session] = None
        return due

    def _wait(self, session: str, moment: float) -> None:
        self._waiting.add(session)
        heappush(self._moments, (moment, session))


def write_use(requests: Mapping[str, int], *, at_once: bool = False) -> dict[str, float]:
    """Write that sessions have been used, each by so many requests: all of them, or none.

    Left out are those, unless it is to be ``at_once``, whose last use was written less than a
    period ago: returned with the seconds until it was. A session that has ended meanwhile still
    counts its requests.
    """
    rows = Session.objects.using(alias()).filter(pk__in=list(requests))
    found = rows.values_list("pk", "state", "last_active", DatabaseNow())
    used: dict[int, list[str]] = defaultdict(list)
    ended: dict[int, list[str]] = defaultdict(list)
    postponed: dict[str, float] = {}
    for key, state, last_active, now in found:
        session = str(key)
        left = period_seconds() - (now - last_active).total_seconds()
        if state not in LIVE:
            ended[requests[session]].append(session)
        elif left > 0 and not at_once:
            postponed[session] = left
        else:
            used[requests[session]].append(session)
    if used or ended:
        _write(used, ended)
    return postponed


def _write(used: Mapping[int, list[str]], ended: Mapping[int, list[str]]) -> None:
    """Count the requests of sessions, which are given by the number of these."""
    written = [session for sessions in [*used.values(), *ended.values()] for session in sessions]
    rows = Session.objects.using(alias())
    with transaction.atomic(using=alias()):
        lock_sessions(written)
        for number, sessions in used.items():
            living = rows.filter(pk__in=sessions, state__in=LIVE)
            living.update(
                last_active=DatabaseNow(),
                used_hour=DatabaseHour(),
                request_count=F("request_count") + number,
            )
        for number, sessions in ended.items():
            rows.filter(pk__in=sessions).update(request_count=F("request_count") + number)
