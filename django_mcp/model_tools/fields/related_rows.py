"""Lists of related rows that the result of a single row shows."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from ...server.context import Context
from ...server.errors import RegistrationError
from ...server.fields.field_types import Schema
from ..options import ModelOptions
from .databases import where_written
from .row_fields import MAX_LISTED, MORE, RowFields
from .secret_names import check_secrets


class RelatedRows:
    """What ``related`` names: relations to many rows, with what of each is shown."""

    def __init__(self, options: ModelOptions) -> None:
        self._options = options
        self._fields: dict[str, RowFields] = {}
        for name, names in options.related.items():
            model = _model_behind(options.model, name, options.label)
            label = f"{options.label}: related[{name!r}]"
            inner = [each.partition("__")[2] for each in options.allow_secret if "__" in each]
            check_secrets(options.label, name, [(name, None)], options.allow_secret)
            self._fields[name] = RowFields(model, names, label, allowed=inner)

    @property
    def schemas(self) -> dict[str, Schema]:
        """The schema of each list, by name."""
        return {
            name: {"type": "array", "items": fields.schema} for name, fields in self._fields.items()
        }

    def of(self, ctx: Context, row: Any, shown: dict[str, Any]) -> dict[str, Any]:
        """Return the lists of a row, those left out whose rows the caller may not see."""
        lists: dict[str, Any] = {}
        cut = list(shown.get(MORE, ()))
        for name, fields in self._fields.items():
            if not self._options.has_related_permission(ctx.user, fields.model):
                continue
            rows = where_written(getattr(row, name).all(), row)
            rows = self._options.get_related_queryset(ctx, name, rows)
            rows = rows if rows.ordered else rows.order_by("pk")
            found = list(where_written(fields.loading(rows), row)[: MAX_LISTED + 1])
            lists[name] = [fields.of(each) for each in found[:MAX_LISTED]]
            if len(found) > MAX_LISTED:
                cut.append(name)
        return lists | ({MORE: cut} if cut else {})


def _model_behind(model: type[Model], name: str, label: str) -> type[Model]:
    known: dict[str, type[Model]] = {}
    field: Any
    for field in model._meta.get_fields():
        if (field.one_to_many or field.many_to_many) and isinstance(field.related_model, type):
            is_forward = not hasattr(field, "get_accessor_name")
            known[field.name if is_forward else field.get_accessor_name()] = field.related_model
    if name in known:
        return known[name]
    raise RegistrationError(
        f"{label}: related has {name!r}, which leads to no list of rows. "
        f"{model.__name__} has {', '.join(sorted(known)) or 'none'}."
    )
