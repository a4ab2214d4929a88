"""Checks of what authorization servers call endpoints and themselves, where that is no URL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.urls import Resolver404, get_resolver

from ..conf import Settings, get_settings
from ..http.protected_resource import authorization_servers_of
from ..http.request import WANTED_TOOLS, Endpoint
from ..http.views import endpoint_of
from ..routing import find_endpoints
from .settings import are_settings_valid

APART_HINT: Final = (
    "Register each endpoint by itself at the authorization server, and write its own name here."
)
SINGLE_HINT: Final = (
    "Let those servers put the URL of the endpoint into aud, or name one of them only."
)
SPELLING_HINT: Final = "Correct it, letter by letter, or remove it."


@register(Tags.urls)
def check_issuer_names(**kwargs: object) -> list[CheckMessage]:
    """Check what the settings say of the names that authorization servers have for things."""
    if not getattr(django_settings, "ROOT_URLCONF", None) or not are_settings_valid():
        return []
    settings = get_settings()
    return [*_check_audiences(settings), *_check_spelling(settings)]


def _check_audiences(settings: Settings) -> Iterator[CheckMessage]:
    urls = defaultdict(list)
    for url, names in settings.token_audiences.items():
        for name in names:
            urls[name].append(url)
        endpoint = _endpoint_at(url, settings)
        if endpoint and len(_issuers_of(endpoint, settings)) > 1:
            yield Error(
                f'DJANGO_MCP["TOKEN_AUDIENCES"] does not count for {url}, which has several '
                "authorization servers: what one of them calls so may be another thing elsewhere.",
                hint=SINGLE_HINT,
                id="django_mcp.E060",
            )
        if endpoint is None and settings.base_url:
            where = f'The URL {url!r} in DJANGO_MCP["TOKEN_AUDIENCES"]'
            yield _misspelt(f"{where} is none of an endpoint at BASE_URL.")
    for name, places in urls.items():
        if len(places) > 1:
            yield Error(
                f'DJANGO_MCP["TOKEN_AUDIENCES"] has {name!r} for {" and for ".join(places)}: a '
                "token for one of them opens the other.",
                hint=APART_HINT,
                id="django_mcp.E060",
            )


def _check_spelling(settings: Settings) -> Iterator[CheckMessage]:
    endpoints = [endpoint for _, endpoint in find_endpoints(get_resolver())]
    servers = {issuer for each in endpoints for issuer in _issuers_of(each, settings)}
    for server in settings.token_issuers:
        if server not in servers:
            where = f'{server!r} in DJANGO_MCP["TOKEN_ISSUERS"]'
            yield _misspelt(f"{where} is no authorization server of an endpoint.")
    known = servers.union(*settings.token_issuers.values())
    for issuer in settings.issuer_metadata:
        if issuer not in known:
            where = f'{issuer!r} in DJANGO_MCP["ISSUER_METADATA"]'
            yield _misspelt(f"{where} issues no tokens for an endpoint.")


def _misspelt(message: str) -> CheckMessage:
    return CheckWarning(message, hint=SPELLING_HINT, id="django_mcp.W060")


def _issuers_of(endpoint: Endpoint, settings: Settings) -> tuple[str, ...]:
    try:
        return authorization_servers_of(endpoint, settings)
    except ImportError:  # of which another check tells
        return ()


def _endpoint_at(url: str, settings: Settings) -> Endpoint | None:
    """Return the endpoint of which this is the URL, letter by letter."""
    for base in settings.base_url:
        if url.startswith(f"{base}/"):
            try:
                found = get_resolver().resolve(url.removeprefix(base))
            except Resolver404:
                continue
            return None if found.kwargs.get(WANTED_TOOLS) else endpoint_of(found.func)
    return None
