"""Checks of endpoints for which authorization servers issue tokens."""

from __future__ import annotations

from typing import Final

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.urls import get_resolver

from ..conf import get_settings
from ..http.protected_resource import WELL_KNOWN, authorization_servers_of
from ..http.request import Endpoint
from ..routing import find_endpoints, path_of
from ..well_known import is_absent
from .settings import are_settings_valid

BASE_URL_HINT: Final = (
    'Say where clients find the site: DJANGO_MCP["BASE_URL"] = "https://shop.example.com"; or name '
    "its hosts in ALLOWED_HOSTS."
)
DOCUMENT_HINT: Final = (
    'Put path("", include("django_mcp.well_known")) at the front of the URLconf\'s root.'
)


@register(Tags.urls)
def check_oauth(**kwargs: object) -> list[CheckMessage]:
    """Check that clients can find out where to log in, and that tokens are for one resource."""
    if not getattr(django_settings, "ROOT_URLCONF", None) or not are_settings_valid():
        return []
    resolver, settings = get_resolver(), get_settings()
    paths = [path_of(chain) for chain, endpoint in find_endpoints(resolver) if _has_oauth(endpoint)]
    if not paths:
        return []
    messages: list[CheckMessage] = []
    if "*" in django_settings.ALLOWED_HOSTS and not settings.base_url:
        message = (
            "Which resource tokens are for is not known, so none is accepted: ALLOWED_HOSTS has "
            '"*", and DJANGO_MCP["BASE_URL"] is not set.'
        )
        messages.append(Error(message, hint=BASE_URL_HINT, id="django_mcp.E009"))
    messages += [
        CheckWarning(
            f"Nothing answers {url}, where clients look for who issues tokens for an endpoint.",
            hint=DOCUMENT_HINT,
            id="django_mcp.W019",
        )
        for url in (f"{WELL_KNOWN}/{path}" for path in paths if path.isascii() and "<" not in path)
        if is_absent(resolver, url)
    ]
    return messages


def _has_oauth(endpoint: Endpoint) -> bool:
    try:
        return bool(authorization_servers_of(endpoint, get_settings()))
    except ImportError:  # of which another check tells
        return False
