"""System checks: settings of django-oauth-toolkit by which logins would be unsafe, or not work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, Resolver404, get_resolver, reverse
from oauth2_provider import views as stock
from oauth2_provider.settings import oauth2_settings

from ....checks.settings import are_settings_valid
from ....conf import get_settings, is_this_machine
from ....routing import leaves, path_of
from .documents import Fetcher, OnConsentPage
from .site import Scopes, configured_issuer
from .validator import Validator
from .views import MetadataView

SETUP_HINT: Final = '"manage.py mcp oauth-setup" prints the settings to paste.'
URLS_HINT: Final = (
    'Put path("", include("django_mcp.contrib.oauth.urls")) at the root of the URLconf, instead of '
    "oauth2_provider.urls and in front of django_mcp.urls."
)
_STOCK: Final = (
    stock.AuthorizationView,
    stock.TokenView,
    stock.DynamicClientRegistrationView,
    stock.DynamicClientRegistrationManagementView,
    stock.OAuthServerMetadataView,
    stock.OAuthProtectedResourceMetadataView,
    stock.DeviceAuthorizationView,
)
"""Of DOT's views those that would go round what is decided here."""
_HARMFUL: Final = ("about", "blob", "data", "file", "javascript", "vbscript")
EDITORS: Final = ("cursor", "vscode", "vscode-insiders", "windsurf")
"""Schemes of editors that log in by themselves."""


@register(Tags.security)
def check_provider(**kwargs: object) -> list[CheckMessage]:
    """Check ``OAUTH2_PROVIDER``."""
    if not are_settings_valid():
        return []
    return [*_unsafe_settings(), *_awkward_settings()]


def _unsafe_settings() -> Iterator[CheckMessage]:
    chosen = oauth2_settings
    if not _is_class(chosen.OAUTH2_VALIDATOR_CLASS, Validator):
        yield _error(
            "OAUTH2_VALIDATOR_CLASS",
            "is not django_mcp's, nor derived from it",
            id="django_mcp.E011",
        )
    if not _is_class(chosen.SCOPES_BACKEND_CLASS, Scopes):
        why = "is not django_mcp's: clients that register themselves get scopes of the whole site"
        yield _error("SCOPES_BACKEND_CLASS", why, id="django_mcp.E012")
    if chosen.CIMD_ENABLED:
        classes = chosen.CIMD_REGISTRATION_PERMISSION_CLASSES or ()
        if not any(_is_class(each, OnConsentPage) for each in classes):
            why = "lets anybody have the site fetch URLs, without a login"
            yield _error("CIMD_REGISTRATION_PERMISSION_CLASSES", why, id="django_mcp.E013")
        if not _is_class(chosen.CIMD_METADATA_FETCHER, Fetcher):
            why = (
                "is not django_mcp's: ChatGPT's document is refused, and addresses are let through"
            )
            yield _error(
                "CIMD_METADATA_FETCHER", f"{why} that are not public", id="django_mcp.E013"
            )
    schemes = set(chosen.ALLOWED_REDIRECT_URI_SCHEMES)
    if chosen.ALLOW_URI_WILDCARDS or schemes.intersection(_HARMFUL):
        key = (
            "ALLOW_URI_WILDCARDS" if chosen.ALLOW_URI_WILDCARDS else "ALLOWED_REDIRECT_URI_SCHEMES"
        )
        yield _error(key, "lets codes be sent to where they can be stolen", id="django_mcp.E014")


def _awkward_settings() -> Iterator[CheckMessage]:
    chosen = oauth2_settings
    if not chosen.COMPLIANT_BCP_RFC9700_TOKEN_STORAGE:
        why = "is off: whoever reads the database has everybody's tokens"
        yield _warning("COMPLIANT_BCP_RFC9700_TOKEN_STORAGE", why, id="django_mcp.W022")
    if not chosen.REFRESH_TOKEN_REUSE_PROTECTION:
        why = "is off: a stolen refresh token is good as long as its owner's"
        yield _warning("REFRESH_TOKEN_REUSE_PROTECTION", why, id="django_mcp.W022")
    if not chosen.REFRESH_TOKEN_EXPIRE_SECONDS:
        why = "is not set: a login that nobody uses any more is good for ever"
        yield _warning("REFRESH_TOKEN_EXPIRE_SECONDS", why, id="django_mcp.W022")
    if not chosen.DCR_ENABLED and not chosen.CIMD_ENABLED:
        why = "are both off: no client can introduce itself"
        yield _warning("DCR_ENABLED and CIMD_ENABLED", why, id="django_mcp.W023")
    if chosen.DCR_ENABLED and _asks_for_a_login(chosen.DCR_REGISTRATION_PERMISSION_CLASSES):
        why = "ask for a login, which no client has when it registers"
        yield _warning("DCR_REGISTRATION_PERMISSION_CLASSES", why, id="django_mcp.W023")
    if not chosen.ALLOW_LOCALHOST_LOOPBACK:
        why = "is off: Claude Code is sent back to a port of localhost, and refused"
        yield _warning("ALLOW_LOCALHOST_LOOPBACK", why, id="django_mcp.W024")
    if "http" not in chosen.ALLOWED_REDIRECT_URI_SCHEMES:
        why = 'lacks "http": programs on the users\' own machines cannot log in'
        yield _warning("ALLOWED_REDIRECT_URI_SCHEMES", why, id="django_mcp.W024")


def _asks_for_a_login(classes: Any) -> bool:
    names = [each.__name__ for each in classes or ()]
    return not names or "IsAuthenticatedDCRPermission" in names


@register(Tags.urls)
def check_urls(**kwargs: object) -> list[CheckMessage]:
    """Check that our views answer, that DOT's own do not, and that there is a page to log in at."""
    if not getattr(django_settings, "ROOT_URLCONF", None) or not are_settings_valid():
        return []
    messages: list[CheckMessage] = [
        Error(
            f"{view.__name__} of django-oauth-toolkit answers /{path}, where nothing of django_mcp "
            "decides about resources, redirects and scopes.",
            hint=URLS_HINT,
            id="django_mcp.E015",
        )
        for view, path in _stock_views()
    ]
    if not _answers_ours():
        message = "Nothing answers where clients look for what the site's issuer says of itself"
        messages.append(Error(f"{message}.", hint=URLS_HINT, id="django_mcp.E016"))
    if not _has_login_page():
        message = f"There is no page at LOGIN_URL, {django_settings.LOGIN_URL!r}, for people to log"
        hint = 'Set it to a page that logs people in: LOGIN_URL = "admin:login" is one for staff.'
        messages.append(CheckWarning(f"{message} in at.", hint=hint, id="django_mcp.W025"))
    return [*messages, *_issuer_problems()]


def _stock_views() -> Iterator[tuple[Any, str]]:
    for chain, entry in leaves(get_resolver()):
        view = getattr(entry.callback, "view_class", None)
        if view in _STOCK:
            yield view, path_of(chain)


def _answers_ours() -> bool:
    try:
        reverse("oauth2_provider:dcr-register")
        found = get_resolver().resolve("/.well-known/oauth-authorization-server")
    except (NoReverseMatch, Resolver404):
        return False
    return _is_class(getattr(found.func, "view_class", None), MetadataView)


def _has_login_page() -> bool:
    try:
        url = resolve_url(django_settings.LOGIN_URL)
        if url.startswith("/") and not url.startswith("//"):
            get_resolver().resolve(url.partition("?")[0])
    except (NoReverseMatch, Resolver404):
        return False
    return True


def _issuer_problems() -> Iterator[CheckMessage]:
    ours, settings = configured_issuer(), get_settings()
    if not ours:
        return  # of which E010 tells where it matters
    parts = urlsplit(ours)
    is_plain = parts.scheme != "https" and not is_this_machine(parts.hostname)
    if is_plain or ours.endswith("/") or parts.query or parts.fragment:
        message = f"{ours!r} is no issuer that clients take: use https, and no slash at the end."
        yield Error(message, hint=SETUP_HINT, id="django_mcp.E017")
    elif ours not in settings.base_url:
        message = (
            f'OAUTH2_PROVIDER["OIDC_ISS_ENDPOINT"] is {ours!r}, which DJANGO_MCP["BASE_URL"] does '
            "not have: documents and answers would speak of two issuers, which clients reject."
        )
        yield Error(message, hint=SETUP_HINT, id="django_mcp.E017")


def _is_class(found: Any, kind: type) -> bool:
    return isinstance(found, type) and issubclass(found, kind)


def _error(key: str, why: str, *, id: str) -> Error:
    text = f'OAUTH2_PROVIDER["{key}"] {why}.'
    return Error(text, hint=SETUP_HINT, id=id)


def _warning(key: str, why: str, *, id: str) -> CheckWarning:
    text = f"OAUTH2_PROVIDER: {key} {why}."
    return CheckWarning(text, hint=SETUP_HINT, id=id)
