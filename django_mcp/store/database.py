"""How the package talks to its database: which alias, and what a failure means."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from django.db import InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..conf import get_settings
from ..forks import jitter
from ..partitions import here, partitions
from ..protocol.errors import Unavailable

logger = logging.getLogger("django_mcp.store")

T = TypeVar("T")

RETRY_SECONDS: Final = 1.0
"""Seconds after which a transaction that collides with others is given up."""
LOCK_WAIT_SECONDS: Final = 0.2
"""Seconds for which somebody who tries again waits for SQLite's lock."""
BATCH_SIZE: Final = 500
"""Values that one statement names at most: rows that it inserts, or keys."""
_COLLIDED: Final = ("40001", "40P01", (1205,), (1213,))
"""Deadlocks and their like: states of PostgreSQL, numbers of MySQL."""


def alias() -> str:
    """Return the database alias of all protocol rows: reads too, since a replica may lag.

    Where there are partitions, of those of the present one.
    """
    settings = get_settings()
    if settings.partition is None:
        return settings.database
    kind = partitions()
    assert kind is not None
    return kind.database(here())


def is_in_transaction() -> bool:
    """Return whether the caller has opened a transaction, as a test: nobody else sees his rows."""
    # On an event loop Django lets nobody use a connection, but for who has told it to; to ask for
    # it would make one each time.
    if has_loop() and not os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE"):
        return False
    return connections[alias()].in_atomic_block


def has_loop() -> bool:
    """Return whether an event loop runs in this thread, which must not wait for a database."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def with_retries(work: Callable[[], T]) -> T:
    """Run a transaction, and again where others were in its way or its connection had broken.

    A connection that broke may have brought the commit there and not the answer back, so ``work``
    must do no harm when it is done twice. Not within a transaction of the caller's, which would be
    broken as a whole.
    """
    connection, end = connections[alias()], time.monotonic() + RETRY_SECONDS
    while True:
        had_connection = connection.connection is not None
        try:
            return work()
        except (OperationalError, InterfaceError) as error:
            if connection.in_atomic_block or time.monotonic() > end:
                raise
            if not (has_collided(error) or (had_connection and _has_broken(connection))):
                raise
        time.sleep(jitter(0.02))


def _has_broken(connection: BaseDatabaseWrapper) -> bool:
    """Return whether a connection is of no use any more; if so, it is closed."""
    if connection.connection is not None and connection.is_usable():
        return False
    connection.close()
    return True


def has_collided(error: Exception) -> bool:
    """Return whether a transaction failed only because others were in its way."""
    state = getattr(error.__cause__, "sqlstate", None)
    return state in _COLLIDED or error.args[:1] in _COLLIDED or is_locked(error)


def is_outage(error: Exception) -> bool:
    """Return whether the database could not be used, so that nobody knows what it has done."""
    return isinstance(error, (OperationalError, InterfaceError)) and not has_collided(error)


def is_locked(error: Exception) -> bool:
    """Return whether somebody else has SQLite's only lock for writing."""
    return "locked" in str(error)


def in_batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield ``items`` in parts that fit into one statement."""
    for start in range(0, len(items), BATCH_SIZE):
        yield items[start : start + BATCH_SIZE]


def shorten_lock_wait(using: str | None = None) -> None:
    """Let this thread give up soon where SQLite is locked: it will try again.

    A function of the site may keep the only lock for writing as long as it likes.
    """
    connection = connections[using or alias()]
    if connection.vendor == "sqlite":
        settings = connection.settings_dict
        options = {**settings["OPTIONS"], "timeout": LOCK_WAIT_SECONDS}
        connection.settings_dict = {**settings, "OPTIONS": options}


@contextmanager
def reporting_outages() -> Iterator[None]:
    """Turn a database that cannot be reached into an answer that says so (HTTP 503)."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise unavailable(error) from error


def unavailable(error: Exception) -> Unavailable:
    """Log that the database cannot be used; return the answer that says so (HTTP 503)."""
    logger.error("The database cannot be used: %s", error)
    return Unavailable("The server's database is unavailable; try again")
