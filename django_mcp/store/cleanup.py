"""Cleaning: what may be forgotten, from when on, and how.

From the leaves up: each kind of rows has its own rule, and a row goes when nothing refers to it any
more. It was ended or closed long before, and nothing is ever added below such a row, since whoever
inserts a child first locks its parent under the condition that it lives. So a step needs no lock
that outlasts its statements, any step may be the last one, and any number of processes may clean at
once, beside everybody who writes.

By key, after a plain read: on MySQL a deletion by age would lock the gaps between the rows, where
others insert.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

from django.db import models
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, When

from ..clock import DatabaseNow
from ..conf import get_settings
from ..models import (
    CallCount,
    Change,
    OutgoingMessage,
    PendingRequest,
    Session,
    Stream,
    Subscription,
)
from ..protocol.topics import TopicKind
from .access import rate_counters
from .access.redeemed_states import expired_states
from .database import alias, with_retries
from .delivery.request_rows import State, early_cancellations
from .in_flight.recovery import end_abandoned
from .sessions.liveness import stale_sessions
from .sessions.session_rows import end_expired

BATCH_ROWS: Final = 500
"""Most rows that go in one statement, unless the command says otherwise."""
MESSAGES_PER_STREAM: Final = 4
"""About how many a stream has: a step takes on as many streams as it can be done with."""
COUNTED_ROWS: Final = 100_000
"""Rows of one kind that are counted at most."""
ABANDONED_AGE: Final = timedelta(days=1)
"""How long after its lease a request counts as a dead process's even with those whose bookkeeping
has not run lately, as the command: no outage lasts so long without that somebody ends the
processes.
"""
UNUSED_AGE: Final = timedelta(days=1)
"""How long the change of a resource is kept that nobody is subscribed to any more."""
ENDED_STATES: Final = tuple(state for state in State if state != State.RUNNING)


class CleanupStep(NamedTuple):
    """What one step has done."""

    number: int
    """How many rows it has forgotten."""
    more: bool
    """Whether there may be more to do."""
    found_nothing: bool = False
    """Whether this was only a look at a part of what there is, and nothing there was to go."""


@dataclass(frozen=True, slots=True)
class CleanupRule:
    """One kind of what may be forgotten."""

    name: str
    """What operators call it, in the plural."""
    due: Callable[[], QuerySet[Any]]
    """What is old enough. It goes as soon as nothing refers to it."""
    forget: Callable[[int], CleanupStep]
    """Forget so many rows at most, in a few short statements."""

    def count(self) -> int:
        """Return how many rows are due, or :data:`COUNTED_ROWS`."""
        return self.due().order_by()[:COUNTED_ROWS].count()

    def forget_all(self, batch_size: int) -> int:
        """Forget whatever is due, batch by batch; return how many rows that were."""
        number = 0
        while True:
            done = with_retries(lambda: self.forget(batch_size))
            number += done.number
            if not done.more:
                return number


Batch = CleanupStep
"""Another name, under which apps have imported it."""
Kind = CleanupRule
"""Another name, under which apps have imported it."""


def cleanup_rules() -> list[CleanupRule]:
    """Return every kind of the protocol's rows, children first. For one round only."""
    return [
        CleanupRule("expired sessions, which end", stale_sessions, _end_sessions),
        CleanupRule("abandoned requests, which fail", _abandoned, _end_abandoned),
        CleanupRule("subscriptions", _dead_subscriptions, _Walk(_dead_subscriptions, Q())),
        CleanupRule("messages", _old_messages, _forget_messages),
        CleanupRule("early cancellations", _old_cancellations, _forget_cancellations),
        CleanupRule("requests", _old_requests, _forget_requests),
        CleanupRule(
            "streams", _old_streams, _Pages(_cleared_streams, "closed", "stream", _forget_streams)
        ),
        CleanupRule(
            "ended sessions",
            _old_sessions,
            _Pages(_old_sessions, "ended", "session", _forget_sessions),
        ),
        CleanupRule("changes", _unused_changes, _Walk(_unused_changes, _unused())),
        CleanupRule("call counts", _past_counts, _forget_counts),
        CleanupRule("redeemed states", expired_states, _forget_redeemed),
    ]


class _Walk:
    """Goes through a table by key, page by page, and deletes what is dead.

    For rows that do not say themselves since when nobody wants them, so that no index finds them.
    ``still`` is asked once more at the deletion, of what may have changed since.
    """

    def __init__(self, dead: Callable[[], QuerySet[Any]], still: Q) -> None:
        self._dead = dead
        self._still = still
        self._last = 0

    def __call__(self, limit: int) -> CleanupStep:
        rows = _rows(self._dead().model)
        following = rows.filter(pk__gt=self._last).order_by("pk")
        page = list(following.values_list("pk", flat=True)[:limit])
        dead = self._dead().filter(pk__in=page).values_list("pk", flat=True)
        number = _delete(rows.filter(self._still), list(dead)) if page else 0
        self._last = page[-1] if page else self._last
        return CleanupStep(number, len(page) == limit, found_nothing=not number)


class _Pages:
    """Goes through what is old enough, page by page, and forgets what no request refers to.

    Oldest first, as the index has it. What is still referred to is passed over, and not looked at
    again and again while its children go: it comes in the next round.
    """

    def __init__(
        self,
        due: Callable[[], QuerySet[Any]],
        oldest: str,
        by: str,
        forget: Callable[[Sequence[Any], int], CleanupStep],
    ) -> None:
        self._due = due
        self._oldest = oldest
        self._by = by
        self._forget = forget
        self._passed = 0

    def __call__(self, limit: int) -> CleanupStep:
        due = self._due().order_by(self._oldest)
        page = list(due.values_list("pk", flat=True)[self._passed : self._passed + limit])
        free = Case(When(_without_requests(self._by), then=True), default=False)
        # What somebody else has removed by now is not there to be passed over.
        there = self._due().filter(pk__in=page).values_list("pk", free) if page else ()
        found = dict(there)
        freed = [key for key, is_free in found.items() if is_free]
        done = self._forget(freed, limit) if freed else CleanupStep(0, more=False)
        if done.more:
            return done  # some of them are still there, and come first again
        self._passed += len(found) - len(freed)
        return CleanupStep(done.number, len(page) == limit, found_nothing=not freed)


# Rules. Every age is the database's.


def _end_sessions(limit: int) -> CleanupStep:
    found = list(stale_sessions().values_list("pk", flat=True)[:limit])
    return CleanupStep(end_expired(found), len(found) == limit)


def _abandoned() -> QuerySet[Any]:
    return _rows(PendingRequest).filter(
        state=State.RUNNING, lease_until__lt=DatabaseNow() - ABANDONED_AGE
    )


def _end_abandoned(limit: int) -> CleanupStep:
    keys = list(_abandoned().values_list("pk", flat=True)[:limit])
    if keys:
        end_abandoned(ABANDONED_AGE)
    number = len(keys) - _abandoned().filter(pk__in=keys).count()
    return CleanupStep(number, number > 0)


def _dead_subscriptions() -> QuerySet[Any]:
    ended = Q(session__state=Session.State.ENDED)
    ended |= Q(request__isnull=False) & ~Q(request__state=State.RUNNING)
    return _rows(Subscription).filter(ended)


def _replay_age() -> timedelta:
    return timedelta(seconds=get_settings().replay_seconds)


def _retention() -> timedelta:
    """Return for how long the admin shows what has ended; clients may come back for it as well."""
    return max(timedelta(seconds=get_settings().retention_seconds), _replay_age())


def _old_messages() -> QuerySet[Any]:
    return _rows(OutgoingMessage).filter(
        stream__cleared=False, stream__closed__lt=DatabaseNow() - _replay_age()
    )


def _forget_messages(limit: int) -> CleanupStep:
    closed = _rows(Stream).filter(cleared=False, closed__lt=DatabaseNow() - _replay_age())
    number = max(1, limit // MESSAGES_PER_STREAM)
    keys = list(closed.order_by("closed").values_list("pk", flat=True)[:number])
    if not keys:
        return CleanupStep(0, False)
    streams = _rows(Stream).filter(pk__in=keys)
    # The number first: whoever asks for what is being deleted is told so.
    streams.filter(trimmed__lt=F("next_seq") - 1).update(trimmed=F("next_seq") - 1)
    done = _forget(_rows(OutgoingMessage).filter(stream__in=keys), limit)
    if not done.more:
        streams.update(cleared=True)
    return CleanupStep(done.number, done.more or len(keys) == number)


def _old_requests() -> QuerySet[Any]:
    return _rows(PendingRequest).filter(
        state__in=ENDED_STATES, ended__lt=DatabaseNow() - _retention()
    )


def _forget_requests(limit: int) -> CleanupStep:
    free = _old_requests().filter(_without_requests("parent"))
    callers = dict(free.values_list("pk", "parent_id")[:limit])
    number = _delete_requests(list(callers))
    asking = {caller for caller in callers.values() if caller}
    if asking:
        # Where questions went, the calls that had asked them can go now.
        number += _delete_requests(list(free.filter(pk__in=asking).values_list("pk", flat=True)))
    return CleanupStep(number, len(callers) == limit)


def _delete_requests(keys: Sequence[Any]) -> int:
    if keys:
        subscriptions = _rows(Subscription).filter(request__in=keys)
        _delete(_rows(Subscription), list(subscriptions.values_list("pk", flat=True)))
    return _delete(_rows(PendingRequest), keys)


def _without_requests(by: str) -> Q:
    """Return the condition that no request refers to a row, as its parent, stream or session."""
    return Q(~Exists(PendingRequest.objects.filter(**{by: OuterRef("pk")})))


def _old_cancellations() -> QuerySet[Any]:
    # Those that a version before has left have an end, and go with the requests.
    return early_cancellations().filter(ended=None, created__lt=DatabaseNow() - _replay_age())


def _forget_cancellations(limit: int) -> CleanupStep:
    return _forget(_old_cancellations(), limit)


def _old_streams() -> QuerySet[Any]:
    return _rows(Stream).filter(closed__lt=DatabaseNow() - _retention())


def _cleared_streams() -> QuerySet[Any]:
    return _old_streams().filter(cleared=True)


def _forget_streams(keys: Sequence[Any], limit: int) -> CleanupStep:
    return CleanupStep(_delete(_rows(Stream), keys), more=False)


def _old_sessions() -> QuerySet[Any]:
    return _rows(Session).filter(ended__lt=DatabaseNow() - _retention())


def _forget_sessions(keys: Sequence[Any], limit: int) -> CleanupStep:
    if _forget_left(keys, limit):
        return CleanupStep(0, more=True)
    return CleanupStep(_delete(_rows(Session), keys), more=False)


def _forget_left(sessions: Sequence[Any], limit: int) -> bool:
    """Delete what sessions without requests still have; return whether there is more.

    Their own streams, above all, which nobody closes.
    """
    if _forget(_rows(Subscription).filter(session__in=sessions), limit).more:
        return True
    streams = _rows(Stream)
    keys = list(streams.filter(session__in=sessions).values_list("pk", flat=True)[:limit])
    # A message finds its stream closed, or is there to be found.
    streams.filter(pk__in=keys).update(closed=DatabaseNow(), trimmed=F("next_seq") - 1)
    if _forget(_rows(OutgoingMessage).filter(stream__in=keys), limit).more:
        return True
    _delete(streams, keys)
    return len(keys) == limit


def _unused_changes() -> QuerySet[Any]:
    """Return changes of which nobody is still to be notified.

    Every live session was opened after the oldest of them, or does not subscribe to the resource.
    The three lists of each server stay for good.
    """
    age = timedelta(seconds=get_settings().session_max_age_seconds)
    subscribed = Subscription.objects.filter(
        server=OuterRef("server"), uri_digest=OuterRef("uri_digest")
    )
    rows = _rows(Change).filter(_unused(), kind=TopicKind.RESOURCE)
    return rows.filter(Q(changed__lt=DatabaseNow() - age) | ~Exists(subscribed))


def _unused() -> Q:
    return Q(changed__lt=DatabaseNow() - UNUSED_AGE)


def _past_counts() -> QuerySet[Any]:
    return _rows(CallCount).filter(ends__lt=DatabaseNow())


def _forget_counts(limit: int) -> CleanupStep:
    number = rate_counters.prune(at_once=limit)
    return CleanupStep(number, number == limit)


def _forget_redeemed(limit: int) -> CleanupStep:
    return _forget(expired_states(), limit)


def _forget(rows: QuerySet[Any], limit: int) -> CleanupStep:
    keys = list(rows.values_list("pk", flat=True)[:limit])
    return CleanupStep(_delete(_rows(rows.model), keys), len(keys) == limit)


def _delete(rows: QuerySet[Any], keys: Sequence[Any]) -> int:
    """Delete rows to which nothing refers, in one statement."""
    # Not delete(), which would look for what refers to them, and delete that by its parents' keys.
    return rows.filter(pk__in=keys)._raw_delete(alias()) if keys else 0


def _rows(model: type[models.Model]) -> QuerySet[Any]:
    return model._default_manager.using(alias())
