"""The order of an admin's rows: of its ``ordering``, or of a column that can be sorted by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.core.exceptions import FieldError
from django.db.models import F, Model, OrderBy, QuerySet
from django.db.models.constants import LOOKUP_SEP

from ...server.fields.field_types import type_of
from ..fields.row_fields import RowField
from ..finding.keyset import Key, Order
from .shown_fields import ShownFields

ORDERS_FOLLOWED: Final = 4
"""Of models that are each in the order of another."""
ALIAS: Final = "_mcp_ordered"


def order_of(rows: QuerySet[Any], names: Iterable[Any]) -> Order:
    """Return the order in which an admin wants rows, as far as a page can begin within it.

    Each name is a field's, as in ``ordering``, or an expression. What cannot be compared, such as a
    long text or ``"?"``, is passed over.
    """
    keys = [
        key
        for name in names
        for given in _expanded(rows.model, name, ORDERS_FOLLOWED)
        if (key := _key(rows, given)) is not None
    ]
    return Order(keys, rows.model)


def sortable(admin: Any, columns: Sequence[Any], shown: ShownFields) -> dict[str, Any]:
    """Return by what each column sorts rows: the name of a field, or an expression."""
    found: dict[str, Any] = {}
    for column in columns:
        name = shown.name_of(column)
        by = name if shown.is_column(name) else _order_field(admin, column)
        if by is None or shown.is_secret(name):
            continue
        if isinstance(by, str) and shown.is_secret(by.removeprefix("-")):
            continue
        found[name] = by
    return found


def turned(by: Any) -> Any:
    """Return the opposite of an order."""
    if isinstance(by, str):
        return by.removeprefix("-") if by.startswith("-") else f"-{by}"
    if isinstance(by, OrderBy):
        other = by.copy()
        other.reverse_ordering()
        return other
    return by.desc()


def _order_field(admin: Any, column: Any) -> Any:
    if callable(column):
        found = column
    else:
        found = getattr(admin, column, None) or getattr(admin.model, column, None)
    found = found.fget if isinstance(found, property) else found
    return getattr(found, "admin_order_field", None)


def _expanded(model: type[Model], name: Any, depth: int) -> Iterable[Any]:
    """Yield what a name stands for: a link stands for the order of the rows to which it leads."""
    if not isinstance(name, str):
        yield name
        return
    if name == "?" or not depth:
        return
    sign, path = ("-", name[1:]) if name.startswith("-") else ("", name.removeprefix("+"))
    field = _last_field(model, path)
    link = getattr(field, "related_model", None)
    last = path.split(LOOKUP_SEP)[-1]
    ordering = link._meta.ordering if isinstance(link, type) and issubclass(link, Model) else ()
    if not ordering or last in (getattr(field, "attname", None), "pk"):
        yield sign + path
        return
    for each in ordering:
        if isinstance(each, str):
            inner = f"{path}{LOOKUP_SEP}{each.removeprefix('-')}"
            descends = each.startswith("-") != bool(sign)
            yield from _expanded(model, f"{'-' if descends else ''}{inner}", depth - 1)


def _key(rows: QuerySet[Any], given: Any) -> Key | None:
    descending = False
    if isinstance(given, str):
        descending, given = given.startswith("-"), F(given.removeprefix("-"))
    elif isinstance(given, OrderBy):
        descending, given = given.descending, given.expression
    try:
        found = rows.annotate(**{ALIAS: given}).query.annotations[ALIAS]
        output = found.output_field
    except (FieldError, TypeError, AttributeError):
        return None
    while output.is_relation:
        output = output.target_field
    kind = type_of(output)
    if kind is None or kind.value is None or not kind.is_ordered:
        return None
    path: str = getattr(given, "name", "") if isinstance(given, F) else ""
    nullable = not path or _is_nullable(rows.model, path)
    field = RowField(
        name=path or ALIAS,
        schema={},
        get=lambda row: None,
        model_field=output,
        kind=kind,
        path=path,
        is_nullable=nullable,
    )
    return Key(field, descending, expression=given)


def _is_nullable(model: type[Model], path: str) -> bool:
    found: Any = model
    for part in path.split(LOOKUP_SEP):
        field = _last_field(found, part) if found is not None else None
        if field is None or not field.concrete or field.null:
            return True
        found = field.related_model
    return False


def _last_field(model: Any, path: str) -> Any:
    """Return the field at the end of a path; ``None`` for what is none, as an annotation is."""
    field = None
    for part in path.split(LOOKUP_SEP):
        if model is None:
            return None
        opts = model._meta
        names = {each.name: each for each in opts.get_fields()}
        names |= {each.attname: each for each in opts.concrete_fields}
        field = opts.pk if part == "pk" else names.get(part)
        model = getattr(field, "related_model", None)
    return field
