"""Tokens in the admin: issue, look, revoke. Nothing of a token is edited afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_user_model
from django.db.models import ForeignKey, Q, QuerySet
from django.forms import ModelChoiceField
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_variables

from .models import State, Token

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Token]
    ModelForm = forms.ModelForm[Token]
else:
    ModelAdmin = admin.ModelAdmin
    ModelForm = forms.ModelForm


class IssueForm(ModelForm):
    """What is asked for when a token is issued."""

    servers = forms.CharField(
        label=_("Servers"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Names of the servers that the token opens, one a line. None means all."),
    )

    class Meta:
        model = Token
        fields = ("user", "name", "servers", "expires")

    def clean_servers(self) -> list[str]:
        """Return the names, without empty lines."""
        lines = self.cleaned_data["servers"].splitlines()
        return [line.strip() for line in lines if line.strip()]


class StateFilter(admin.SimpleListFilter):
    """Filters by the state, which is computed rather than stored."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Offer every state."""
        return list(State.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Token]) -> QuerySet[Token]:
        """Keep the tokens in the chosen state."""
        return queryset.filter(Q(state=self.value())) if self.value() else queryset


@admin.register(Token)
class TokenAdmin(ModelAdmin):
    """Issues, shows, revokes and, once revoked, deletes tokens."""

    form = IssueForm
    list_display = (
        "user",
        "name",
        "prefix",
        "opened_servers",
        "created",
        "last_used",
        "expires",
        "current_state",
    )
    list_display_links = ("user", "prefix")
    list_filter = (StateFilter, ("last_used", admin.EmptyFieldListFilter), "created", "expires")
    list_select_related = ("user",)
    raw_id_fields = ("user",)  # works for any user model, also one that is not in the admin
    actions = ("revoke",)

    @admin.display(description=_("servers"))
    def opened_servers(self, token: Token) -> str:
        """Name the servers."""
        return ", ".join(token.servers) or str(_("all"))

    @admin.display(description=_("state"), ordering="state")
    def current_state(self, token: Token) -> str:
        """Name the state."""
        return str(State(token.state).label)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Token]:
        """Let the database say the state of each token."""
        return Token.objects.with_state()

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Search users by what they log in with, whatever their model calls it."""
        return ("name", "prefix", f"user__{get_user_model().USERNAME_FIELD}")

    # Permissions

    def has_change_permission(self, request: HttpRequest, obj: Token | None = None) -> bool:
        """Allow the action, for which no object is given, and no form, for which one is."""
        return obj is None and super().has_change_permission(request)

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField[Any] | None:
        """Let only superusers issue tokens of others, since whoever does can act as them."""
        if db_field.name == "user" and not getattr(_operator(request), "is_superuser", False):
            kwargs["queryset"] = get_user_model()._default_manager.filter(pk=_operator(request).pk)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[Any, Any], set[Any], list[Any]]:
        """Protect the tokens that are not revoked.

        A missing permission would do so too, but would also forbid to delete users who have any.
        """
        listed, counts, missing, protected = super().get_deleted_objects(objs, request)
        protected += [
            _("%(token)s, which has to be revoked first") % {"token": token}
            for token in objs
            if token.revoked is None
        ]
        return listed, counts, missing, protected

    # Pages

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Offer a token for oneself."""
        return {"user": _operator(request).pk, **super().get_changeform_initial_data(request)}

    def get_fields(self, request: HttpRequest, obj: Token | None = None) -> tuple[str, ...]:
        """Ask for little, show everything but the digest."""
        if obj is None:
            return ("user", "name", "servers", "expires")
        return (*self.list_display, "revoked")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Token | None = None
    ) -> tuple[str, ...]:
        """Make what is shown of a token read-only."""
        return () if obj is None else self.get_fields(request, obj)

    @sensitive_variables("secret")
    def save_model(self, request: HttpRequest, obj: Token, form: Any, change: bool) -> None:
        """Issue the token and show its secret, this once."""
        secret = obj.seal()
        super().save_model(request, obj, form, change)
        sentence = _("Copy the secret now, it is not shown again: {}")
        messages.warning(
            request, format_html(str(sentence), format_html("<code>{}</code>", secret))
        )

    @admin.action(description=_("Revoke selected tokens"), permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Token]) -> None:
        """Revoke in one statement those that are not revoked, and note it in the history."""
        live = list(queryset.filter(revoked__isnull=True))
        count = Token.objects.filter(pk__in=[token.pk for token in live]).revoke()
        LogEntry.objects.log_actions(_operator(request).pk, live, CHANGE, "Revoked.")
        sentence = ngettext("%d token was revoked.", "%d tokens were revoked.", count)
        messages.success(request, sentence % count)


def _operator(request: HttpRequest) -> Any:
    """Return the member of staff, of whatever user model; the admin lets nobody else in."""
    return request.user
