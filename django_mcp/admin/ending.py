"""The button on a row's page that ends what the row stands for: a session, a call, a token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import quote, unquote
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class EndingAdmin(ModelAdmin):
    """Ends rows from their pages, for whoever may change them; nobody can change them otherwise.

    ``end_verb`` is the last part of the button's address, and of the name of that address;
    ``end_label`` is what the button says.
    """

    end_verb: str
    end_label: str | Promise

    def can_be_ended(self, row: Any) -> bool:
        """Tell whether the row's page has the button, and not yet the one that deletes."""
        raise NotImplementedError

    def end_rows(self, request: HttpRequest, keys: list[Any]) -> None:
        """End the rows with these keys, and tell the user what came of it."""
        raise NotImplementedError

    def has_end_permission(self, request: HttpRequest) -> bool:
        """Ask for the permission to change, also where there is no form for changes."""
        codename = get_permission_codename("change", self.opts)
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")

    def get_urls(self) -> list[URLPattern]:
        """Add the address of the button."""
        view = self.admin_site.admin_view(self.end_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_{self.end_verb}"
        return [path(f"<path:object_id>/{self.end_verb}/", view, name=name), *super().get_urls()]

    def end_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """End one row, and lead back to its page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_end_permission(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        self.end_rows(request, [row.pk])
        return redirect(self._url("change", row))

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Offer the button to those who may press it, while there is something to end."""
        if obj is not None and self.can_be_ended(obj):
            context["show_delete"] = False
            if self.has_end_permission(request):
                context["end_url"] = self._url(self.end_verb, obj)
                context["end_label"] = self.end_label
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _url(self, page: str, row: Any) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=[quote(row.pk)], current_app=self.admin_site.name)


def log(request: HttpRequest, rows: Sequence[Any], what: str) -> None:
    """Note in the history of rows what a member of staff has done."""
    # Of whatever user model; the admin lets nobody else in.
    operator: Any = request.user
    LogEntry.objects.log_actions(operator.pk, rows, CHANGE, what)
