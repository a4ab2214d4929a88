"""A database that a test can take away from everybody in this process, and that mislays answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DataError, InterfaceError, OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.query import QuerySet

REAL_CURSOR = BaseDatabaseWrapper._cursor
REAL_COMMIT = BaseDatabaseWrapper._commit
REAL_INSERT = QuerySet.bulk_create


class Database:
    """Put between the package and the real one."""

    def __init__(self, monkeypatch: Any) -> None:
        self.error: type[Exception] = OperationalError
        self.refuses = ""
        self.attempts = 0
        self._away = False
        self._mislaid: set[int] = set()
        self._collisions: list[Exception] = []
        self._commits = 0
        database = self

        def cursor(wrapper: BaseDatabaseWrapper, name: Any = None) -> Any:
            if database._away:
                database.attempts += 1
                wrapper.close()
                raise database.error("server closed the connection unexpectedly")
            return REAL_CURSOR(wrapper, name)

        def commit(wrapper: BaseDatabaseWrapper) -> None:
            if database._collisions:
                raise database._collisions.pop()
            REAL_COMMIT(wrapper)
            if threading.current_thread().name == "mcp-ledger":
                database._commits += 1
                if database._commits in database._mislaid:
                    raise database.error("could not receive data from server")

        def insert(rows: Any, objects: Any, *args: Any, **options: Any) -> Any:
            objects = list(objects)
            bodies = [getattr(each, "body", "") for each in objects]
            if database.refuses and any(database.refuses in body for body in bodies):
                raise OperationalError("packet bigger than max_allowed_packet")
            if database.refuses and database.refuses in [
                getattr(each, "name", "") for each in objects
            ]:
                raise DataError("value too long")
            return REAL_INSERT(rows, objects, *args, **options)

        monkeypatch.setattr(BaseDatabaseWrapper, "_cursor", cursor)
        monkeypatch.setattr(BaseDatabaseWrapper, "_commit", commit)
        monkeypatch.setattr(QuerySet, "bulk_create", insert)

    @contextmanager
    def away(self, error: type[Exception] = OperationalError) -> Iterator[None]:
        """Let every statement fail."""
        self.error, self._away = error, True
        try:
            yield
        finally:
            self._away = False

    def collide(self, *errors: Exception) -> None:
        """Break the next transactions off, whoever's they are, in favour of others."""
        self._collisions = list(errors)

    @property
    def has_collided(self) -> bool:
        """Return whether all of them have been."""
        return not self._collisions

    def mislay(self, *numbers: int, error: type[Exception] = OperationalError) -> None:
        """Commit those transactions of the ledger's from now on, and answer with an error."""
        self.error, self._commits, self._mislaid = error, 0, set(numbers)


ERRORS = [OperationalError, InterfaceError]


def break_connections() -> None:
    """Let the server end all connections to the database but this one."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return
        cursor.execute(
            "SELECT id FROM information_schema.processlist"
            " WHERE db = DATABASE() AND id <> CONNECTION_ID()"
        )
        for (number,) in cursor.fetchall():
            cursor.execute(f"KILL {number}")
