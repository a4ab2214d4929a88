"""Cleaning: what may be forgotten, from when on, and how.

From the leaves up: each kind of rows has its own rule, and a row goes when nothing refers to it any
more. It was ended or closed long before, and nothing is ever added below such a row, since whoever
inserts a child first updates its parent under the condition that it lives. So a step needs no lock
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
from ..protocol.topics import Kind as Topics
from .access import rate_counters
from .access.redeemed_states import expired_states
from .database import alias, insist
from .requests.pending import State, early_cancellations, lease
from .requests.recovery import settle
from .sessions.liveness import stale_sessions
from .sessions.session_rows import end_expired

BATCH: Final = 500
"""Most rows that go in one statement, unless the command says otherwise."""
MESSAGES: Final = 4
"""About how many a stream has: a step takes on as many streams as it can be done with."""
COUNTED: Final = 100_000
"""Rows of one kind that are counted at most."""
ABANDONED: Final = timedelta(days=1)
"""How long after its lease a request counts as a dead process's even with those who have not kept
books lately, as the command: no outage lasts so long without that somebody ends the processes."""
UNHEARD: Final = timedelta(days=1)
"""How long the change of a resource is kept that nobody is subscribed to any more."""
OVER: Final = tuple(state for state in State if state != State.RUNNING)


class Batch(NamedTuple):
    """What one step has done."""

    number: int
    """How many rows it has forgotten."""
    more: bool
    """Whether there may be more to do."""
    in_vain: bool = False
    """Whether this was only a look at a part of what there is, and nothing there was to go."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of what may be forgotten."""

    name: str
    """What operators call it, in the plural."""
    due: Callable[[], QuerySet[Any]]
    """What is old enough. It goes as soon as nothing refers to it."""
    forget: Callable[[int], Batch]
    """Forget so many rows at most, in a few short statements."""

    def count(self) -> int:
        """Return how many rows are due, or :data:`COUNTED`."""
        return self.due().order_by()[:COUNTED].count()

    def forget_all(self, batch_size: int) -> int:
        """Forget whatever is due, batch by batch; return how many rows that were."""
        number = 0
        while True:
            done = insist(lambda: self.forget(batch_size))
            number += done.number
            if not done.more:
                return number


def kinds() -> list[Kind]:
    """Return every kind of the protocol's rows, children first. For one round only."""
    return [
        Kind("expired sessions, which end", stale_sessions, _end_sessions),
        Kind("abandoned requests, which fail", _abandoned, _settle_abandoned),
        Kind("subscriptions", _dead_subscriptions, _Walk(_dead_subscriptions, Q())),
        Kind("messages", _old_messages, _forget_messages),
        Kind("early cancellations", _old_cancellations, _forget_cancellations),
        Kind("requests", _old_requests, _forget_requests),
        Kind(
            "streams", _old_streams, _Pages(_cleared_streams, "closed", "stream", _forget_streams)
        ),
        Kind(
            "ended sessions",
            _old_sessions,
            _Pages(_old_sessions, "ended", "session", _forget_sessions),
        ),
        Kind("changes", _unheard_changes, _Walk(_unheard_changes, _unheard())),
        Kind("call counts", _past_counts, _forget_counts),
        Kind("redeemed states", expired_states, _forget_redeemed),
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

    def __call__(self, limit: int) -> Batch:
        rows = _rows(self._dead().model)
        following = rows.filter(pk__gt=self._last).order_by("pk")
        page = list(following.values_list("pk", flat=True)[:limit])
        dead = self._dead().filter(pk__in=page).values_list("pk", flat=True)
        number = _delete(rows.filter(self._still), list(dead)) if page else 0
        self._last = page[-1] if page else self._last
        return Batch(number, len(page) == limit, in_vain=not number)


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
        forget: Callable[[Sequence[Any], int], Batch],
    ) -> None:
        self._due = due
        self._oldest = oldest
        self._by = by
        self._forget = forget
        self._passed = 0

    def __call__(self, limit: int) -> Batch:
        due = self._due().order_by(self._oldest)
        page = list(due.values_list("pk", flat=True)[self._passed : self._passed + limit])
        free = Case(When(_unasked(self._by), then=True), default=False)
        # What somebody else has removed by now is not there to be passed over.
        there = self._due().filter(pk__in=page).values_list("pk", free) if page else ()
        found = dict(there)
        freed = [key for key, is_free in found.items() if is_free]
        done = self._forget(freed, limit) if freed else Batch(0, more=False)
        if done.more:
            return done  # some of them are still there, and come first again
        self._passed += len(found) - len(freed)
        return Batch(done.number, len(page) == limit, in_vain=not freed)


# Rules. Every age is the database's.


def _end_sessions(limit: int) -> Batch:
    found = list(stale_sessions().values_list("pk", flat=True)[:limit])
    return Batch(end_expired(found), len(found) == limit)


def _abandoned() -> QuerySet[Any]:
    return _rows(PendingRequest).filter(
        state=State.RUNNING, lease_until__lt=DatabaseNow() - ABANDONED
    )


def _settle_abandoned(limit: int) -> Batch:
    keys = list(_abandoned().values_list("pk", flat=True)[:limit])
    if keys:
        settle(ABANDONED)
    number = len(keys) - _abandoned().filter(pk__in=keys).count()
    return Batch(number, number > 0)


def _dead_subscriptions() -> QuerySet[Any]:
    ended = Q(session__state=Session.State.ENDED)
    ended |= Q(request__isnull=False) & ~Q(request__state=State.RUNNING)
    return _rows(Subscription).filter(ended)


def _replayable() -> timedelta:
    return timedelta(seconds=get_settings().replay_seconds)


def _kept() -> timedelta:
    """Return for how long the admin shows what has ended; clients may come back for it as well."""
    return max(timedelta(seconds=get_settings().retention_seconds), _replayable())


def _old_messages() -> QuerySet[Any]:
    return _rows(OutgoingMessage).filter(
        stream__cleared=False, stream__closed__lt=DatabaseNow() - _replayable()
    )


def _forget_messages(limit: int) -> Batch:
    closed = _rows(Stream).filter(cleared=False, closed__lt=DatabaseNow() - _replayable())
    number = max(1, limit // MESSAGES)
    keys = list(closed.order_by("closed").values_list("pk", flat=True)[:number])
    if not keys:
        return Batch(0, False)
    streams = _rows(Stream).filter(pk__in=keys)
    # The number first: whoever asks for what is being deleted is told so.
    streams.filter(trimmed__lt=F("next_seq") - 1).update(trimmed=F("next_seq") - 1)
    done = _forget(_rows(OutgoingMessage).filter(stream__in=keys), limit)
    if not done.more:
        streams.update(cleared=True)
    return Batch(done.number, done.more or len(keys) == number)


def _old_requests() -> QuerySet[Any]:
    # A lease lasts a little longer than its request. It has an index, for the sake of those that
    # run; the end of a request has none.
    return _rows(PendingRequest).filter(
        state__in=OVER,
        lease_until__lt=DatabaseNow() - (_kept() - lease()),
        ended__lt=DatabaseNow() - _kept(),
    )


def _forget_requests(limit: int) -> Batch:
    free = _old_requests().filter(_unasked("parent"))
    callers = dict(free.values_list("pk", "parent_id")[:limit])
    number = _delete_requests(list(callers))
    asking = {caller for caller in callers.values() if caller}
    if asking:
        # Where questions went, the calls that had asked them can go now.
        number += _delete_requests(list(free.filter(pk__in=asking).values_list("pk", flat=True)))
    return Batch(number, len(callers) == limit)


def _delete_requests(keys: Sequence[Any]) -> int:
    if keys:
        heard = _rows(Subscription).filter(request__in=keys)
        _delete(_rows(Subscription), list(heard.values_list("pk", flat=True)))
    return _delete(_rows(PendingRequest), keys)


def _unasked(by: str) -> Q:
    """Return the condition that no request refers to a row, as its parent, stream or session."""
    return Q(~Exists(PendingRequest.objects.filter(**{by: OuterRef("pk")})))


def _old_cancellations() -> QuerySet[Any]:
    # What nobody has run has no lease.
    return early_cancellations().filter(lease_until=None, ended__lt=DatabaseNow() - _replayable())


def _forget_cancellations(limit: int) -> Batch:
    return _forget(_old_cancellations(), limit)


def _old_streams() -> QuerySet[Any]:
    return _rows(Stream).filter(closed__lt=DatabaseNow() - _kept())


def _cleared_streams() -> QuerySet[Any]:
    return _old_streams().filter(cleared=True)


def _forget_streams(keys: Sequence[Any], limit: int) -> Batch:
    return Batch(_delete(_rows(Stream), keys), more=False)


def _old_sessions() -> QuerySet[Any]:
    return _rows(Session).filter(ended__lt=DatabaseNow() - _kept())


def _forget_sessions(keys: Sequence[Any], limit: int) -> Batch:
    if _forget_left(keys, limit):
        return Batch(0, more=True)
    return Batch(_delete(_rows(Session), keys), more=False)


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


def _unheard_changes() -> QuerySet[Any]:
    """Return changes that nobody can still want to hear of.

    Every live session was opened after the oldest of them, or does not subscribe to the resource.
    The three lists of each server stay for good.
    """
    age = timedelta(seconds=get_settings().session_max_age_seconds)
    subscribed = Subscription.objects.filter(
        server=OuterRef("server"), uri_digest=OuterRef("uri_digest")
    )
    rows = _rows(Change).filter(_unheard(), kind=Topics.RESOURCE)
    return rows.filter(Q(changed__lt=DatabaseNow() - age) | ~Exists(subscribed))


def _unheard() -> Q:
    return Q(changed__lt=DatabaseNow() - UNHEARD)


def _past_counts() -> QuerySet[Any]:
    return _rows(CallCount).filter(ends__lt=DatabaseNow())


def _forget_counts(limit: int) -> Batch:
    number = rate_counters.prune(at_once=limit)
    return Batch(number, number == limit)


def _forget_redeemed(limit: int) -> Batch:
    return _forget(expired_states(), limit)


def _forget(rows: QuerySet[Any], limit: int) -> Batch:
    keys = list(rows.values_list("pk", flat=True)[:limit])
    return Batch(_delete(_rows(rows.model), keys), len(keys) == limit)


def _delete(rows: QuerySet[Any], keys: Sequence[Any]) -> int:
    """Delete rows to which nothing refers, in one statement."""
    # Not delete(), which would look for what refers to them, and delete that by its parents' keys.
    return rows.filter(pk__in=keys)._raw_delete(alias()) if keys else 0


def _rows(model: type[models.Model]) -> QuerySet[Any]:
    return model._default_manager.using(alias())
