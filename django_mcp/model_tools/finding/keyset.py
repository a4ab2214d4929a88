"""Pages by what came last: the order of rows, the place in it, and the cursor that names the place.

A place is the values that the last row has in the order, and its key. What comes after it is asked
of the database by these, so that a page costs the same wherever it is, and rows that come or go
before it move nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import connections, models
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Cast
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from ...current_partition import current_partition
from ...protocol.cursors import Cursor, unseal
from ...protocol.errors import MCPError
from ...server.context import Context
from ...server.errors import RegistrationError, ToolError
from ...server.fields.field_types import type_of
from ...server.paging import keys
from ..fields.row_fields import RowField, RowFields

SOURCE: Final = "rows"


@dataclass(frozen=True, slots=True)
class Key:
    """One of the values by which rows are in order."""

    field: RowField
    descending: bool = False
    alias: str = ""
    """The name of the value in the query."""
    expression: Any = None
    """What it is worked out by, where that is more than the field."""


class Order:
    """An order of rows in which no two have the same place; nulls come last."""

    def __init__(self, by: Sequence[Key], model: type[models.Model]) -> None:
        pk = model._meta.pk
        kind = type_of(_target(pk))
        assert kind is not None
        key = RowField(name="pk", schema={}, get=_pk, model_field=pk, kind=kind, path="pk")
        # The key decides between what is the same else. An index is read from one end to the other.
        last = Key(key, bool(by) and by[0].descending)
        self.keys = [
            replace(each, alias=f"_mcp_by_{index}") for index, each in enumerate((*by, last))
        ]
        kinds: list[Any] = [each.field.kind.value for each in self.keys if each.field.kind]
        self._kinds: list[TypeAdapter[Any]] = [TypeAdapter(kind | None) for kind in kinds]

    def sort(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Return ``rows`` in this order, each with the values that are its place."""
        vendor = connections[rows.db].vendor
        rows = rows.annotate(**{each.alias: _expression(each, vendor) for each in self.keys})
        return rows.order_by(*map(_ordered, self.keys))

    def after(self, rows: QuerySet[Any], place: Sequence[Any]) -> QuerySet[Any]:
        """Return those of ``rows``, which are sorted, that come after a place."""
        found: list[Any] = []
        same = Q()
        for key, value in zip(self.keys, place, strict=True):
            beyond = _beyond(key, value)
            if beyond is not None:
                found.append(same & beyond)
            same &= Q(**{f"{key.alias}__isnull": True} if value is None else {key.alias: value})
        return rows.filter(Q.create(found, connector=Q.OR))

    def walk(self, rows: QuerySet[Any], place: Sequence[Any] | None, size: int) -> Iterator[Any]:
        """Yield those of ``rows``, which are sorted, after a place, ``size`` with each query."""
        while True:
            batch = list((rows if place is None else self.after(rows, place))[:size])
            yield from batch
            if len(batch) < size:
                return
            place = self.place_of(batch[-1])

    def cut(self, rows: Iterable[Any], limit: int) -> tuple[list[Any], Sequence[Any] | None]:
        """Return the first ``limit`` of rows, and the place of the last if there are more.

        A join may give a row several times, which is the same row.
        """
        found: dict[Any, Any] = {}
        last = None
        for row in rows:
            if row.pk in found:
                continue
            if len(found) == limit:
                return list(found.values()), last
            found[row.pk], last = row, self.place_of(row)
        return list(found.values()), None

    def place_of(self, row: Any) -> Sequence[Any]:
        """Return the place of a row that was sorted."""
        return [getattr(row, each.alias) for each in self.keys]

    def write(self, place: Sequence[Any], ctx: Context, purpose: Mapping[str, Any]) -> str:
        """Return the cursor of a place, which says nothing of it.

        It is good for the same caller and ``purpose``, which has JSON.
        """
        text = json.dumps(to_jsonable_python(place))
        return Cursor(SOURCE, text).seal(_keys(ctx, purpose)[0])

    def read(self, cursor: str, ctx: Context, purpose: Mapping[str, Any]) -> Sequence[Any]:
        """Return the place that a cursor names; raises :class:`ToolError` if it is no such one."""
        try:
            values = json.loads(unseal(cursor, _keys(ctx, purpose)).last or "")
            return [
                value if isinstance(value, float) else kind.validate_python(value)
                for kind, value in zip(self._kinds, values, strict=True)
            ]
        except (MCPError, ValueError):
            raise ToolError(
                "`next` goes on with a search of your own that had the same arguments. Give it "
                "back as it was, with these; or leave it out, to begin anew."
            ) from None


def orders_of(names: Sequence[str], fields: RowFields, option: str) -> Sequence[Key]:
    """Return the keys of an order that an option names, as a model's ``Meta`` does."""
    found = []
    for name in names:
        field = fields.named(name.removeprefix("-"), option)
        if field.kind is None or field.listed or not field.kind.is_ordered:
            raise RegistrationError(
                f"{fields.label}: {option} has {field.name!r}, by which no rows are in order. It "
                "takes numbers, dates and short texts."
            )
        found.append(Key(field, name.startswith("-")))
    return found


def _keys(ctx: Context, purpose: Mapping[str, Any]) -> Sequence[bytes]:
    whose = [current_partition(), str(getattr(ctx.user, "pk", None))]
    told = json.dumps([whose, to_jsonable_python(purpose)], sort_keys=True)
    return keys(f"model_tools\0{told}")


def _expression(key: Key, vendor: str) -> Any:
    field = key.field.model_field
    valued = field.output_field if isinstance(field, models.GeneratedField) else field
    is_decimal = isinstance(valued, models.DecimalField)
    expression = F(key.field.path) if key.expression is None else key.expression
    if vendor == "sqlite" and is_decimal:
        # It keeps them as floats, and gives back others than it compares with.
        return Cast(expression, models.FloatField())
    return expression


def _ordered(key: Key) -> Any:
    nulls_last = key.field.is_nullable or None
    expression = F(key.alias)
    return (
        expression.desc(nulls_last=nulls_last)
        if key.descending
        else expression.asc(nulls_last=nulls_last)
    )


def _beyond(key: Key, value: Any) -> Q | None:
    """Return what comes after a value, or nothing where that is the last."""
    if value is None:
        return None
    beyond = Q(**{f"{key.alias}__{'lt' if key.descending else 'gt'}": value})
    return beyond | Q(**{f"{key.alias}__isnull": True}) if key.field.is_nullable else beyond


def _target(field: Any) -> Any:
    while field.is_relation:
        field = field.target_field
    return field


def _pk(row: Any) -> Any:
    return row.pk
