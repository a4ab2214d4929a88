"""Which sessions live: those that nobody has ended, and that have not expired."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from ...clock import DatabaseHour, DatabaseNow
from ...conf import get_settings
from ...models import PendingRequest, Session
from ..database import alias
from ..parent_rows import LIVE


def live_sessions() -> QuerySet[Session]:
    """Return the sessions that have neither ended nor expired.

    One that is busy never expires, whatever its age.
    """
    return _unended().filter(_fresh() | has_running_calls())


def idle_sessions() -> QuerySet[Session]:
    """Return the live sessions in which no call runs."""
    return live_sessions().filter(~has_running_calls())


def expired_sessions() -> QuerySet[Session]:
    """Return the sessions that nobody has ended and nobody can use any more."""
    return _unended().filter(~(_fresh() | has_running_calls()))


def stale_sessions() -> QuerySet[Session]:
    """Return those of :func:`expired_sessions` that an index finds: they have been idle as well.

    One that is too old can be used no longer, so that it becomes idle in time.
    """
    settings = get_settings()
    seconds = min(settings.session_idle_seconds, settings.session_max_age_seconds)
    # The hour, which the index has, is never later than the last use.
    unused = expired_sessions().filter(used_hour__lte=DatabaseHour() - seconds // 3600)
    return unused.filter(last_active__lt=DatabaseNow() - timedelta(seconds=seconds))


def _unended() -> QuerySet[Session]:
    # The index has the time of the end, which a session that lives does not have.
    return Session.objects.using(alias()).filter(state__in=LIVE, ended=None)


def _fresh() -> Q:
    idle = timedelta(seconds=get_settings().session_idle_seconds)
    return Q(last_active__gt=DatabaseNow() - idle, expires__gt=DatabaseNow())


def has_running_calls() -> Exists:
    """Return whether calls of a session are running, as a condition."""
    # A lease that has run out is that of a process that died: what it ran protects nothing.
    leased = Q(lease_until=None) | Q(lease_until__gt=DatabaseNow())
    running = PendingRequest.objects.filter(
        leased, session=OuterRef("pk"), state=PendingRequest.State.RUNNING
    )
    return Exists(running)
