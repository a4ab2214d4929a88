"""Lists whose cost does not depend on how many rows there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

if TYPE_CHECKING:
    BasePaginator = Paginator[Any]
else:
    BasePaginator = Paginator

LISTED = 1_000
"""Most rows that one can page through, and that one action reaches."""


class BoundedPaginator(BasePaginator):
    """Pages through the first ``LISTED`` rows, and knows whether there are more.

    It asks for their keys, once and in order, instead of for a count. The rows of a page are then
    found by key, so that the last page costs what the first does.
    """

    object_list: QuerySet[Any]

    @cached_property
    def keys(self) -> list[Any]:
        """The keys of the rows, and one more where there is one."""
        return list(self.object_list.values_list("pk", flat=True)[: LISTED + 1])

    @cached_property
    def count(self) -> int:
        """How many rows can be paged through."""
        return min(len(self.keys), LISTED)

    @property
    def has_more(self) -> bool:
        """Whether there are more rows than that."""
        return len(self.keys) > LISTED

    def page(self, number: int | str) -> Page[Any]:
        """Return the page with this number, from 1."""
        number = self.validate_number(number)
        end = min(number * self.per_page, self.count)
        keys = self.keys[(number - 1) * self.per_page : end]
        return Page(self.object_list.filter(pk__in=keys), number, self)


class BoundedChangeList(ChangeList):
    """Sorts by what is indexed, and takes every page from the paginator."""

    def get_results(self, request: HttpRequest) -> None:
        """Take a single page from the paginator too, which has found its rows already."""
        super().get_results(request)
        if not self.multi_page:
            self.result_list = self.paginator.page(1).object_list

    def get_ordering_field(self, field_name: Any) -> Any:
        """Return nothing for columns that are not sortable, also if the URL asks to sort them."""
        sortable = field_name in (self.sortable_by or ())
        return super().get_ordering_field(field_name) if sortable else None

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """Drop the tie-break by key, for which MariaDB would sort the whole table."""
        ordering = super().get_ordering(request, queryset)
        return [field for field in ordering if field != "-pk"]
