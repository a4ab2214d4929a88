"""Checks of endpoints for which authorization servers issue tokens."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.urls import get_resolver

from ..conf import get_settings
from ..http.protected_resource import WELL_KNOWN, auth_of, authorization_servers_of, imported
from ..http.request import Endpoint
from ..protocol.scopes import with_included
from ..routing import find_endpoints, path_of
from ..server.registry import MCPServer
from ..well_known import is_absent
from .settings import are_settings_valid

BASE_URL_HINT: Final = (
    'Say where clients find the site: DJANGO_MCP["BASE_URL"] = "https://shop.example.com"; or name '
    "its hosts in ALLOWED_HOSTS."
)
DOCUMENT_HINT: Final = (
    'Put path("", include("django_mcp.well_known")) at the front of the URLconf\'s root.'
)


TOKENS_HINT: Final = "See the page of the documentation about logins by OAuth."
SCOPES_HINT: Final = (
    'Add it to DJANGO_MCP["SCOPES"], with a sentence that says what it allows; or correct its name.'
)


@register(Tags.urls)
def check_tokens(**kwargs: object) -> list[CheckMessage]:
    """Check that whatever takes tokens of others has been told what it needs."""
    if not getattr(django_settings, "ROOT_URLCONF", None) or not are_settings_valid():
        return []
    found: dict[str, None] = {}
    for _, endpoint in find_endpoints(get_resolver()):
        for auth in _callables(auth_of(endpoint, get_settings())):
            if hasattr(auth, "problems"):
                issuers = authorization_servers_of(endpoint, get_settings())
                for problem in auth.problems(get_settings(), issuers):
                    found[f"The server {endpoint.server.name!r}: {problem}."] = None
    return [Error(message, hint=TOKENS_HINT, id="django_mcp.E010") for message in found]


def _callables(auth: Any) -> Iterator[Any]:
    try:
        yield imported(auth) if isinstance(auth, str) else auth
    except ImportError:
        return  # of which another check tells
    for each in getattr(auth, "members", ()):
        yield from _callables(each)


@register(Tags.urls)
def check_scopes(**kwargs: object) -> list[CheckMessage]:
    """Check that the scopes that somebody needs are among those that the site says it has."""
    if not getattr(django_settings, "ROOT_URLCONF", None) or not are_settings_valid():
        return []
    settings = get_settings()
    if not settings.scopes:
        return []
    wanted = dict.fromkeys(
        [
            *with_included(settings.scope_hierarchy, settings.scope_hierarchy),
            *settings.read_only_scopes,
        ],
        "DJANGO_MCP",
    )
    servers = [endpoint.server for _, endpoint in find_endpoints(get_resolver())]
    wanted |= dict(_needed(servers))
    return [
        CheckWarning(
            f"{where} has the scope {scope!r}, which SCOPES has not.{_meant(scope)}",
            hint=SCOPES_HINT,
            id="django_mcp.W021",
        )
        for scope, where in sorted(wanted.items())
        if scope not in settings.scopes
    ]


def _needed(servers: Sequence[MCPServer]) -> Iterator[tuple[str, str]]:
    for server in servers:
        for primitive in (*server.tools, *server.resources, *server.prompts):
            for scope in primitive.scopes:
                yield scope, f"{primitive.key!r} of the server {server.name!r}"
        for scope in server.scopes:
            yield scope, f"The server {server.name!r}"


def _meant(scope: str) -> str:
    near = difflib.get_close_matches(scope, get_settings().scopes, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


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
    if set(django_settings.ALLOWED_HOSTS) == {"*"} and not settings.base_url:
        message = (
            "Which resource tokens are for is not known, so none is accepted: ALLOWED_HOSTS has "
            'only "*", and DJANGO_MCP["BASE_URL"] is not set.'
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
