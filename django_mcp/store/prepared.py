"""Queries that the ORM writes once, and that run as plain SQL from then on.

Building a queryset and compiling it takes several times as long as the query itself, when that
finds a few rows by their keys.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from ..clock import offset
from ..conf import Settings, get_settings
from .database import alias

SIZES: Final = (1, 4, 16)
"""For how many values there are statements; fewer are filled up."""
MOST: Final = SIZES[-1]
PARAMETERS: Final = tuple(f"\0parameter {number}" for number in range(MOST))
"""Stand in a queryset for the values that each run gives."""


@dataclass(frozen=True, slots=True)
class _CompiledQuery:
    """What the compiler has made of a queryset."""

    sql: str
    parameters: tuple[Any, ...]
    places: Sequence[tuple[int, int]]
    """Which of the parameters stands for which of the values."""
    converters: Sequence[tuple[int, Sequence[Callable[..., Any]], Any]]
    settings: Settings
    offset: int

    def run(self, connection: BaseDatabaseWrapper, given: Sequence[Any]) -> list[list[Any]]:
        parameters = list(self.parameters)
        for place, number in self.places:
            parameters[place] = given[min(number, len(given) - 1)]
        with connection.cursor() as cursor:
            cursor.execute(self.sql, parameters)
            rows = [list(row) for row in cursor.fetchall()]
        for index, converters, expression in self.converters:
            for convert in converters:
                for row in rows:
                    row[index] = convert(row[index], expression, connection)
        return rows


class PreparedQuery:
    """A query for the rows with some values in one column.

    ``build`` gets those of :data:`PARAMETERS` that stand for them, and returns it as
    ``values_list()``. It may depend on the settings of the package, on the database's alias, and on
    nothing else.
    """

    def __init__(self, build: Callable[[Sequence[str]], QuerySet[Any, tuple[Any, ...]]]) -> None:
        self._build = build
        self._statements: dict[tuple[str, int], _CompiledQuery] = {}

    def run(self, given: Sequence[str]) -> list[list[Any]]:
        """Return the rows of up to :data:`MOST` values, of one at least: one statement."""
        connection = connections[alias()]
        size = SIZES[bisect_left(SIZES, len(given))]
        statement = self._statements.get((connection.alias, size))
        if (
            statement is None
            or statement.settings is not get_settings()
            or statement.offset != offset(connection)
        ):
            statement = self._write(connection, size)
            self._statements[connection.alias, size] = statement
        return statement.run(connection, given)

    def _write(self, connection: BaseDatabaseWrapper, size: int) -> _CompiledQuery:
        compiler = self._build(PARAMETERS[:size]).query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        converters = compiler.get_converters(column for column, *_ in compiler.select)
        numbers = {name: number for number, name in enumerate(PARAMETERS)}
        return _CompiledQuery(
            sql,
            tuple(parameters),
            [(at, numbers[each]) for at, each in enumerate(parameters) if each in PARAMETERS],
            [(index, *each) for index, each in converters.items()],
            get_settings(),
            offset(connection),
        )
