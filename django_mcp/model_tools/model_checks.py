"""What a system check finds of tools that are made of models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.checks import CheckMessage
from django.core.checks import Warning as CheckWarning
from django.db.models import Model

from .options import ModelOptions

INDEX_HINT = (
    "Each page has the database put all rows in order. Add an index that begins with it, to the "
    "model's Meta.indexes, or leave it out of ordering_fields. If the table stays small, add "
    '"django_mcp.W050" to SILENCED_SYSTEM_CHECKS.'
)


def check_orders(options: ModelOptions) -> Iterable[CheckMessage]:
    """Yield the fields of which callers may have an order that no index has."""
    indexed = _indexed(options.model)
    for name in dict.fromkeys(each.removeprefix("-") for each in options.ordering_fields):
        if "__" in name or name not in indexed:
            message = f"{options.label}: ordering_fields has {name!r}, which has no index."
            yield CheckWarning(message, hint=INDEX_HINT, id="django_mcp.W050")


def _indexed(model: type[Model]) -> set[str]:
    opts = model._meta
    names = {"pk"}
    field: Any
    for field in opts.concrete_fields:
        if field.db_index or field.unique:
            names |= {field.name, field.attname}
    firsts = [index.fields[0] for index in opts.indexes if index.fields]
    firsts += [each.fields[0] for each in opts.total_unique_constraints if each.fields]
    firsts += [each[0] for each in opts.unique_together if each]
    return names | {first.removeprefix("-") for first in firsts}
