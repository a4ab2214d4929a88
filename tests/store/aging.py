"""Time that passes: every row becomes older, as if the database's clock had moved on."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from django.db.models import DateTimeField, F

from django_mcp.clock import DatabaseNow
from django_mcp.contrib.tokens.models import Token
from django_mcp.models import (
    CallCount,
    Change,
    OutgoingMessage,
    PendingRequest,
    RedeemedState,
    Session,
    Stream,
    Subscription,
)
from django_mcp.store.cleanup import BATCH_ROWS, cleanup_rules
from django_mcp.store.delivery.request_rows import lease

TABLES = (
    *(Session, Stream, OutgoingMessage, PendingRequest, Subscription, Change, CallCount),
    RedeemedState,
)


def let_pass(**how_long: float) -> None:
    """Let time pass; processes renew the leases of what they run."""
    for model in (*TABLES, Token):
        fields = [each.name for each in model._meta.fields if isinstance(each, DateTimeField)]
        if fields:
            model.objects.update(**{each: F(each) - timedelta(**how_long) for each in fields})
    # The hour of a moment that is so much earlier, or the one before that: never a later one.
    hours = math.ceil(timedelta(**how_long) / timedelta(hours=1))
    Session.objects.filter(used_hour__gt=hours).update(used_hour=F("used_hour") - hours)
    renew()


def renew(**which: Any) -> None:
    """Renew the leases of requests that run, but for those of the dead."""
    running = PendingRequest.objects.filter(state="running", **which).exclude(owner="dead")
    running.update(lease_until=DatabaseNow() + lease())


def forget(name: str, batch_size: int = BATCH_ROWS) -> int:
    """Forget all that is due of one kind."""
    (kind,) = (each for each in cleanup_rules() if each.name == name)
    return kind.forget_all(batch_size)


def prune(batch_size: int = BATCH_ROWS) -> dict[str, int]:
    """Forget all that is due; return how many rows of which kind that was."""
    found = {each.name: each.forget_all(batch_size) for each in cleanup_rules()}
    return {name: number for name, number in found.items() if number}


def row_counts() -> dict[str, int]:
    """Return how many rows there are, by model."""
    return {model.__name__: model.objects.count() for model in TABLES}
