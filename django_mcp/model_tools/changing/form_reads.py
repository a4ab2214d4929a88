"""What a form reads to change a row: in the database that is written, not in one that is behind."""

from __future__ import annotations

from typing import Any

from django.db.models import ManyToManyField
from django.forms import ModelChoiceField

from ..fields.databases import is_routed, load, where_written


def lists_of(form_class: Any, model: Any) -> list[str]:
    """Return the relations to many that a form begins with, and saves as they are if not sent."""
    fields = form_class.base_fields
    return [
        each.name
        for each in model._meta.many_to_many
        if each.name in fields and isinstance(each, ManyToManyField)
    ]


def load_lists(form_class: Any, row: Any) -> None:
    """Have a row's relations to many at hand for its form, which would ask the router for them."""
    if is_routed():
        load([row], lists_of(form_class, type(row)))


def choose_where_written(form: Any, row: Any) -> Any:
    """Have a form find the rows that may be chosen where ``row`` is written, and return it."""
    if is_routed():
        for field in form.fields.values():
            if isinstance(field, ModelChoiceField) and field.queryset is not None:
                field.queryset = where_written(field.queryset, row)
    return form
