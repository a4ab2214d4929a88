"""Who is told of sessions that this process has ended: nobody, unless an optional app wants it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import DatabaseError

from ...models import Session
from ..database import alias

logger = logging.getLogger("django_mcp.store")


@dataclass(frozen=True, slots=True)
class EndedSession:
    """A session that has ended."""

    server: str
    revision: str
    seconds: float
    """From its opening to its end, by the database's clock."""


watchers: Final[list[Callable[[EndedSession], object]]] = []
"""Are given each session that this process ends: for its client, in the admin, to make room, or
because it is too old. Not those that go with their users."""


def note_ended(keys: Sequence[Any]) -> None:
    """Tell the watchers of the sessions with these keys that have ended. Never raises."""
    if not watchers or not keys:
        return
    rows = Session.objects.using(alias()).filter(pk__in=keys)
    try:
        found = list(rows.values_list("server", "revision", "created", "ended"))
        for server, revision, created, ended in found:
            if ended is not None:
                seconds = max(0.0, (ended - created).total_seconds())
                for watch in watchers:
                    watch(EndedSession(server, revision, seconds))
    except DatabaseError:
        logger.warning("Nobody is told how long sessions have lasted", exc_info=True)
