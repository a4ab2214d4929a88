"""``find`` and ``get`` of an admin: what its changelist and its page of a row show."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, Literal

from django.contrib.admin import ModelAdmin
from django.db.models import QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.http import Http404

from ...server.context import Context
from ...server.errors import ToolError
from ...server.fields.field_types import Schema, type_of
from ..fields.databases import first
from ..fields.row_fields import RowFields
from ..finding.keyset import Order
from ..finding.lookups import search_argument
from ..finding.pages import RESERVED, WantedPage, page_arguments, page_schema
from ..tool_functions import REQUIRED, Arguments
from .admin_options import AdminOptions, asked, names_on_page
from .admin_order import order_of, sortable, turned
from .admin_requests import described, describing_request, on_page
from .inline_rows import InlineRows
from .list_filters import ListFilters

PAGE_SIZE: Final = 20
LINKS_FOLLOWED: Final = 3
"""Of links from row to row that are followed where an admin wants all."""


class AdminReading:
    """How rows of an admin are found and shown.

    Names of fields, filters and columns may be others for each caller. ``describe`` has those of
    who may do all, for schemas; each call has its own.
    """

    def __init__(self, options: AdminOptions, server_name: str) -> None:
        self.options = options
        self._admin: ModelAdmin[Any] = options.admin
        self._server_name = server_name
        self._filters = ListFilters(options.admin, options.shown, RESERVED)
        self.inlines = InlineRows(options)
        self._described = describing_request()

    @property
    def lookup(self) -> str:
        """The name of the primary key, which is an argument."""
        return self.options.shown.key

    @property
    def fields(self) -> RowFields:
        """What ``get`` shows, to those who may see all."""
        request, options = self._described, self.options
        row = options.model()
        admin = options.described_admin
        return options.shown.of(described(lambda: names_on_page(admin, request, row), []))

    @property
    def find_arguments(self) -> Arguments:
        """What ``find`` takes."""
        request = self._described
        arguments: Arguments = {}
        if described(lambda: self._can_search(request), False):
            arguments["search"] = search_argument(self._admin.search_help_text)
        arguments |= self._filters.described(request)
        by = described(lambda: tuple(self._orders(request)), ())
        if by:
            arguments["ordering"] = (Literal[by] | None, None)
        return arguments | page_arguments(self.options)

    @property
    def find_schema(self) -> Schema:
        """What ``find`` returns. Items say by their names what they have: models pay for more."""
        return page_schema(self.options)

    @property
    def get_arguments(self) -> Arguments:
        """What ``get`` takes."""
        pk: Any = self.options.model._meta.pk
        while pk.is_relation:
            pk = pk.target_field
        kind = type_of(pk)
        assert kind is not None
        return {self.lookup: (kind.argument, REQUIRED)}

    @property
    def get_schema(self) -> Schema:
        """What ``get`` returns."""
        row = self.fields.schema
        inlines = described(lambda: self.inlines.schemas(self._described), {})
        return {**row, "properties": {**inlines, **row["properties"]}}

    def find(self, ctx: Context, given: dict[str, Any]) -> dict[str, Any]:
        """Return a page of the rows that the arguments want, as the changelist has them."""
        of = [self._server_name, self.options.label, self._admin.opts.label]
        page = WantedPage.taken_from(given, PAGE_SIZE, of)
        admin, request = self._admin, on_page(asked(ctx), self._admin, "changelist")
        filters = {name: value for name, value in given.items() if name not in RESERVED}
        rows = self._filters.apply(admin.get_queryset(request), filters, request)
        order = self._order(rows, request, given.get("ordering"))
        rows = self._search(rows, request, given.get("search"))
        columns = self.options.shown.of(admin.get_list_display(request))
        return page.of(
            self._loading(rows, request, columns),
            order,
            columns,
            ctx=ctx,
            options=self.options,
            may_see=partial(self.may_see, ctx),
        )

    def get(self, ctx: Context, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return one row, with its inlines."""
        return self.show(ctx, self.row(ctx, given[self.lookup]))

    def row(self, ctx: Context, key: Any) -> Any:
        """Return the row of a key; what the caller may not see does not exist."""
        request = on_page(asked(ctx), self._admin, "change", str(key))
        row = self._admin.get_object(request, str(key))
        if row is None or not self.may_see(ctx, row):
            raise Http404(f"No {self.options.model.__name__} matches the given query.")
        return row

    def written(self, ctx: Context, key: Any, alias: str) -> Any:
        """Return the row of a primary key in a database; nothing where the caller sees none."""
        row = first(self.options.get_queryset(ctx).using(alias).filter(pk=key))
        return row if row is not None and self.may_see(ctx, row) else None

    def show(self, ctx: Context, row: Any) -> dict[str, Any]:
        """Return what is shown of one row."""
        request = asked(ctx)
        fields = self.options.shown.of(names_on_page(self._admin, request, row))
        fields.load([row])
        return self.inlines.of(request, row) | fields.of(row)

    def may_see(self, ctx: Context, row: Any) -> bool:
        """Return whether a row is not hidden from the caller by permissions of its own."""
        return not self.options.hides_rows or self.options.may(ctx, "view", row)

    def _orders(self, request: Any) -> dict[str, Any]:
        """Return the orders that a caller may want, each with what it is by."""
        admin = self._admin
        columns = admin.get_list_display(request)
        may = admin.get_sortable_by(request)
        wanted = [each for each in columns if each in may]
        found = sortable(admin, wanted, self.options.shown)
        return found | {f"-{name}": turned(by) for name, by in found.items()}

    def _order(self, rows: QuerySet[Any], request: Any, wanted: str | None) -> Order:
        if wanted is None:
            # As the changelist: the admin's, or the model's, and what the queryset has.
            names = self._admin.get_ordering(request) or rows.model._meta.ordering or ()
            return order_of(rows, [*names, *rows.query.order_by])
        orders = self._orders(request)
        if wanted not in orders:
            raise ToolError(f"ordering: {wanted!r} is none of {', '.join(orders)}.")
        return order_of(rows, [orders[wanted]])

    def _can_search(self, request: Any) -> bool:
        own = type(self._admin).get_search_results is not ModelAdmin.get_search_results
        return own or bool(self._searched(request))

    def _searched(self, request: Any) -> list[str]:
        shown = self.options.shown
        names = [str(each) for each in self._admin.get_search_fields(request)]
        return [name for name in names if not shown.is_secret(name.lstrip("^=@"))]

    def _search(self, rows: QuerySet[Any], request: Any, words: str | None) -> QuerySet[Any]:
        if not words:
            return rows
        if not self._can_search(request):
            raise ToolError("search: there is nothing to search in.")
        # What is secret could be found out by its first letters.
        admin: Any = copy.copy(self._admin)
        admin.get_search_fields = lambda _: self._searched(request)
        found: QuerySet[Any] = admin.get_search_results(request, rows, words)[0]
        return found

    def _loading(self, rows: QuerySet[Any], request: Any, columns: RowFields) -> QuerySet[Any]:
        """Return ``rows`` with what is shown of others, as ``list_select_related`` wants, too."""
        wanted: Any = self._admin.get_list_select_related(request)
        if rows.query.select_related:
            wanted = rows.query.select_related is True
        names = list(links_of(rows.model)) if wanted is True else wanted
        loaded = columns.loading(rows)
        return loaded.select_related(*names) if names else loaded


def links_of(model: Any, depth: int = LINKS_FOLLOWED) -> Iterator[str]:
    """Yield what ``select_related()`` stands for: all that leads to one row that must be there.

    It takes no further names, which columns may need that are null.
    """
    for field in model._meta.concrete_fields:
        if field.is_relation and not field.null and field.related_model:
            yield field.name
            if depth > 1:
                inner = links_of(field.related_model, depth - 1)
                yield from (f"{field.name}{LOOKUP_SEP}{name}" for name in inner)
