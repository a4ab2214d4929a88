"""One page of rows, of which some may be hidden from whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from django.db.models import QuerySet
from pydantic import Field

from ...server.context import Context
from ...server.errors import ToolError
from ...server.fields.field_types import Schema
from ..fields.row_fields import RowFields
from ..options import ModelOptions
from ..tool_functions import Arguments
from .keyset import Order
from .row_queries import noticing_queries

RESERVED: Final = ("search", "ordering", "limit", "next", "count")
"""The arguments of a search that are no filters."""
MAX_PAGE: Final = 50
"""Rows of a page at most."""
MAX_LOOKED_AT: Final = 1_000
"""Rows that are looked at for one page, where each may be hidden."""

Place = Sequence[Any]
"""The values of a row by which the rows are in order."""


@dataclass(frozen=True, slots=True)
class WantedPage:
    """Which page of what it searches for a caller wants."""

    limit: int
    cursor: str | None
    counts: bool
    """Whether all that are found are to be counted."""
    purpose: Mapping[str, Any]
    """The search, for which alone its cursors are good."""

    @classmethod
    def taken_from(cls, given: dict[str, Any], size: int, of: Sequence[str]) -> Self:
        """Take out of the arguments of a search what is about pages.

        ``size`` is a page's where the caller says none. ``of`` tells the tool from others.
        """
        limit, cursor = given.pop("limit", size), given.pop("next", None)
        counts = given.pop("count", False)
        return cls(limit, cursor, counts, {**given, "": of})

    def of(
        self,
        rows: QuerySet[Any],
        order: Order,
        shown: RowFields,
        *,
        ctx: Context,
        options: ModelOptions,
        may_see: Callable[[Any], bool],
    ) -> dict[str, Any]:
        """Return what ``find`` answers with these rows, of which ``shown`` is loaded."""
        place = None if self.cursor is None else order.read(self.cursor, ctx, self.purpose)
        page, following = page_of(rows, order, place, self.limit, may_see)
        with noticing_queries(options.label, rows.db, len(page)):
            found: dict[str, Any] = {"items": [shown.of(row) for row in page]}
        if following is not None:
            found["next"] = order.write(following, ctx, self.purpose)
        if self.counts and not options.hides_rows:
            found["count"] = rows.order_by().values("pk").distinct().count()
        return found


def page_arguments(options: ModelOptions) -> Arguments:
    """Return what says which page of rows is wanted."""
    arguments: Arguments = {
        "limit": (Annotated[int, Field(ge=1, le=MAX_PAGE)] | None, None),
        "next": (str | None, None),
    }
    if not options.hides_rows:
        arguments["count"] = (bool | None, None)
    return arguments


def page_schema(options: ModelOptions) -> Schema:
    """Return the schema of a page. What an item has, ``get`` says, and names of its own do."""
    properties: Schema = {
        "items": {"type": "array", "items": {"type": "object"}},
        "next": {"type": "string"},
    }
    if not options.hides_rows:
        properties["count"] = {"type": "integer"}
    return {"type": "object", "properties": properties, "required": ["items"]}


def page_of(
    rows: QuerySet[Any],
    order: Order,
    place: Place | None,
    limit: int,
    may_see: Callable[[Any], bool],
) -> tuple[list[Any], Place | None]:
    """Return rows after a place, and the place of the last of them if there are more.

    Raises :class:`ToolError` where too many are hidden.
    """
    return order.cut(_visible(rows, order, place, limit + 1, may_see), limit)


def _visible(
    rows: QuerySet[Any],
    order: Order,
    place: Place | None,
    size: int,
    may_see: Callable[[Any], bool],
) -> Iterator[Any]:
    """Yield the rows after a place that are not hidden, with one query for each ``size``."""
    rows = order.sort(rows)
    for _ in range(0, MAX_LOOKED_AT, size):
        batch = list((rows if place is None else order.after(rows, place))[:size])
        yield from (row for row in batch if may_see(row))
        if len(batch) < size:
            return
        place = order.place_of(batch[-1])
    # A page that is empty, and not the last, would tell of rows that are hidden.
    raise ToolError("Too many rows would have to be looked at. Narrow the search.")
