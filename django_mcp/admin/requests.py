"""Requests, in flight and ended: a list of all, to cancel them, and those of a session's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..clock import DatabaseNow
from ..models import PendingRequest, Session
from ..store.database import alias
from ..store.inbox import cancel_calls
from .changelist import LISTED
from .display import Tone, badge, lasting, principal, relative, short_id, two_lines
from .ending import EndingAdmin, log
from .filters import DirectionFilter, RequestStateFilter, ServerFilter
from .readonly import ReadOnlyAdmin

if TYPE_CHECKING:
    TabularInline = admin.TabularInline[PendingRequest, Session]
    InlineFormSet = BaseInlineFormSet[PendingRequest, Session, Any]
else:
    TabularInline = admin.TabularInline
    InlineFormSet = BaseInlineFormSet

SHOWN = 20
"""Requests on the page of their session, the newest."""

TONES = {
    PendingRequest.State.RUNNING: Tone.GOOD,
    PendingRequest.State.ANSWERED: Tone.OFF,
    PendingRequest.State.FAILED: Tone.BAD,
    PendingRequest.State.CANCELLED: Tone.WARNING,
    PendingRequest.State.TIMED_OUT: Tone.WARNING,
}


class Columns:
    """The columns that the list and the inline share."""

    @admin.display(description=_("state"))
    def badge(self, row: Any) -> SafeString:
        """Show the state; a request that is asked to stop runs until it does, or its process."""
        state = PendingRequest.State(row.state)
        if state is PendingRequest.State.RUNNING and row.lease_until and row.lease_until < row.now:
            return badge(_("process lost"), Tone.BAD)
        if row.cancel_requested and state is PendingRequest.State.RUNNING:
            return badge(_("cancel requested"), Tone.WARNING)
        return badge(state.label, TONES[state])

    @admin.display(description=_("started"))
    def started(self, row: Any) -> SafeString:
        """Show when it came in."""
        return relative(row.created, now=row.now)

    @admin.display(description=_("took"))
    def took(self, row: Any) -> str:
        """Show how long it took, or has been running."""
        end = row.now if row.state == PendingRequest.State.RUNNING else row.ended
        return lasting(row.created, end)

    @admin.display(description=_("lease until"))
    def lease(self, row: Any) -> SafeString:
        """Show until when its process is known to live."""
        return relative(row.lease_until, now=row.now)

    @admin.display(description=_("deadline"))
    def due(self, row: Any) -> SafeString:
        """Show when it will be given up."""
        return relative(row.deadline, now=row.now)


@admin.register(PendingRequest)
class PendingRequestAdmin(Columns, EndingAdmin, ReadOnlyAdmin):
    """Shows requests and cancels them."""

    list_display = (
        "what",
        "badge",
        "session_link",
        "belongs_to",
        "timing",
        "took",
    )
    list_select_related = ("user",)
    list_filter = (RequestStateFilter, DirectionFilter, ServerFilter)
    newest_by = "id"
    ordering = ("-id",)
    sortable_by = ("timing",)
    search_fields = ("session", "user", "name")
    search_help_text = _(
        "Session id or user name; or part of a user's name, or the beginning of that of a tool, "
        "prompt or resource (among the newest 10,000 requests)."
    )
    session_field = "session"
    actions = ("cancel_selected",)
    end_verb = "cancel"
    end_label = _("Cancel request")
    fieldsets = (
        (None, {"fields": ("badge", ("method", "name"), ("direction", "request_id"))}),
        (_("Principal"), {"fields": (("session", "server"), ("user", "client_id"))}),
        (_("Progress"), {"fields": (("started", "took", "due"), ("owner", "lease"), "cancelling")}),
    )

    @admin.display(description=_("request"))
    def what(self, row: PendingRequest) -> SafeString:
        """Show what is asked, and of whom."""
        return two_lines(str(row), row.get_direction_display())

    @admin.display(description=_("session, server"))
    def session_link(self, row: PendingRequest) -> SafeString:
        """Lead to the session, without loading it."""
        if row.session_id is None:
            return two_lines("-", row.server)
        url = reverse(
            "admin:django_mcp_session_change",
            args=[row.session_id],
            current_app=self.admin_site.name,
        )
        link = format_html('<a href="{}">{}</a>', url, short_id(row.session_id))
        return two_lines(link, row.server)

    @admin.display(description=_("started"), ordering="id")
    def timing(self, row: Any) -> SafeString:
        """Show when it came in, and when it will be given up."""
        waits = row.deadline and row.state == PendingRequest.State.RUNNING
        due = format_html(gettext("due {}"), self.due(row)) if waits else ""
        return two_lines(self.started(row), due)

    @admin.display(description=_("cancel requested"))
    def cancelling(self, row: PendingRequest) -> str:
        """Say it in words: the admin's icon for "no" would look like something that failed."""
        return gettext("Yes") if row.cancel_requested else gettext("No")

    @admin.display(description=_("principal"))
    def belongs_to(self, row: PendingRequest) -> SafeString:
        """Show whose it is."""
        return principal(row)

    # Cancelling

    def can_be_ended(self, row: PendingRequest) -> bool:
        """Offer to cancel a call that nobody has cancelled yet."""
        is_call = row.direction == PendingRequest.Direction.FROM_CLIENT
        is_running = row.state == PendingRequest.State.RUNNING
        return is_call and is_running and not row.cancel_requested

    @admin.action(description=_("Cancel selected requests"), permissions=["end"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[PendingRequest]) -> None:
        """Cancel those that can be seen on the pages of the list, and no more."""
        self.end_rows(request, list(queryset.values_list("pk", flat=True)[:LISTED]))

    def end_rows(self, request: HttpRequest, keys: list[Any]) -> None:
        """Cancel calls in flight, and note it in their history."""
        chosen = PendingRequest.objects.using(alias()).filter(pk__in=keys)
        noted = [row for row in chosen if self.can_be_ended(row)]
        count = cancel_calls(chosen)
        log(request, noted, "Cancelled.")
        if not count:
            messages.warning(request, _("No request was cancelled: none was in flight."))
            return
        sentence = ngettext("%d request is told to end.", "%d requests are told to end.", count)
        messages.success(request, sentence % count)


class NewestFormSet(InlineFormSet):
    """The newest requests of a session, however many it has."""

    def get_queryset(self) -> QuerySet[PendingRequest]:
        """Return them, always the same so that they are read once."""
        if not hasattr(self, "_queryset"):
            self._queryset = super().get_queryset()[:SHOWN]
        return self._queryset


class PendingRequestInline(Columns, TabularInline):
    """The requests on the page of their session."""

    model = PendingRequest
    formset = NewestFormSet
    template = "admin/django_mcp/requests_inline.html"
    fields = ("badge", "direction", "started", "took", "due", "lease")
    readonly_fields = fields
    ordering = ("-id",)
    verbose_name_plural = _("newest pending requests")
    show_change_link = True
    can_delete = False
    extra = 0

    def get_queryset(self, request: HttpRequest) -> QuerySet[PendingRequest]:
        """Read where the protocol writes, and let the database tell each row the time."""
        return super().get_queryset(request).using(alias()).annotate(now=DatabaseNow())

    def has_add_permission(self, request: HttpRequest, obj: Session | None = None) -> bool:
        """Refuse: rows come from clients."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: rows move by compare-and-set alone."""
        return False
