"""What the pages of sessions and of requests have in common: they show, they do not edit."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, NoReturn

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse

from ..clock import DatabaseNow
from ..store.database import alias
from .changelist import BoundedChangeList, BoundedPaginator

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin

SEARCHED = 10_000
"""Rows, the newest, among which a name is looked for that no index has."""


class ReadOnlyAdmin(ModelAdmin):
    """Lists rows, the newest first, and shows each on a page.

    ``newest_by`` is the indexed field that orders them.
    """

    newest_by: str

    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # each facet is a count
    paginator = BoundedPaginator
    session_field = "pk"
    name_field = "name"

    class Media:
        css = {"all": ("django_mcp/admin.css",)}

    # Rows

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Read where the protocol writes, and let the database tell each row the time."""
        rows = super().get_queryset(request).using(alias())
        timed: QuerySet[Any] = rows.annotate(now=DatabaseNow())
        return timed

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[BoundedChangeList]:
        """Return the list that stays fast."""
        return BoundedChangeList

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Allow the filters alone: other look-ups scan, or guess a digest letter by letter."""
        return lookup in {each.parameter_name for each in self.list_filter}  # type: ignore[union-attr]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find by a session's key or a user's whole name, which have indexes, or else by parts."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if key := _uuid(term):
            return queryset.filter(**{self.session_field: key}), False
        if user := _user_key(term):
            return queryset.filter(user=user), False
        named = Q(**{f"{self.name_field}__istartswith": term})
        users = Q(**{f"user__{get_user_model().USERNAME_FIELD}__icontains": term})
        return self._newest(request, queryset).filter(named | users), False

    def _newest(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        field = self.newest_by
        newest = self.get_queryset(request).order_by(f"-{field}").values_list(field, flat=True)
        edge = newest[SEARCHED : SEARCHED + 1].first()
        return queryset if edge is None else queryset.filter(**{f"{field}__gt": edge})

    # Permissions

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: rows come from clients."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: rows move by compare-and-set alone."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse, except that whoever may delete rows can delete a user who has some."""
        return obj is not None and super().has_delete_permission(request, obj)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: Django's cascade fails while clients write."""
        raise PermissionDenied

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a row, without the link that would delete it."""
        context = {"show_delete": False, **(extra_context or {})}
        return super().change_view(request, object_id, form_url, context)


def _uuid(term: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(term)
    except ValueError:
        return None


def _user_key(term: str) -> Any:
    users = get_user_model()
    try:
        named = users._default_manager.filter(**{users.USERNAME_FIELD: term})
    except ValueError:  # the name is a number, the term is not
        return None
    return named.values_list("pk", flat=True).first()
