"""The rows of an admin's inlines, as the page of a row shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.admin.utils import flatten_fieldsets
from django.forms import Field

from ...server.errors import RegistrationError
from ...server.fields.field_types import Schema
from ...server.fields.form_arguments import argument_of
from ..fields.databases import where_written
from ..fields.row_fields import MAX_LISTED, MORE
from .admin_options import AdminOptions
from .shown_fields import ShownFields


class InlineRows:
    """What ``get`` shows of the rows of inlines: the first of each, by the inline's name."""

    def __init__(self, options: AdminOptions) -> None:
        self._options = options
        self._shown: dict[type, ShownFields] = {}

    def schemas(self, request: Any) -> dict[str, Schema]:
        """Return the schema of each list, by name."""
        row = self._options.model()
        return {
            name: {"type": "array", "items": self._fields(inline, formset, request, row).schema}
            for name, inline, formset in self.having(request, row)
        }

    def of(self, request: Any, row: Any) -> dict[str, Any]:
        """Return the lists of a row, those left out whose rows the caller may not see."""
        lists: dict[str, Any] = {}
        cut = []
        for name, inline, formset_class in self.having(request, row):
            if not inline.has_view_or_change_permission(request, row):
                continue
            rows = where_written(inline.get_queryset(request), row)
            formset = formset_class(instance=row, queryset=rows)
            fields = self._fields(inline, formset_class, request, row)
            rows = where_written(fields.loading(formset.get_queryset()), row)
            found = list(rows[: MAX_LISTED + 1])
            lists[name] = [fields.of(each) for each in found[:MAX_LISTED]]
            if len(found) > MAX_LISTED:
                cut.append(name)
        return lists | ({MORE: cut} if cut else {})

    def having(self, request: Any, row: Any) -> Iterator[tuple[str, Any, Any]]:
        """Yield the inlines that the page of a row has, each with its name and its formset."""
        known: dict[str, int] = {}
        admin = self._options.admin
        # To add a row, the admin leaves it out, as some methods of sites expect.
        about = (request,) if row is None else (request, row)
        for formset_class, inline in admin.get_formsets_with_inlines(*about):
            name = formset_class.get_default_prefix().replace("-", "_")
            known[name] = known.get(name, 0) + 1
            yield (name if known[name] == 1 else f"{name}_{known[name]}"), inline, formset_class

    def is_writable(self, inline: Any, name: str, field: Field) -> bool:
        """Return whether a field of an inline's form can be filled in."""
        return is_writable(name, field, self._shown_of(inline))

    def _shown_of(self, inline: Any) -> ShownFields:
        return self._shown.setdefault(
            type(inline), ShownFields(inline.model, inline, self._options.allowed)
        )

    def _fields(self, inline: Any, formset_class: Any, request: Any, row: Any) -> Any:
        names = flatten_fieldsets(inline.get_fieldsets(request, row))
        parent = parent_name(formset_class)
        return self._shown_of(inline).of([name for name in names if name != parent])


def parent_name(formset_class: Any) -> str:
    """Return the field by which rows of an inline belong to the row, which its page hides."""
    parent = getattr(formset_class, "fk", None)
    return "" if parent is None else parent.name


def is_writable(name: str, field: Field, shown: ShownFields) -> bool:
    """Return whether a field of an admin's form can be filled in: no secret, and no file."""
    if field.disabled or field.widget.is_hidden or shown.is_secret(name):
        return False
    try:
        argument_of(field, name)
    except RegistrationError:
        return False
    return True
