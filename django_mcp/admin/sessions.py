"""Sessions: look at them, and end them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..models import Session
from ..store.database import alias
from ..store.parent_rows import LIVE
from ..store.sessions.liveness import live_sessions
from ..store.sessions.session_rows import end_sessions
from .changelist import LISTED
from .display import Tone, badge, pretty, principal, relative, short_id, two_lines
from .ending import EndingAdmin, log
from .filters import ActiveFilter, RevisionFilter, ServerFilter, SessionStateFilter
from .readonly import ReadOnlyAdmin
from .requests import PendingRequestInline

TONES = {
    Session.State.OPENED: Tone.NEW,
    Session.State.READY: Tone.GOOD,
    Session.State.ENDED: Tone.OFF,
}
UNREAD = ("key_digest", "client_info", "client_capabilities")
"""What no list reads. The page of one session fetches what the client said."""


@admin.register(Session)
class SessionAdmin(EndingAdmin, ReadOnlyAdmin):
    """Shows sessions and ends them."""

    list_display = (
        "public_id",
        "badge",
        "belongs_to",
        "client",
        "request_count",
        "activity",
    )
    list_select_related = ("user",)
    list_filter = (SessionStateFilter, ActiveFilter, RevisionFilter, ServerFilter)
    newest_by = "created"
    ordering = ("-created",)
    sortable_by = ("activity",)
    search_fields = ("id", "user", "client_name")
    search_help_text = _(
        "Session id or user name; or part of a user's name, or the beginning of a client's (among "
        "the 10,000 newest sessions)."
    )
    name_field = "client_name"
    actions = ("end_selected",)
    end_verb = "end"
    end_label = _("End session")
    inlines = (PendingRequestInline,)
    fieldsets = (
        (None, {"fields": (("badge", "id"), ("server", "revision", "log_level"))}),
        (_("Principal"), {"fields": (("user", "client_id"),)}),
        (_("Client"), {"fields": ("client_name", ("about", "capabilities"))}),
        (_("Activity"), {"fields": ("request_count", ("age", "used"), ("expiry", "ending"))}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        """Leave the digest and what is wide where they are; let each row say whether it lives."""
        living = live_sessions().filter(pk=OuterRef("pk"))
        sessions: QuerySet[Session] = super().get_queryset(request)
        return sessions.annotate(is_live=Exists(living)).defer(*UNREAD)

    # Columns

    @admin.display(description=_("session, server"))
    def public_id(self, session: Session) -> SafeString:
        """Show the beginning of the public key, and where the session is."""
        return two_lines(short_id(session.pk), session.server)

    @admin.display(description=_("state"))
    def badge(self, session: Any) -> SafeString:
        """Show the state; the row of an expired session does not know yet."""
        state = Session.State(session.state)
        if state in LIVE and not session.is_live:
            return badge(_("expired"), Tone.WARNING)
        return badge(state.label, TONES[state])

    @admin.display(description=_("principal"))
    def belongs_to(self, session: Session) -> SafeString:
        """Show whose it is."""
        return principal(session)

    @admin.display(description=_("client, revision"))
    def client(self, session: Session) -> SafeString:
        """Show which client it is and what it speaks."""
        return two_lines(session.client_name or _("unnamed"), session.revision)

    @admin.display(description=_("opened, last active"), ordering="created")
    def activity(self, session: Any) -> SafeString:
        """Show since when it exists, and when its client last used it."""
        used = format_html(gettext("active {}"), self.used(session))
        return two_lines(self.age(session), used)

    # What only the page of a session has

    @admin.display(description=_("opened"))
    def age(self, session: Any) -> SafeString:
        """Show since when it exists."""
        return relative(session.created, now=session.now)

    @admin.display(description=_("last active"))
    def used(self, session: Any) -> SafeString:
        """Show when its client last used it."""
        return relative(session.last_active, now=session.now)

    @admin.display(description=_("expires"))
    def expiry(self, session: Any) -> SafeString:
        """Show when it ends at the latest."""
        return relative(session.expires, now=session.now)

    @admin.display(description=_("ended"))
    def ending(self, session: Any) -> SafeString:
        """Show when it was ended."""
        return relative(session.ended, now=session.now)

    @admin.display(description=_("client info"))
    def about(self, session: Session) -> SafeString:
        """Show what the client says about itself."""
        return pretty(session.client_info)

    @admin.display(description=_("client capabilities"))
    def capabilities(self, session: Session) -> SafeString:
        """Show what the client can do."""
        return pretty(session.client_capabilities)

    # Ending

    def can_be_ended(self, row: Session) -> bool:
        """Offer to end what nobody has ended, also if it has expired."""
        return row.state in LIVE

    @admin.action(description=_("End selected sessions"), permissions=["end"])
    def end_selected(self, request: HttpRequest, queryset: QuerySet[Session]) -> None:
        """End those that can be seen on the pages of the list, and no more."""
        self.end_rows(request, list(queryset.values_list("pk", flat=True)[:LISTED]))

    def end_rows(self, request: HttpRequest, keys: list[Any]) -> None:
        """End those that are live, and note it in their history."""
        chosen = Session.objects.using(alias()).filter(pk__in=keys)
        noted = list(chosen.filter(state__in=LIVE).only("client_name"))
        count = end_sessions(chosen)
        log(request, noted, "Ended.")
        if not count:
            messages.warning(request, _("No session was ended: there was none left to end."))
            return
        sentence = ngettext("%d session was ended.", "%d sessions were ended.", count)
        messages.success(request, sentence % count)
