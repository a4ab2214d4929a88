"""Deletes tokens that have ended; ``manage.py mcp prune`` does so after ``RETENTION_SECONDS``."""

from __future__ import annotations

import datetime as dt

from .models import Token

BATCH_SIZE = 500


def delete_expired(
    before: dt.datetime | dt.timedelta | None = None, *, batch_size: int = BATCH_SIZE
) -> int:
    """Delete tokens that were revoked or expired by then; return how many that were.

    ``before`` is a moment, or how long ago by the database's clock; by default it is now. Each
    batch is a short transaction of its own, so that a large table is never locked for long.
    """
    deleted, last = 0, 0
    ended = Token.objects.ended(before=before).order_by("pk")
    while batch := list(ended.filter(pk__gt=last).values_list("pk", flat=True)[:batch_size]):
        deleted += ended.filter(pk__in=batch).order_by().delete()[1].get(Token._meta.label, 0)
        last = batch[-1]
    return deleted
