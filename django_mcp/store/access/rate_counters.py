"""How often callers have called: in one place for all processes, or in each by itself.

Counting is one step everywhere, never a look and then a write: two that come at once for the last
call there is cannot both get it. In the database that is a conditional UPDATE, by the database's
clock; in a cache an increment. Where neither can be reached, each process goes on by itself.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Final

from django.core.cache import BaseCache, caches
from django.db import DatabaseError
from django.db.models import Case, DateTimeField, F, Q, QuerySet, When

from ...clock import DatabaseNow
from ...conf import get_settings
from ...models import CallCount
from ...protocol.errors import Unavailable
from ...rates import Rate
from ..database import alias, has_collided, with_retries

logger = logging.getLogger("django_mcp.store")

MAX_COUNTS: Final = 100_000
"""Callers that a process counts for itself; more, and those who came first begin anew."""
PRUNED_ROWS: Final = 100
"""Counts of periods long gone that one new caller in so many removes at most."""


def spend(key: str, rate: Rate) -> float:
    """Count one call. Return 0 if it may be made, else the seconds until one may.

    ``key`` is a digest. What is refused is not counted.
    """
    if rate.per_process:
        return counts_here().spend(key, rate)
    name = get_settings().rate_limit_cache
    try:
        waiting = _spend_in_cache(caches[name], key, rate) if name else _spend_in_rows(key, rate)
    except Exception as error:
        if isinstance(error, DatabaseError) and has_collided(error):
            raise Unavailable("Too much is written at once; try again") from error
        # Whatever a cache raises that is away. Callers are not to suffer for it.
        _availability.note_failure(error)
        return counts_here().spend(key, rate)
    _availability.note_success()
    return waiting


def prune(*, at_once: int = PRUNED_ROWS) -> int:
    """Remove some counts of periods that have ended; return how many."""
    keys = list(_rows().filter(ends__lt=DatabaseNow()).values_list("pk", flat=True)[:at_once])
    # Again under the condition: a caller may have come back.
    return _rows().filter(pk__in=keys, ends__lt=DatabaseNow()).delete()[0] if keys else 0


def forget() -> None:
    """Let this process count anew; tests want that."""
    _process.clear()


@contextmanager
def counting_in(counts: Counts) -> Iterator[None]:
    """Count here what is called within the block, apart from the rest of the process."""
    token = _counts.set(counts)
    try:
        yield
    finally:
        _counts.reset(token)


class Counts:
    """The counts of one process. From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, tuple[int, float]] = {}

    def spend(self, key: str, rate: Rate) -> float:
        """Count one call, as the function of this name does."""
        now = time.monotonic()
        with self._lock:
            number, ends = self._counts.get(key, (0, 0.0))
            if ends <= now:
                # Put last: the dict's order is that of the periods' beginnings.
                self._counts.pop(key, None)
                number, ends = 0, now + rate.seconds
            if number >= rate.number:
                return ends - now
            self._counts[key] = (number + 1, ends)
            if len(self._counts) > MAX_COUNTS:
                del self._counts[next(iter(self._counts))]
        return 0.0

    def clear(self) -> None:
        """Count anew."""
        with self._lock:
            self._counts.clear()


class _Availability:
    """Whether the place where all processes count can be reached: said once each time."""

    def __init__(self) -> None:
        self._is_away = False

    def note_failure(self, error: Exception) -> None:
        if not self._is_away:
            self._is_away = True
            logger.warning("Calls cannot be counted; each process counts for itself: %s", error)

    def note_success(self) -> None:
        self._is_away = False


def _spend_in_cache(cache: BaseCache, key: str, rate: Rate) -> float:
    # Periods are those of the clock, so that each has a key of its own: one key that expired
    # between its parts would be made anew without an end.
    period, passed = divmod(time.time(), rate.seconds)
    key = f"mcp-calls-{key}-{period:.0f}"
    try:
        number = cache.incr(key)
    except ValueError:
        # Longer than the period, for the clocks of hosts differ.
        cache.add(key, 0, timeout=2 * rate.seconds + 60)
        number = cache.incr(key)
    return 0.0 if number <= rate.number else rate.seconds - passed


def _spend_in_rows(key: str, rate: Rate) -> float:
    for _ in range(3):
        if with_retries(lambda: _count(key, rate)):
            return 0.0
        waiting = _waiting(key, rate)
        if waiting:
            return waiting
        _begin(key, rate)
    return 1.0


def _count(key: str, rate: Rate) -> bool:
    goes_on = Q(ends__gt=DatabaseNow())
    free = _rows().filter(~goes_on | Q(number__lt=rate.number), key=key)
    anew = DatabaseNow() + timedelta(seconds=rate.seconds)
    # In this order: MySQL reads in each assignment what the ones before it have set.
    return bool(
        free.update(
            number=Case(When(goes_on, then=F("number") + 1), default=1),
            ends=Case(When(goes_on, then=F("ends")), default=anew, output_field=DateTimeField()),
        )
    )


def _waiting(key: str, rate: Rate) -> float:
    """Return the seconds until the period ends in which there is none left; 0 without one."""
    full = _rows().filter(key=key, ends__gt=DatabaseNow(), number__gte=rate.number)
    found = full.annotate(now=DatabaseNow()).values_list("ends", "now").first()
    return 0.0 if found is None else max(0.001, (found[0] - found[1]).total_seconds())


def _begin(key: str, rate: Rate) -> None:
    ends = DatabaseNow() + timedelta(seconds=rate.seconds)
    # Whoever else begins at the same time does no harm: nothing has been counted yet.
    _rows().bulk_create([CallCount(key=key, number=0, ends=ends)], ignore_conflicts=True)
    if secrets.randbelow(PRUNED_ROWS // 2) == 0:
        with suppress(DatabaseError):
            prune()


def _rows() -> QuerySet[CallCount]:
    return CallCount.objects.using(alias())


_process = Counts()
_counts: ContextVar[Counts] = ContextVar("counts", default=_process)
counts_here: Final = _counts.get
"""Returns what counts by itself here: those of the process."""
_availability = _Availability()
