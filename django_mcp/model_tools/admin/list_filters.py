"""What ``list_filter`` lets rows be found by, as arguments, and nothing beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from django.contrib.admin import filters
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import get_fields_from_path
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Field, QuerySet

from ...server.errors import ToolError
from ...server.fields.field_types import MAX_CHOICES, TEXT, type_of
from ..tool_functions import Arguments
from .admin_requests import described
from .shown_fields import ShownFields

PLAIN: Final = (
    filters.RelatedFieldListFilter,
    filters.RelatedOnlyFieldListFilter,
    filters.BooleanFieldListFilter,
    filters.ChoicesFieldListFilter,
    filters.DateFieldListFilter,
    filters.AllValuesFieldListFilter,
)
"""Filters of the admin's own that do no more than look up the values of a field."""


@dataclass(frozen=True, slots=True)
class FieldFilter:
    """A filter by a field: its arguments are lookups."""

    arguments: Arguments
    lookups: Mapping[str, str]

    def apply(self, rows: QuerySet[Any], given: Mapping[str, Any], request: Any) -> QuerySet[Any]:
        """Return those of ``rows`` that the arguments want."""
        wanted = {lookup: given[name] for name, lookup in self.lookups.items() if name in given}
        return rows.filter(**wanted) if wanted else rows


@dataclass(frozen=True, slots=True)
class SiteFilter:
    """A filter of the site's own, which is asked for each search, as the changelist does."""

    arguments: Arguments
    make: Any
    """Returns the filter for a request and the parameters of a query, which it takes out."""

    def apply(self, rows: QuerySet[Any], given: Mapping[str, Any], request: Any) -> QuerySet[Any]:
        """Return those of ``rows`` that the filter lets through, with what is given or without."""
        values = {
            name: [_as_parameter(value)] for name, value in given.items() if name in self.arguments
        }
        found = self.make(request, dict(values))
        if isinstance(found, filters.SimpleListFilter):
            _check_value(found, values)
        if not found.has_output() and not values:
            return rows
        try:
            narrowed = found.queryset(request, rows)
        except IncorrectLookupParameters as error:
            names = ", ".join(values)
            raise ToolError(f"{names}: no value that this filter takes.") from error
        return rows if narrowed is None else narrowed


AdminFilter = FieldFilter | SiteFilter


class ListFilters:
    """The filters of an admin: those that there may be, and those that a caller has."""

    def __init__(self, admin: Any, shown: ShownFields, reserved: Sequence[str]) -> None:
        self._admin = admin
        self._shown = shown
        self._reserved = reserved

    def described(self, request: Any) -> Arguments:
        """Return the arguments for all that there may be, without asking the database."""
        given = described(lambda: self._admin.get_list_filter(request), self._admin.list_filter)
        found: Arguments = {}
        for each in given:
            made = described(partial(self._filter, each, request, describing=True), None)
            found |= {} if made is None else made.arguments
        return found

    def apply(self, rows: QuerySet[Any], given: Mapping[str, Any], request: Any) -> QuerySet[Any]:
        """Return those of ``rows`` that are wanted; raises :class:`ToolError` for other names."""
        made = (self._filter(each, request) for each in self._admin.get_list_filter(request))
        having = [each for each in made if each is not None]
        known = [name for each in having for name in each.arguments]
        for name in given:
            if name not in known:
                may = ", ".join(known) or "nothing"
                raise ToolError(f"{name}: you cannot filter by this; you can by {may}.")
        for each in having:
            rows = each.apply(rows, given, request)
        return rows

    def _filter(self, given: Any, request: Any, *, describing: bool = False) -> AdminFilter | None:
        if isinstance(given, type) and issubclass(given, filters.ListFilter):

            def make(asked: Any, values: Any) -> Any:
                return given(asked, values, self._admin.model, self._admin)

            name = getattr(given, "parameter_name", None)
            if name is None:
                return SiteFilter(_parameters(make(request, {})), make)
            choice = described(lambda: _choice(make(request, {})), TEXT) if describing else TEXT
            return SiteFilter({str(name): (choice | None, None)}, make)
        field, kind = given if isinstance(given, (tuple, list)) else (given, None)
        path = field.name if isinstance(field, Field) else field
        if self._shown.is_secret(path):
            return None
        field = get_fields_from_path(self._admin.model, path)[-1]
        kind = kind or _kind_for(field)
        if kind in PLAIN:
            return self._field_filter(field, path, kind)

        def make_of_field(asked: Any, values: Any) -> Any:
            return kind(field, asked, values, self._admin.model, self._admin, field_path=path)

        return SiteFilter(_parameters(make_of_field(request, {})), make_of_field)

    def _field_filter(self, field: Any, path: str, kind: Any) -> AdminFilter | None:
        target = field
        while target.is_relation:
            target = target.target_field if hasattr(target, "target_field") else target.field
        type_ = type_of(target if field.is_relation else field)
        if type_ is None or type_.value is None:
            return None
        arguments: Arguments = {}
        lookups: dict[str, str] = {}

        def take(name: str, lookup: str, annotation: Any) -> None:
            name = f"{path}__exact" if name in self._reserved else name
            arguments[name], lookups[name] = (annotation | None, None), lookup

        if kind is filters.DateFieldListFilter:
            take(f"{path}__gte", f"{path}__gte", type_.value)
            take(f"{path}__lt", f"{path}__lt", type_.value)
        else:
            take(path, f"{path}__exact", type_.argument)
        if (field.is_relation and field.many_to_many) or getattr(field, "null", False):
            take(f"{path}__isnull", f"{path}__isnull", bool)
        return FieldFilter(arguments, lookups)


def _kind_for(field: Any) -> Any:
    """Return the class of the filter that the admin would make for a field."""
    known = filters.FieldListFilter._field_list_filters  # type: ignore[attr-defined]
    for test, kind in known:
        if test(field):
            return kind
    raise ImproperlyConfigured(f"The admin has no filter for {field}.")


def _parameters(found: Any) -> Arguments:
    """Return the arguments of a filter of which nothing is known but the names in a query."""
    if isinstance(found, filters.EmptyFieldListFilter):
        return {found.lookup_kwarg: (bool | None, None)}
    return {name: (TEXT | None, None) for name in found.expected_parameters() if name}


def _choice(found: Any) -> Any:
    values = tuple(str(value) for value, _ in found.lookup_choices)
    return Literal[values] if values and len(values) <= MAX_CHOICES else TEXT


def _check_value(found: Any, values: Mapping[str, Any]) -> None:
    name = found.parameter_name
    if name not in values:
        return
    known = [str(value) for value, _ in found.lookup_choices]
    (value,) = values[name]
    if value not in known:
        raise ToolError(f"{name}: {value!r} is none of {', '.join(known[:MAX_CHOICES])}.")


def _as_parameter(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
