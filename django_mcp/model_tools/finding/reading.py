"""``find_tickets`` and ``get_ticket``: pages of rows, and one row."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from django.http import Http404

from ...server.context import Context
from ...server.errors import RegistrationError
from ...server.fields.field_types import Schema
from ...server.registry import MCPServer
from ..fields.databases import first
from ..fields.related_rows import RelatedRows
from ..fields.row_fields import RowFields
from ..options import ModelOptions
from ..tool_functions import REQUIRED, Arguments
from .keyset import Order, orders_of
from .lookups import LookupFilters, Search
from .pages import RESERVED, WantedPage, page_arguments, page_schema


class Reading:
    """What a model's tools show, and how rows are found: worked out once, at registration."""

    def __init__(self, options: ModelOptions, server: MCPServer) -> None:
        self.options = options
        self._server = server
        self.fields = _fields_of(options)
        self.listed = self.fields
        if options.list_fields is not None:
            self.listed = self.fields.subset(options.list_fields, "list_fields")
        self.lookup = _lookup_of(options, self.fields, self.listed)
        self.related = RelatedRows(options)
        self._search = Search(options.search_fields, self.fields, options.search_help_text)
        self._filters = _filters_of(options, self.fields)
        self._orders = _orders_of(options, self.fields)
        self._default_order = Order(_default_keys(options, self.fields), options.model)

    @property
    def find_arguments(self) -> Arguments:
        """What ``find`` takes."""
        arguments: Arguments = {**self._search.arguments, **self._filters.arguments}
        if self._orders:
            arguments["ordering"] = (Literal[tuple(self._orders)] | None, None)
        return arguments | page_arguments(self.options)

    @property
    def find_schema(self) -> Schema:
        """What ``find`` returns. What an item has is in the schema of ``get``, not twice."""
        return page_schema(self.options)

    @property
    def get_arguments(self) -> Arguments:
        """What ``get`` takes."""
        kind = self.fields.named(self.lookup, "lookup_field").kind
        assert kind is not None
        return {self.lookup: (kind.argument, REQUIRED)}

    @property
    def get_schema(self) -> Schema:
        """What ``get`` returns."""
        row = self.fields.schema
        return {**row, "properties": {**row["properties"], **self.related.schemas}}

    def find(self, ctx: Context, given: dict[str, Any]) -> dict[str, Any]:
        """Return a page of the rows that the arguments want."""
        options = self.options
        of = [self._server.name, options.model._meta.label, options.plural_name]
        page = WantedPage.taken_from(given, options.page_size, of)
        filters = {name: value for name, value in given.items() if name not in RESERVED}
        rows = self._filters.filter(options.get_queryset(ctx), filters, ctx)
        rows = self._search.filter(rows, given.get("search"))
        order = self._orders.get(given.get("ordering", ""), self._default_order)
        return page.of(
            self.listed.loading(rows),
            order,
            self.listed,
            ctx=ctx,
            options=options,
            may_see=partial(self.may_see, ctx),
        )

    def get(self, ctx: Context, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return one row, with what belongs to it."""
        return self.show(ctx, self.row(ctx, given[self.lookup]))

    def row(self, ctx: Context, key: Any) -> Any:
        """Return the row of a key; what the caller may not see does not exist."""
        rows = self.fields.loading(self.options.get_queryset(ctx))
        # Not get(): joins of the site's may have the same row several times.
        row = first(rows.filter(**{self.fields.named(self.lookup, "").path: key}))
        if row is None or not self.may_see(ctx, row):
            raise Http404(f"No {self.options.model.__name__} matches the given query.")
        return row

    def written(self, ctx: Context, key: Any, alias: str) -> Any:
        """Return the row of a primary key in a database; nothing where the caller sees none."""
        rows = self.fields.loading(self.options.get_queryset(ctx).using(alias))
        row = first(rows.filter(pk=key))
        return row if row is not None and self.may_see(ctx, row) else None

    def show(self, ctx: Context, row: Any) -> dict[str, Any]:
        """Return what is shown of one row."""
        shown = self.fields.of(row)
        return shown | self.related.of(ctx, row, shown)

    def may_see(self, ctx: Context, row: Any) -> bool:
        """Return whether a row is not hidden from the caller by permissions of its own."""
        options = self.options
        return not options.hides_rows or options.may(ctx, "view", row)


def _fields_of(options: ModelOptions) -> RowFields:
    return RowFields(
        options.model,
        options.fields,
        options.label,
        method_of=options.row_method,
        allowed=options.allow_secret,
    )


def _lookup_of(options: ModelOptions, fields: RowFields, listed: RowFields) -> str:
    """Return the name, among the fields, of what names a row."""
    wanted = options.lookup_field
    pk = options.model._meta.pk
    names = ("pk", pk.name, pk.attname) if wanted == "pk" else (wanted,)
    found = next((name for name in names if name in fields and name in listed), None)
    if found is None:
        raise RegistrationError(
            f"{options.label}: fields (and list_fields) need {names[-1]!r}, by which a row is "
            "asked for; or set lookup_field to another field that is unique."
        )
    field = fields.named(found, "lookup_field")
    is_unique = field.model_field is not None and field.model_field.unique
    if not is_unique or field.kind is None or field.kind.value is None or field.related:
        raise RegistrationError(
            f"{options.label}: lookup_field = {found!r} is no field of its own with unique values."
        )
    return found


def _filters_of(options: ModelOptions, fields: RowFields) -> Any:
    if isinstance(options.filters, type):
        if "django_filters" not in sys.modules:
            raise RegistrationError(
                f"{options.label}: filters takes names, lookups by name, or a FilterSet of "
                f"django-filter, not {options.filters.__name__}."
            )
        from .filter_sets import FilterSetFilters  # noqa: PLC0415

        return FilterSetFilters(options.filters, fields, RESERVED)
    return LookupFilters(options.filters, fields, RESERVED)


def _orders_of(options: ModelOptions, fields: RowFields) -> dict[str, Order]:
    names = [name.removeprefix("-") for name in options.ordering_fields]
    return {
        f"{sign}{name}": Order(
            orders_of([f"{sign}{name}"], fields, "ordering_fields"), options.model
        )
        for name in names
        for sign in ("", "-")
    }


def _default_keys(options: ModelOptions, fields: RowFields) -> Any:
    if options.ordering is not None:
        return orders_of(options.ordering, fields, "ordering")
    try:
        return orders_of([*map(str, options.model._meta.ordering or ())], fields, "Meta.ordering")
    except (RegistrationError, AttributeError):
        # By what is not shown, or by an expression: then in the order in which rows came.
        return ()
