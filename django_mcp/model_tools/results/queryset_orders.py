"""The order that a queryset has, as one whose places a cursor can name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import F, Field, Model, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.db.models.expressions import OrderBy

from ...server.errors import RegistrationError
from ...server.fields.field_types import type_of
from ...server.results import unserializable
from ..fields.row_fields import RowField, RowFields
from ..finding.keyset import Key, Order


def order_of(rows: QuerySet[Any]) -> Order:
    """Return the order of a queryset, or its model's, or else that of the primary key.

    Raises :class:`Unserializable` for one by something that is no field and no annotation, or whose
    values are too long for a cursor.
    """
    names = tuple(_names(rows))
    annotated = {name.lstrip("-") for name in names} & rows.query.annotations.keys()
    if not annotated:
        model: Any = rows.model
        return _order_by_fields(model, names)
    return Order([_key(rows, name, annotated) for name in names], rows.model)


def _names(rows: QuerySet[Any]) -> Iterator[str]:
    """Yield the names by which rows are in order, with a minus where it is descending."""
    query = rows.query
    given: Any = query.order_by
    if query.extra_order_by:
        raise _refused(rows.model, "extra(order_by=...)")
    if not given and query.default_ordering:
        given = query.get_meta().ordering or ()
    for each in given:
        name = _name_of(each)
        if name is None or name == "?":
            raise _refused(rows.model, str(each))
        yield name


def _name_of(by: Any) -> str | None:
    if isinstance(by, str):
        return by.removeprefix("+")
    if isinstance(by, F):
        by = by.asc()
    is_plain = isinstance(by, OrderBy) and isinstance(by.expression, F) and not by.nulls_first
    return f"{'-' if by.descending else ''}{by.expression.name}" if is_plain else None


@lru_cache(maxsize=256)
def _order_by_fields(model: Any, names: tuple[str, ...]) -> Order:
    return Order([_key_of_field(model, name) for name in names], model)


def _key(rows: QuerySet[Any], name: str, annotated: set[str]) -> Key:
    alias = name.removeprefix("-")
    if alias not in annotated:
        return _key_of_field(rows.model, name)
    value: Any = rows.query.annotations[alias].output_field
    kind = type_of(value)
    if kind is None or not kind.is_ordered:
        raise _refused(rows.model, name)
    field = RowField(
        name=alias,
        schema={},
        get=lambda row: getattr(row, alias),
        model_field=value,
        kind=kind,
        path=alias,
        is_nullable=True,
    )
    return Key(field, name.startswith("-"))


def _key_of_field(model: type[Model], name: str) -> Key:
    path = name.removeprefix("-")
    try:
        _check_is_value(model, path)
        # What a cursor has cannot be read, so by whatever the site has in order.
        (field,) = RowFields(model, [path], "Page", allowed=[path])
    except (FieldDoesNotExist, RegistrationError):
        raise _refused(model, name) from None
    if field.kind is None or field.listed or not field.kind.is_ordered:
        raise _refused(model, name)
    return Key(field, name.startswith("-"))


def _check_is_value(model: type[Model], path: str) -> None:
    """Refuse a relation whose rows have an order of their own, which Django would go by."""
    *before, last = path.split(LOOKUP_SEP)
    for part in before:
        model = model._meta.get_field(part).related_model  # type: ignore[assignment]
    if last == "pk":
        return
    field = model._meta.get_field(last)
    is_relation = isinstance(field, Field) and field.is_relation and last != field.attname
    if is_relation and field.related_model._meta.ordering:  # type: ignore[union-attr]
        raise FieldDoesNotExist


def _refused(model: type[Model], by: str) -> Exception:
    return unserializable(
        f"a page of {model.__name__} cannot be in order of {by!r}. Order the queryset by fields "
        "that are numbers, dates or short texts, of this model or one that it refers to, or by "
        "annotations of such values"
    )
