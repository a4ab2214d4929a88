"""Rows of inlines, as a call gives them, and the formsets of the admin that save them.

A call names rows by their keys, to change or delete them, and gives others without a key, which are
added. A formset gets all rows that there are, as the page would send them: so what it checks of all
rows together holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from django.core.exceptions import ValidationError
from django.forms import Widget
from django.forms.formsets import DELETION_FIELD_NAME
from django.forms.models import InlineForeignKeyField
from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from ...server.fields.bound_forms import keep_initial
from ...server.fields.field_types import type_of
from ...server.fields.form_arguments import argument_of, form_value, take_plain_values
from ..changing.chosen_rows import MAX_ROWS
from ..changing.form_reads import choose_where_written, lists_of
from ..fields.databases import where_written
from ..tool_functions import Arguments
from .inline_rows import InlineRows, parent_name

DELETE: Final = "delete"
"""What of a row says that it is to be deleted."""
ROW: Final = ConfigDict(extra="forbid", json_schema_extra=lambda schema: schema.pop("title", None))
"""The name of a list says enough of its rows."""


class _NullMeansNothing:
    """Has null taken for what is not sent, as some clients send it, and tells nobody."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Any:
        return handler(core["schema"])


_UNSAID: Final = _NullMeansNothing()


class InlineWriting:
    """How rows of inlines are added, changed and deleted, with the row to which they belong."""

    def __init__(self, inlines: InlineRows, admin: Any) -> None:
        self._inlines = inlines
        self._admin = admin

    def arguments(self, request: Any, row: Any) -> Arguments:
        """Return the lists that a call may give, with what a row of each may have."""
        found: Arguments = {}
        for name, inline, formset_class in self._inlines.having(request, row):
            fields = formset_class.form.base_fields
            key = inline.model._meta.pk.name
            beside = (key, DELETE, parent_name(formset_class))
            kinds = {
                each: argument_of(field, each)
                for each, field in fields.items()
                if each not in beside and self._inlines.is_writable(inline, each, field)
            }
            if not kinds:
                continue
            kinds[key] = _key_type(inline.model)
            if formset_class.can_delete:
                kinds[DELETE] = bool
            kind: Any = with_config(ROW)(_row_type(name, kinds))
            rows = Annotated[list[kind], Field(max_length=MAX_ROWS)]
            found[name] = (rows | None, None)
        return found

    def formsets(self, request: Any, row: Any, given: Mapping[str, Any], *, is_new: bool) -> Any:
        """Return the valid formsets for what is given; ``ValidationError`` is by row and field.

        A new row has one for each inline, since some want rows; another, for those that are given.
        """
        formsets: list[Any] = []
        problems: dict[str, Any] = {}
        known = []
        for name, inline, formset_class in self._inlines.having(request, None if is_new else row):
            known.append(name)
            rows = given.get(name) or []
            if not rows and not is_new:
                continue
            one = _GivenRows(self._inlines, self._admin, name, inline, rows)
            formset = one.formset(request, row, formset_class, is_new=is_new)
            problems |= one.problems(formset)
            formsets.append(formset)
        for name in given:
            if name not in known:
                problems[name] = "You may not set this."
        if problems:
            raise ValidationError(problems)
        return formsets


class _GivenRows:
    """What a call gives of the rows of one inline."""

    def __init__(
        self, inlines: InlineRows, admin: Any, name: str, inline: Any, rows: Sequence[Any]
    ) -> None:
        self._inlines = inlines
        self._admin = admin
        self._name = name
        self._inline = inline
        self._key = inline.model._meta.pk.name
        self._rows = [{k: v for k, v in each.items() if v is not None} for each in rows]
        self._places: list[int | None] = []
        """For each form of the formset, which of the given rows it has."""

    def formset(self, request: Any, row: Any, formset_class: Any, *, is_new: bool) -> Any:
        """Return the formset with all rows, changed as given; raises ``ValidationError``."""
        prefix = formset_class.get_default_prefix()
        prefix = prefix if self._name == prefix.replace("-", "_") else self._name
        params = self._admin.get_formset_kwargs(request, row, self._inline, prefix)
        params = {k: v for k, v in params.items() if k not in ("data", "files", "save_as_new")}
        if "queryset" in params:
            lists = lists_of(formset_class.form, self._inline.model)
            params["queryset"] = where_written(params["queryset"], row, *lists)
        existing = [] if is_new else list(formset_class(**params).get_queryset())
        self._check(request, None if is_new else row, existing)
        by_key = {each.get(self._key): place for place, each in enumerate(self._rows)}
        self._places = [by_key.get(each.pk) for each in existing]
        self._places += [n for n, each in enumerate(self._rows) if self._key not in each]
        rows = [{} if place is None else self._rows[place] for place in self._places]
        data: dict[str, Any] = {
            f"{prefix}-TOTAL_FORMS": len(rows),
            f"{prefix}-INITIAL_FORMS": len(existing),
        }
        for index, each in enumerate(existing):
            data[f"{prefix}-{index}-{self._key}"] = each.pk
        for index, values in enumerate(rows):
            if values.get(DELETE):
                data[f"{prefix}-{index}-{DELETION_FIELD_NAME}"] = True
        formset = formset_class(**params, data=data, files={})
        for index, (form, values) in enumerate(zip(formset.forms, rows, strict=True)):
            choose_where_written(form, row)
            self._fill(form, values, data, is_new=index >= len(existing))
        return formset

    def problems(self, formset: Any) -> dict[str, Any]:
        """Return what is wrong, by what a caller would call the row and its field."""
        if formset.is_valid():
            return self._unchanged(formset)
        found: dict[str, Any] = {}
        for form, place in zip(formset.forms, self._places, strict=True):
            where = f"[{place}]" if place is not None else f"[{self._key}={form.instance.pk}]"
            for name, errors in form.errors.items():
                at = "" if name == "__all__" else f".{name}"
                found[f"{self._name}{where}{at}"] = list(errors)
        if formset.non_form_errors():
            found[self._name] = list(formset.non_form_errors())
        return found

    def _unchanged(self, formset: Any) -> dict[str, Any]:
        # What a formset takes for an empty line of its page, it would leave out.
        return {
            f"{self._name}[{place}]": "This has nothing that a new row would not have anyway."
            for form, place in zip(formset.forms, self._places, strict=True)
            if place is not None and form.instance._state.adding and not form.has_changed()
        }

    def _check(self, request: Any, row: Any, existing: Sequence[Any]) -> None:
        """Refuse what the caller may not do with a row, instead of leaving it undone."""
        inline = self._inline
        may = {
            "change": inline.has_change_permission(request, row),
            "delete": inline.has_delete_permission(request, row),
            "add": inline.has_add_permission(request, row),
        }
        keys = {each.pk for each in existing}
        problems = {}
        seen = set()
        for index, values in enumerate(self._rows):
            where, key = f"{self._name}[{index}]", values.get(self._key)
            if key is not None and key not in keys:
                problems[where] = f"There is no row {key} here."
                continue
            if key in seen:
                problems[where] = f"The row {key} is named twice."
                continue
            if key is not None:
                seen.add(key)
            wanted = "add" if self._key not in values else "change"
            wanted = "delete" if values.get(DELETE) else wanted
            if not may[wanted] or (wanted == "delete" and self._key not in values):
                problems[where] = f"You may not {wanted} this."
        if problems:
            raise ValidationError(problems)

    def _fill(
        self, form: Any, values: Mapping[str, Any], data: dict[str, Any], *, is_new: bool
    ) -> None:
        take_plain_values(form)
        beside = (self._key, DELETION_FIELD_NAME)
        for name, value in values.items():
            if name in (self._key, DELETE):
                continue
            field = form.fields.get(name)
            if field is None or not self._inlines.is_writable(self._inline, name, field):
                raise ValidationError({f"{self._name}.{name}": "You may not set this."})
            data[form.add_prefix(name)] = form_value(field, value)
            field.widget = Widget()
        for name, field in form.fields.items():
            # What a page would send hidden, a call does not send; the formset sets the parent.
            if name in values or name in beside or isinstance(field, InlineForeignKeyField):
                continue
            if not is_new or form.get_initial_for_field(field, name) is not None:
                keep_initial(field)
        if is_new:
            form.empty_permitted = False


def _row_type(name: str, kinds: dict[str, Any]) -> Any:
    make: Any = TypedDict  # of names that are worked out; pydantic takes no other before 3.12
    kinds = {each: Annotated[kind | None, _UNSAID] for each, kind in kinds.items()}
    return make(name, kinds, total=False)


def _key_type(model: Any) -> Any:
    pk = model._meta.pk
    while pk.is_relation:
        pk = pk.target_field
    kind = type_of(pk)
    return str if kind is None or kind.value is None else kind.value
