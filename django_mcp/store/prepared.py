"""Queries that the ORM writes once, and that run as plain SQL from then on.

Building a queryset and compiling it takes several times as long as the query itself, when that
finds one row by its key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from ..clock import offset
from ..conf import Settings, get_settings
from .database import alias

PARAMETER: Final = "\0parameter"
"""Stands in a queryset for the value that each run gives."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """What the compiler has made of a queryset."""

    sql: str
    parameters: tuple[Any, ...]
    converters: Sequence[tuple[int, Sequence[Callable[..., Any]], Any]]
    settings: Settings
    offset: int

    def first(self, connection: BaseDatabaseWrapper, given: Any) -> list[Any] | None:
        parameters = [given if each == PARAMETER else each for each in self.parameters]
        with connection.cursor() as cursor:
            cursor.execute(self.sql, parameters)
            found = cursor.fetchone()
        if found is None:
            return None
        row = list(found)
        for index, converters, expression in self.converters:
            for convert in converters:
                row[index] = convert(row[index], expression, connection)
        return row


class Prepared:
    """A query for one row with one parameter.

    ``build`` returns it as ``values_list()`` with :data:`PARAMETER` in it. It may depend on the
    settings of the package, on the database's alias, and on nothing else.
    """

    def __init__(self, build: Callable[[], QuerySet[Any, tuple[Any, ...]]]) -> None:
        self._build = build
        self._statements: dict[str, _Statement] = {}

    def first(self, given: str) -> list[Any] | None:
        """Return the row that is found with ``given`` as the parameter: one statement."""
        connection = connections[alias()]
        statement = self._statements.get(connection.alias)
        if (
            statement is None
            or statement.settings is not get_settings()
            or statement.offset != offset(connection)
        ):
            statement = self._statements[connection.alias] = self._write(connection)
        return statement.first(connection, given)

    def _write(self, connection: BaseDatabaseWrapper) -> _Statement:
        compiler = self._build().query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        converters = compiler.get_converters(column for column, *_ in compiler.select)
        return _Statement(
            sql,
            tuple(parameters),
            [(index, *each) for index, each in converters.items()],
            get_settings(),
            offset(connection),
        )
