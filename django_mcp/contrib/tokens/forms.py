"""What is asked for when a token is issued: by a member of staff, and by its owner."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from ...conf import get_settings
from .choices import known_scopes, own_scopes, servers_with_tokens
from .models import Token

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[Token]
else:
    ModelForm = forms.ModelForm

DAYS: Final = (7, 30, 90, 365)
"""Lifetimes that are offered, as far as ``OWN_TOKEN_MAX_DAYS`` goes."""
USUAL_DAYS: Final = 90


def scope_choices() -> list[tuple[str, str]]:
    """Return the scopes that there are, as choices."""
    return _described(known_scopes())


class IssueForm(ModelForm):
    """What members of staff are asked for."""

    servers = forms.CharField(
        label=_("Servers"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Names of the servers that the token opens, one a line. None means all."),
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        required=False,
        choices=scope_choices,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("What the token is good for. None means that no scopes limit it."),
    )

    class Meta:
        model = Token
        fields = ("user", "name", "servers", "scopes", "read_only", "expires")

    def clean_servers(self) -> list[str]:
        """Return the names, without empty lines."""
        lines = self.cleaned_data["servers"].splitlines()
        return [line.strip() for line in lines if line.strip()]

    def clean_scopes(self) -> list[str] | None:
        """Return the scopes, or what stands for no limit."""
        return self.cleaned_data["scopes"] or None


class OwnTokenForm(forms.Form):
    """What people are asked for who make a token of their own."""

    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        help_text=_("What the token is for, or where it is kept."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label=_("What it may do"), widget=forms.CheckboxSelectMultiple
    )
    read_only = forms.BooleanField(
        label=_("For reading only"),
        required=False,
        help_text=_("It opens only what changes nothing."),
    )
    servers = forms.MultipleChoiceField(
        label=_("Where it may do so"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Choose none for everywhere."),
    )
    days = forms.TypedChoiceField(label=_("It ends"), coerce=int, empty_value=None)

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="mcp-token-%s")
        settings = get_settings()
        self._offer("scopes", _described(own_scopes()), least=1)
        self._offer("servers", [(each.name, each.name) for each in servers_with_tokens()], least=2)
        if "scopes" in self.fields and not settings.own_token_scopes:
            self.fields["scopes"].required = False
            self.fields["scopes"].help_text = _("Choose none for all that you may do yourself.")
        longest = settings.own_token_max_days
        self.fields["days"].required = longest is not None
        choices: Any = self.fields["days"]
        choices.choices = [*_lifetimes(longest)]
        choices.initial = min(USUAL_DAYS, longest or USUAL_DAYS)

    def _offer(self, name: str, choices: list[tuple[str, str]], *, least: int) -> None:
        """Offer the choices, if there are so many that there is something to choose."""
        field: Any = self.fields[name]
        field.choices = choices
        if len(choices) < least:
            del self.fields[name]

    @sensitive_variables("secret")
    def issue(self, user: Any) -> tuple[Token, str]:
        """Issue the token to the user; return it with its secret."""
        chosen, days = self.cleaned_data, self.cleaned_data["days"]
        scopes = chosen.get("scopes") or ([] if get_settings().own_token_scopes else None)
        return Token.objects.issue(
            user,
            name=chosen["name"],
            expires=None if days is None else dt.timedelta(days=days),
            servers=chosen.get("servers", ()),
            scopes=scopes,
            read_only=chosen["read_only"],
        )


def _described(scopes: dict[str, str]) -> list[tuple[str, str]]:
    return [(each, f"{meaning} ({each})" if meaning else each) for each, meaning in scopes.items()]


def _lifetimes(longest: int | None) -> Iterable[tuple[int | str, str]]:
    shorter = [days for days in DAYS if longest is None or days < longest]
    for days in (*shorter, *([] if longest is None else [longest])):
        yield days, ngettext("after %d day", "after %d days", days) % days
    if longest is None:
        yield "", gettext("never")
