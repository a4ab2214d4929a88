"""Tokens in the admin: issue, look, revoke. Nothing of a token is edited afterwards."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import flatten
from django.contrib.admin.widgets import AdminTextInputWidget
from django.contrib.auth import get_user_model
from django.db.models import ForeignKey, QuerySet
from django.db.models.constants import LOOKUP_SEP
from django.forms import ModelChoiceField
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from ...admin.display import Tone, badge, relative, two_lines
from ...admin.ending import EndingAdmin, log
from ...clock import DatabaseNow
from .admin_filters import ScopeFilter, ServerFilter, TokenStateFilter
from .choices import known_scopes
from .forms import IssueForm
from .models import State, Token

TONES = {State.ACTIVE: Tone.GOOD, State.EXPIRED: Tone.WARNING, State.REVOKED: Tone.OFF}


@admin.register(Token)
class TokenAdmin(EndingAdmin):
    """Issues, shows, revokes and, once they have ended, deletes tokens."""

    form = IssueForm
    # What one looks for comes first: a narrow screen shows no more than that.
    list_display = ("label", "badge", "remaining", "user", "opened_servers", "limits", "activity")
    list_filter = (
        TokenStateFilter,
        ScopeFilter,
        "read_only",
        ServerFilter,
        ("last_used", admin.EmptyFieldListFilter),
        "created",
        "expires",
    )
    list_select_related = ("user",)
    raw_id_fields = ("user",)  # without links to add or change a user; see _choice_of_user()
    actions = ("revoke", "delete_selected")
    end_verb = "revoke"
    end_label = _("Revoke")

    class Media:
        css = {"all": ("django_mcp/admin.css",)}

    # Columns

    @admin.display(description=_("token"), ordering="name")
    def label(self, token: Token) -> SafeString:
        """Show what to recognise it by."""
        prefix = format_html("<code>{}</code>", token.prefix)
        return two_lines(token.name, prefix) if token.name else prefix

    @admin.display(description=_("state"), ordering="state")
    def badge(self, token: Token) -> SafeString:
        """Show the state."""
        state = State(token.state)
        return badge(state.label, TONES[state])

    @admin.display(description=_("expires"), ordering="expires")
    def remaining(self, token: Any) -> SafeString | str:
        """Show when it stops working by itself, of which a revoked one has no more need."""
        return "-" if token.revoked else self.expiry(token)

    @admin.display(description=_("servers"))
    def opened_servers(self, token: Token) -> str:
        """Name the servers."""
        names = token.server_names
        return gettext("none") if names is None else ", ".join(names) or gettext("all")

    @admin.display(description=_("scopes"))
    def limits(self, token: Token) -> SafeString:
        """Name the scopes, and say if it only reads."""
        return two_lines(self.granted(token), gettext("for reading only") * token.read_only)

    @admin.display(description=_("last used"), ordering="last_used")
    def activity(self, token: Any) -> SafeString:
        """Show when it was used last, and since when it exists."""
        return two_lines(self.used(token), format_html(gettext("created {}"), self.age(token)))

    # What only the page of a token has

    @admin.display(description=_("expires"))
    def expiry(self, token: Any) -> SafeString | str:
        """Show until when it is meant to work."""
        return relative(token.expires, now=token.now) if token.expires else gettext("never")

    @admin.display(description=_("scopes"))
    def granted(self, token: Token) -> str:
        """Name the scopes."""
        scopes = token.granted_scopes
        return gettext("not limited") if scopes is None else ", ".join(sorted(scopes)) or "none"

    @admin.display(description=_("last used"))
    def used(self, token: Any) -> SafeString | str:
        """Show when it was used last."""
        return relative(token.last_used, now=token.now) if token.last_used else gettext("never")

    @admin.display(description=_("created"))
    def age(self, token: Any) -> SafeString:
        """Show since when it exists."""
        return relative(token.created, now=token.now)

    @admin.display(description=_("revoked"))
    def revocation(self, token: Any) -> SafeString:
        """Show when it was revoked."""
        return relative(token.revoked, now=token.now)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Token]:
        """Let the database say the state of each token, and the time."""
        return Token.objects.with_state().annotate(now=DatabaseNow())

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Search users by what they log in with, whatever their model calls it."""
        return ("name", "prefix", f"user__{get_user_model().USERNAME_FIELD}")

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Refuse the digest, which could be guessed letter by letter."""
        asks_for_digest = "digest" in lookup.split(LOOKUP_SEP)
        return not asks_for_digest and super().lookup_allowed(lookup, value, request)

    # Permissions

    def has_change_permission(self, request: HttpRequest, obj: Token | None = None) -> bool:
        """Allow the action, for which no object is given, and no form, for which one is."""
        return obj is None and super().has_change_permission(request)

    # The user

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField[Any] | None:
        """Let the user be searched, where the admin can, or be named."""
        if db_field.name == "user":
            kwargs |= self._choice_of_user(request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_autocomplete_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Search users where this person may, and their admin can."""
        users = get_user_model()
        if not (_may_act_as_others(request) and self.admin_site.is_registered(users)):
            return ()
        their_admin = self.admin_site.get_model_admin(users)
        may_search = their_admin.has_view_permission(request)
        return ("user",) if may_search and their_admin.get_search_fields(request) else ()

    def _choice_of_user(self, request: HttpRequest) -> dict[str, Any]:
        """Let only superusers issue tokens of others, since whoever does can act as them."""
        users = get_user_model()
        if not _may_act_as_others(request):
            only_oneself = users._default_manager.filter(pk=_operator(request).pk)
            return {"queryset": only_oneself, "widget": forms.Select, "empty_label": None}
        if self.get_autocomplete_fields(request):
            return {}
        return {
            "to_field_name": users.USERNAME_FIELD,
            "widget": AdminTextInputWidget,
            "help_text": _("The name with which the user logs in."),
            "error_messages": {"invalid_choice": _("Nobody logs in with this name.")},
        }

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Offer a token for oneself."""
        return {"user": _operator(request), **super().get_changeform_initial_data(request)}

    # Pages

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Offer one button: whichever it is, the secret comes next."""
        buttons = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().add_view(request, form_url, buttons | (extra_context or {}))

    def get_fields(self, request: HttpRequest, obj: Token | None = None) -> tuple[Any, ...]:
        """Ask for little, show everything but the digest."""
        if obj is None:
            scopes = ("scopes",) if known_scopes() else ()
            return ("user", "name", "servers", *scopes, "read_only", "expires")
        limits = (("user", "opened_servers"), ("granted", "read_only"))
        times = (("expiry", "revocation"), ("age", "used"))
        return (("badge", "prefix"), "name", *limits, *times)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Token | None = None
    ) -> tuple[str, ...]:
        """Make what is shown of a token read-only."""
        return () if obj is None else tuple(flatten(self.get_fields(request, obj)))

    @sensitive_variables("secret")
    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Issue the token, and keep its secret until the response."""
        secret = obj.seal()
        super().save_model(request, obj, form, change)
        obj.secret = secret

    @sensitive_variables("context")
    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the secret, in this response alone.

        A message to be shown after a redirect would leave it in a cookie or in a session.
        """
        context = {
            **self.admin_site.each_context(request),
            "title": _("Token issued"),
            "opts": self.opts,
            "media": self.media,
            "original": obj,
            "secret": obj.secret,
            "has_view_permission": self.has_view_permission(request),
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/django_mcp_tokens/issued.html", context)

    # Revoking

    def can_be_ended(self, row: Token) -> bool:
        """Offer to revoke what works."""
        return row.state == State.ACTIVE

    @admin.action(description=_("Revoke selected tokens"), permissions=["end"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Token]) -> None:
        """Revoke those that are not revoked."""
        self.end_rows(request, list(queryset.values_list("pk", flat=True)))

    def end_rows(self, request: HttpRequest, keys: list[Any]) -> None:
        """Revoke in one statement those that are not revoked, and note it in their history."""
        chosen = Token.objects.filter(pk__in=keys)
        noted = list(chosen.filter(revoked__isnull=True))
        count = chosen.revoke()
        log(request, noted, "Revoked.")
        if not count:
            messages.warning(request, _("No token was revoked: there was none left to revoke."))
            return
        sentence = ngettext("%d token was revoked.", "%d tokens were revoked.", count)
        messages.success(request, sentence % count)

    # Deleting

    def has_delete_selected_permission(self, request: HttpRequest) -> bool:
        """Offer the action below where the admin site offers its own."""
        offered = [name for name, _action in self.admin_site.actions]
        return "delete_selected" in offered and self.has_delete_permission(request)

    @admin.action(
        description=_("Delete selected %(verbose_name_plural)s"), permissions=["delete_selected"]
    )
    def delete_selected(
        self, request: HttpRequest, queryset: QuerySet[Token]
    ) -> HttpResponse | None:
        """Let the site's action delete those that have ended, and say that others are left."""
        ended = [token.pk for token in queryset if token.state != State.ACTIVE]
        if active := len(queryset) - len(ended):
            sentence = ngettext(
                "%d active token is not deleted: revoke it first.",
                "%d active tokens are not deleted: revoke them first.",
                active,
            )
            messages.warning(request, sentence % active)
        if not ended:
            return None
        delete: Any = self.admin_site.get_action("delete_selected")
        response: HttpResponse | None = delete(self, request, queryset.filter(pk__in=ended))
        return response

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[Any, Any], set[Any], list[Any]]:
        """Protect the tokens that are active.

        A missing permission would do so too, but would also forbid to delete users who have any.
        """
        listed, counts, missing, protected = super().get_deleted_objects(objs, request)
        protected += [
            _("%(token)s, which has to be revoked first") % {"token": token}
            for token in objs
            if token.state == State.ACTIVE
        ]
        return listed, counts, missing, protected


def _operator(request: HttpRequest) -> Any:
    """Return the member of staff, of whatever user model; the admin lets nobody else in."""
    return request.user


def _may_act_as_others(request: HttpRequest) -> bool:
    return bool(getattr(_operator(request), "is_superuser", False))
