"""The page on which people make, see and revoke tokens of their own."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.timesince import timesince, timeuntil
from django.utils.timezone import is_aware, localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_deny
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from ...clock import DatabaseNow
from .choices import known_scopes
from .forms import OwnTokenForm
from .models import State, Token

logger = logging.getLogger(__name__)

PERMISSION: Final = "django_mcp_tokens.manage_own_tokens"
MAX_OWN_TOKENS: Final = 50
"""Active tokens of a person who makes another one."""
SHOWN_ENDED: Final = 20
"""Tokens that have ended, the newest of which the page shows so many."""

View = Callable[..., HttpResponse]


class Secret:
    """The secret of a token on its way into a page: no report of an error shows it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "<secret>"


def for_owners(view: View) -> View:
    """Let people with the permission in, have others log in, and keep what they see to them."""

    @never_cache
    @xframe_options_deny
    @csrf_protect
    @wraps(view)
    def guarded(request: HttpRequest, **names: Any) -> HttpResponse:
        user: Any = request.user
        if not user.is_authenticated:
            return redirect_to_login(_url(request, "own_tokens"))
        # A user model of a site's own may know nothing of permissions.
        may = getattr(user, "has_perm", None)
        if may is None or not may(PERMISSION):
            raise PermissionDenied
        return view(request, **names)

    return guarded


@require_http_methods(["GET", "HEAD", "POST"])
@for_owners
@sensitive_variables("secret")
def own_tokens(request: HttpRequest) -> HttpResponse:
    """Show the tokens of whoever asks, and make another one for him.

    The secret is in this response alone: after a redirect it would have to be in a cookie, in a
    session, or in the URL.
    """
    if request.method != "POST":
        return _answer(request, form=OwnTokenForm())
    form = OwnTokenForm(request.POST)
    if form.is_valid() and not _has_many(request):
        token, secret = form.issue(request.user)
        logger.info("The user %s has made the token %s of their own.", request.user.pk, token.pk)
        return _answer(request, issued=token, secret=Secret(secret))
    if form.is_valid():
        sentence = ngettext(
            "You have %d token. Revoke one first.",
            "You have %d tokens. Revoke one first.",
            MAX_OWN_TOKENS,
        )
        form.add_error(None, sentence % MAX_OWN_TOKENS)
    return _answer(request, form=form)


@require_POST
@for_owners
def revoke(request: HttpRequest, key: int) -> HttpResponse:
    """Revoke a token of whoever asks, and lead back to it."""
    token = _own(request).filter(pk=key).first()
    if token is None:
        raise Http404("You have no such token.")
    if token.revoke():
        logger.info("The user %s has revoked the token %s of their own.", request.user.pk, key)
    return redirect(f"{_url(request, 'own_tokens')}#mcp-token-{key}")


def _answer(request: HttpRequest, **context: Any) -> HttpResponse:
    tokens = _own(request).with_state().annotate(now=DatabaseNow())
    active = tokens.in_state(State.ACTIVE)
    ended = tokens.exclude(state=State.ACTIVE)
    meanings = known_scopes()
    shown = [_shown(token, meanings) for token in (*active, *ended[:SHOWN_ENDED])]
    for each in shown:
        each["revoke"] = _url(request, "revoke", each["token"].pk)
    context |= {"tokens": shown, "page": _url(request, "own_tokens"), "next": _next(request)}
    return render(request, "django_mcp_tokens/own_tokens.html", context)


def _shown(token: Any, meanings: Mapping[str, str]) -> dict[str, Any]:
    """Return what the page says of a token."""
    now = token.now
    return {
        "token": token,
        "is_active": token.state == State.ACTIVE,
        "state": State(token.state).label,
        "limits": _limits(token, meanings),
        "servers": ", ".join(token.server_names or ()),
        "made": _past(token.created, now),
        "used": _past(token.last_used, now) if token.last_used else _("never"),
        "ends": _end(token.expires, now) if token.state == State.ACTIVE else "",
    }


def _limits(token: Token, meanings: Mapping[str, str]) -> str:
    scopes = token.granted_scopes
    if scopes is None:
        granted = _("all that you may")
    else:
        named = (meanings.get(each) or each for each in sorted(scopes))
        granted = ", ".join(named) or _("what needs no scopes")
    return _("%s; only what changes nothing") % granted if token.read_only else granted


def _past(moment: dt.datetime, now: dt.datetime) -> str:
    is_long_ago = now - moment >= dt.timedelta(minutes=1)
    return _("%s ago") % timesince(moment, now, depth=1) if is_long_ago else _("just now")


def _end(moment: dt.datetime | None, now: dt.datetime) -> str:
    if moment is None:
        return _("never")
    if moment - now < dt.timedelta(days=2):
        return _("in %s") % timeuntil(moment, now, depth=1)
    return date_format(localtime(moment) if is_aware(moment) else moment)


def _own(request: HttpRequest) -> Any:
    owner: Any = request.user  # of whatever model the site has chosen
    return Token.objects.filter(user=owner)


def _has_many(request: HttpRequest) -> bool:
    count: int = _own(request).in_state(State.ACTIVE).count()
    return count >= MAX_OWN_TOKENS


def _url(request: HttpRequest, name: str, *arguments: Any) -> str:
    """Return an address here, which remembers where somebody came from."""
    # The patterns may be among others with a namespace, or be there twice.
    match: Any = request.resolver_match
    path, before = reverse(f"{match.namespace}:{name}", args=arguments), _next(request)
    return f"{path}?{urlencode({'next': before})}" if before else path


def _next(request: HttpRequest) -> str:
    """Return where somebody came from, if that is on this site."""
    address = request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if is_ours else ""
