"""Filters that never count and never ask a table for its distinct values."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from ..clock import DatabaseHour, DatabaseNow
from ..models import PendingRequest, Session
from ..protocol.versions import REVISIONS
from ..store.parent_rows import LIVE
from ..store.sessions.liveness import expired_sessions, live_sessions

LOOKED_AT = 1_000
"""Rows, the newest, whose servers are offered."""

SPANS = {
    "5m": (timedelta(minutes=5), _("Past 5 minutes")),
    "1h": (timedelta(hours=1), _("Past hour")),
    "1d": (timedelta(days=1), _("Past day")),
    "7d": (timedelta(days=7), _("Past 7 days")),
}

Choices = list[tuple[str, Any]]


class FieldFilter(SimpleListFilter):
    """Keeps the rows whose field, ``parameter_name``, has the chosen value."""

    parameter_name: str

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep them."""
        value = self.value()
        return queryset if value is None else queryset.filter(**{self.parameter_name: value})


class SessionStateFilter(SimpleListFilter):
    """Filters sessions by the state that their badge shows."""

    title = _("state")
    parameter_name = "state"
    expired = "expired"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer the stored states, and the one that only the clock knows."""
        *live, ended = Session.State.choices
        return [*live, (self.expired, _("expired")), ended]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        """Let the store say who lives: a direct condition, which an index serves."""
        value = self.value()
        if value in LIVE:
            return queryset.filter(state=value) & live_sessions()
        if value == self.expired:
            return queryset & expired_sessions()
        return queryset if value is None else queryset.filter(state=value)


class ActiveFilter(SimpleListFilter):
    """Keeps the sessions that were used lately."""

    title = _("last active")
    parameter_name = "active"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer a few spans."""
        return [(key, label) for key, (_span, label) in SPANS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Session]) -> QuerySet[Session]:
        """Keep them, by the database's clock."""
        if (value := self.value()) not in SPANS:
            return queryset
        span = SPANS[value][0]
        hours = math.ceil(span.total_seconds() / 3600)
        # The hour has an index.
        recent = queryset.filter(used_hour__gte=DatabaseHour() - hours)
        return recent.filter(last_active__gte=DatabaseNow() - span)


class RevisionFilter(FieldFilter):
    """Filters sessions by protocol revision."""

    title = _("protocol revision")
    parameter_name = "revision"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer the revisions that have sessions, newest first."""
        return [(each.name, each.name) for each in reversed(REVISIONS) if not each.modern]


class ServerFilter(FieldFilter):
    """Filters by server, where there is more than one."""

    title = _("server")
    parameter_name = "server"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer the servers of the newest rows, and the one that is chosen."""
        rows = model_admin.get_queryset(request).order_by(f"-{model_admin.newest_by}")
        names = {*rows.values_list("server", flat=True)[:LOOKED_AT], self.value()} - {None}
        return [(name, name) for name in sorted(names)] if len(names) > 1 else []


class RequestStateFilter(FieldFilter):
    """Filters pending requests by state."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer every state."""
        return list(PendingRequest.State.choices)


class DirectionFilter(FieldFilter):
    """Filters pending requests by who waits for whom."""

    title = _("direction")
    parameter_name = "direction"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer both."""
        return list(PendingRequest.Direction.choices)
