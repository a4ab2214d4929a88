"""Rows that a call names by their keys: all of them, as far as its caller may, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from django.core.exceptions import PermissionDenied
from django.db import router
from django.http import Http404
from pydantic import Field

from ...server.context import Context
from ..fields.databases import fetched
from ..finding.row_reader import RowReader
from ..options import ModelOptions
from ..tool_functions import REQUIRED, Arguments
from .row_versions import lock

MAX_ROWS: Final = 50
"""Rows that one call changes."""


class ChosenRows:
    """The rows of a model that a call names, and may do something with."""

    def __init__(self, options: ModelOptions, reading: RowReader) -> None:
        self._options = options
        self._reading = reading
        # The column, for the key of a row may lead to a row of another model.
        self._column = reading.fields.named(reading.lookup, "lookup_field").model_field.attname
        ((kind, _),) = reading.get_arguments.values()
        several: Any = Annotated[list[kind], Field(min_length=1, max_length=MAX_ROWS)]  # type: ignore[valid-type]
        self.arguments: Arguments = {"ids": (several, REQUIRED)}
        """The argument that names several rows."""

    def alias(self, ctx: Context) -> str:
        """Return the database in which rows are written."""
        chosen: str | None = getattr(self._options.get_queryset(ctx), "_db", None)
        return chosen or router.db_for_write(self._options.model)

    def queryset(self, ctx: Context, rows: Sequence[Any]) -> Any:
        """Return these rows as a queryset."""
        visible = self._options.get_queryset(ctx).using(self.alias(ctx))
        return visible.filter(pk__in=[row.pk for row in rows])

    def find(self, ctx: Context, keys: Sequence[Any], permissions: Sequence[str]) -> list[Any]:
        """Return the rows of these keys, in their order.

        Raises ``Http404`` if the caller does not see one, and ``PermissionDenied`` if he lacks one
        of ``permissions`` for it.
        """
        return self._checked(ctx, keys, permissions, self._named(ctx, keys))

    def lock(self, ctx: Context, keys: Sequence[Any], permissions: Sequence[str]) -> list[Any]:
        """Do as :meth:`find`, and keep others from changing them before the transaction ends."""
        return self._checked(ctx, keys, permissions, lock(self._named(ctx, keys)))

    def _named(self, ctx: Context, keys: Sequence[Any]) -> Any:
        rows = self._options.model._base_manager.using(self.alias(ctx))
        return rows.filter(**{f"{self._column}__in": keys})

    def _checked(
        self, ctx: Context, keys: Sequence[Any], permissions: Sequence[str], rows: Any
    ) -> list[Any]:
        named = {getattr(row, self._column): row for row in rows}
        visible = {
            row.pk: row
            for row in fetched(self.queryset(ctx, list(named.values())))
            if self._reading.may_see(ctx, row)
        }
        keys = list(dict.fromkeys(keys))
        missing = [str(key) for key in keys if key not in named or named[key].pk not in visible]
        if missing:
            which = f": {', '.join(missing)}" if len(keys) > 1 else "."
            raise Http404(f"No {self._options.model.__name__} matches the given query{which}")
        for row in visible.values():
            # The row as get_queryset() has it, perhaps with what permissions are about.
            if not all(self._options.may(ctx, each, row) for each in permissions):
                raise PermissionDenied(f"You may not do this with {row}.")
        return [named[key] for key in keys]
