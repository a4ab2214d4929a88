"""What rows refer to: sessions, which are locked first, and users, of whom none is locked.

Whoever adds rows below a session locks it under the condition that it lives. So whoever ends
sessions, and locks them too, either finds what was added or has ended them before. A user who is
deleted meanwhile is noticed by the foreign key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_user_model
from django.db import IntegrityError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, QuerySet

from ..auth import Principal
from ..models import Session
from ..protocol.errors import access_revoked
from .database import alias

LIVE = (Session.State.OPENED, Session.State.READY)
"""The states of sessions that nobody has ended."""


def lock_live_sessions(keys: Collection[Any]) -> set[str]:
    """Lock the rows of sessions until the present transaction ends.

    Return the keys, as text, of those that nobody has ended. What their holders before have
    committed is seen by the next statement, and only by that.
    """
    connection = connections[alias()]
    rows = Session.objects.using(alias()).filter(pk__in=sorted(keys), state__in=LIVE)
    if not _is_lock_enough(connection):
        if rows.update(state=F("state")) == len(keys):
            return set(map(str, keys))
        return set(map(str, rows.values_list("pk", flat=True)))
    return set(map(str, _locked(rows, connection)))


def lock_sessions(keys: Collection[Any]) -> None:
    """Lock the rows of sessions, ended or not, before several of them are updated.

    An UPDATE comes across them in whatever order, so that two processes might each wait for the
    other. Where no rows can be locked nobody else writes meanwhile.
    """
    connection = connections[alias()]
    if len(keys) > 1 and connection.features.has_select_for_update:
        _locked(Session.objects.using(alias()).filter(pk__in=sorted(keys)), connection)


def _locked(rows: QuerySet[Session], connection: BaseDatabaseWrapper) -> list[Any]:
    """Lock rows in one order for all; return their keys."""
    # Not against those who refer to a row by its key: to add a child is to lock that, too.
    no_key = connection.features.has_select_for_no_key_update
    locked = rows.order_by("pk").select_for_update(no_key=no_key)
    return list(locked.values_list("pk", flat=True))


@contextmanager
def refusing_deleted_user(principal: Principal) -> Iterator[None]:
    """Refuse what cannot be written since its user has been deleted after authentication.

    Around the transaction, not in it. Raises the error that also ends what such a user runs.
    """
    try:
        yield
    except IntegrityError as error:
        user = getattr(principal.user, "pk", None)
        users = get_user_model()._base_manager.using(alias())
        if user is None or users.filter(pk=user).exists():
            raise
        raise access_revoked() from error


def _is_lock_enough(connection: BaseDatabaseWrapper) -> bool:
    """Return whether who has got the lock of a row sees what its holder before has added below it.

    SQLite locks no rows, but has one writer at a time. On PostgreSQL a transaction that reads the
    past goes on reading it, unless the row itself was written: then it fails, and is tried again.
    """
    if connection.vendor == "postgresql":
        level = getattr(connection, "isolation_level", None)
        return level is not None and level.name in ("READ_COMMITTED", "READ_UNCOMMITTED")
    return connection.features.has_select_for_update
