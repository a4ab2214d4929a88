"""Filters by a ``FilterSet`` of django-filter, which is imported where one is given alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import django_filters
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import Widget
from pydantic import Field

from ...server.context import Context
from ...server.errors import RegistrationError
from ...server.fields.form_arguments import argument_of, form_value
from ..fields.row_fields import RowFields
from ..tool_functions import Arguments
from .lookups import MAX_VALUES


class FilterSetFilters:
    """The filters of a ``FilterSet``, and the arguments for them."""

    def __init__(self, filter_set: Any, fields: RowFields, reserved: Sequence[str]) -> None:
        if not issubclass(filter_set, django_filters.FilterSet):
            raise RegistrationError(
                f"{fields.label}: filters takes names, lookups by name, or a FilterSet of "
                f"django-filter, not {filter_set.__name__}."
            )
        self._filter_set = filter_set
        self._fields: dict[str, Any] = {}
        self.arguments: Arguments = {}
        for name, each in filter_set.base_filters.items():
            _check_named(name, each, fields)
            for argument, field in _inputs(name, each):
                if argument in reserved:
                    raise RegistrationError(
                        f"{fields.label}: the FilterSet has a filter {argument!r}, which is an "
                        "argument of the tool already. Give it another name."
                    )
                self._fields[argument] = field
                annotation: Any = argument_of(field, f"{fields.label}: the filter {name!r}")
                if isinstance(field, django_filters.fields.BaseCSVField):
                    annotation = Annotated[list[annotation], Field(max_length=MAX_VALUES)]
                self.arguments[argument] = (annotation | None, None)

    def filter(self, rows: QuerySet[Any], given: Mapping[str, Any], ctx: Context) -> QuerySet[Any]:
        """Return those of ``rows`` that the arguments want; raises Django's ``ValidationError``."""
        data = {name: form_value(self._fields[name], value) for name, value in given.items()}
        bound = self._filter_set(data, queryset=rows, request=ctx.request)
        for name in self._fields.keys() & bound.form.fields.keys():
            # The values are typed already: nothing is to be read as a browser would send it.
            bound.form.fields[name].widget = Widget()
        if not bound.is_valid():
            raise ValidationError(bound.errors)
        filtered: QuerySet[Any] = bound.qs
        return filtered


def _check_named(name: str, each: Any, fields: RowFields) -> None:
    if isinstance(each, django_filters.OrderingFilter):
        raise RegistrationError(
            f"{fields.label}: the FilterSet puts rows in order by {name!r}. Name what they may be "
            "in order of in ordering_fields, which pages follow."
        )
    # What a method does is the site's own decision; all else finds out what the field has.
    if each.method is None:
        fields.named(each.field_name, f"the FilterSet, by its filter {name!r},")


def _inputs(name: str, each: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a filter, with the form's field of each: a range has two."""
    suffixes = getattr(each.field.widget, "suffixes", None)
    inner = getattr(each.field, "fields", None)
    if not suffixes or not inner:
        yield name, each.field
        return
    for suffix, field in zip(suffixes, inner, strict=True):
        yield f"{name}_{suffix}" if suffix else name, field
