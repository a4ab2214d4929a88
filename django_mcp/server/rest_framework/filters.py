"""What the filters and the paginator of a list take.

REST framework's own say so; a ``FilterSet`` of django-filter has a form that does.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final

from django import forms

from ..api_requests import parameter

_TYPES: Final = (
    (forms.NullBooleanField, {"type": "boolean"}),
    (forms.BooleanField, {"type": "boolean"}),
    (forms.IntegerField, {"type": "number"}),
    (forms.DecimalField, {"type": "number"}),
    (forms.DateTimeField, {"type": "string", "format": "date-time"}),
    (forms.DateField, {"type": "string", "format": "date"}),
    (forms.TimeField, {"type": "string", "format": "time"}),
    (forms.UUIDField, {"type": "string", "format": "uuid"}),
)
_MAX_CHOICES: Final = 50


def filter_parameters(view: Any) -> Iterator[inspect.Parameter]:
    """Yield a parameter for each thing that a list can be asked for."""
    described = []
    for backend in getattr(view, "filter_backends", ()):
        described += _described(backend(), view)
    paginator = getattr(view, "paginator", None)
    described += _described(paginator, view) if paginator is not None else []
    for each in described:
        name = each["name"]
        if not name.isidentifier():
            continue
        schema = {**each.get("schema", {"type": "string"})}
        if text := each.get("description"):
            schema["description"] = str(text)
        yield parameter(name, schema, required=bool(each.get("required")))


def orders(view: Any) -> dict[str, tuple[str, ...]]:
    """Return by what a list may be put in order, by the argument that says so.

    REST framework leaves out what it does not know, and answers in another order than was asked
    for. Where the view says nothing its serializer does.
    """
    found = {}
    for backend in getattr(view, "filter_backends", ()):
        if not hasattr(backend, "get_valid_fields"):
            continue
        queryset = getattr(view, "queryset", None)
        try:
            valid = backend().get_valid_fields(queryset, view, {"request": None})
        except Exception:  # of the site's: it depends on the request, and is not known before
            continue
        found[backend.ordering_param] = tuple(name for name, _ in valid)
    return found


def _described(part: Any, view: Any) -> list[dict[str, Any]]:
    describe = getattr(part, "get_schema_operation_parameters", None)
    found = list(describe(view)) if describe is not None else list(_of_filter_set(part, view))
    known = orders(view)
    for each in found:
        if names := known.get(each["name"]):
            each["description"] = (
                f"Several are separated by commas, and a hyphen turns the order: {', '.join(names)}"
            )
    return found


def _of_filter_set(backend: Any, view: Any) -> Iterator[dict[str, Any]]:
    # django-filter itself describes nothing from 25.1 on.
    make = getattr(backend, "get_filterset_class", None)
    filter_set = make(view, getattr(view, "queryset", None)) if make is not None else None
    for name, each in getattr(filter_set, "base_filters", {}).items():
        for argument, field in _inputs(name, each.field):
            described = {"name": argument, "schema": _schema(field), "required": field.required}
            yield {**described, "description": each.extra.get("help_text") or ""}


def _inputs(name: str, field: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a filter, with the form's field of each: a range has two."""
    suffixes = getattr(field.widget, "suffixes", None)
    inner = getattr(field, "fields", None)
    if not suffixes or not inner:
        yield name, field
        return
    for suffix, each in zip(suffixes, inner, strict=True):
        yield f"{name}_{suffix}" if suffix else name, each


def _schema(field: Any) -> dict[str, Any]:
    is_many = isinstance(field, (forms.MultipleChoiceField, forms.ModelMultipleChoiceField))
    schema: dict[str, Any] = {"type": "string"}
    if hasattr(field, "base_field_class"):
        return schema  # several values with commas between them
    if isinstance(field, forms.ChoiceField) and not hasattr(field, "queryset"):
        choices: Any = field.choices
        values = [str(value) for value, _ in choices if value not in ("", None)]
        if values and len(values) <= _MAX_CHOICES:
            schema["enum"] = values
    else:
        schema = next((each for kind, each in _TYPES if isinstance(field, kind)), schema)
    return {"type": "array", "items": schema} if is_many else schema
