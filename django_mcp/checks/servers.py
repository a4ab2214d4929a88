"""Checks of the servers in the URLconf, and of what is registered with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Final

from django.apps import apps
from django.conf import settings as django_settings
from django.contrib.auth import get_permission_codename
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.urls import get_resolver

from ..routing import find_endpoints
from ..server.default_server import mcp
from ..server.registry import MCPServer
from .apps import check_apps
from .offers import check_offers
from .settings import are_settings_valid, check_auth_path

OFFERS_HINT: Final = (
    "Decorate functions in the module mcp.py of an app, and see that the app is in INSTALLED_APPS. "
    '"manage.py mcp list" shows what is found.'
)
PERMISSION_HINT: Final = (
    'Write "app_label.codename". If a backend of yours knows it without a model, add '
    '"django_mcp.W005" to SILENCED_SYSTEM_CHECKS.'
)


@register(Tags.urls)
def check_servers(**kwargs: Any) -> list[CheckMessage]:
    """Check the servers that the URLconf gives a place, and what is registered with them."""
    if not getattr(django_settings, "ROOT_URLCONF", None) or not are_settings_valid():
        return []
    endpoints = [endpoint for _, endpoint in find_endpoints(get_resolver())]
    servers = list(dict.fromkeys([mcp, *(endpoint.server for endpoint in endpoints)]))
    auths = [*(each.auth for each in servers), *(each.auth for each in endpoints)]
    return [
        *_check_names(servers),
        *(
            Error(f"{problem}.", id="django_mcp.E005")
            for each in servers
            for problem in each.check()
        ),
        *(message for auth in dict.fromkeys(auths) for message in check_auth_path(auth, "auth=")),
        *_check_emptiness(list(dict.fromkeys(endpoint.server for endpoint in endpoints))),
        *_check_permissions(servers),
        *check_offers(servers),
        *check_apps(servers),
        *(found for each in servers for model in each.models for found in model.check()),
    ]


def _check_names(servers: list[MCPServer]) -> Iterator[CheckMessage]:
    names = [server.name for server in servers]
    for name in sorted({name for name in names if names.count(name) > 1}):
        message = f"Two servers are named {name!r}, so they share sessions and tokens."
        yield Error(message, hint="Give each server a name of its own.", id="django_mcp.E006")


def _check_emptiness(served: list[MCPServer]) -> Iterator[CheckMessage]:
    for server in served:
        if not (server.tools or server.resources or server.prompts):
            message = f"The server {server.name!r} has a URL, and nothing is registered with it."
            yield CheckWarning(message, hint=OFFERS_HINT, id="django_mcp.W004")


def _check_permissions(servers: list[MCPServer]) -> Iterator[CheckMessage]:
    known = set(_permissions())
    for server in servers:
        for primitive in (*server.tools, *server.resources, *server.prompts):
            wanted = primitive.permission
            if isinstance(wanted, str) and wanted not in known:
                near = difflib.get_close_matches(wanted, known, n=1)
                meant = f" Did you mean {near[0]!r}?" if near else ""
                message = (
                    f"{primitive.key!r} of the server {server.name!r} is for those with the "
                    f"permission {wanted!r}, which no installed model has.{meant}"
                )
                yield CheckWarning(message, hint=PERMISSION_HINT, id="django_mcp.W005")


def _permissions() -> Iterator[str]:
    for model in apps.get_models():
        options = model._meta
        for action in options.default_permissions:
            yield f"{options.app_label}.{get_permission_codename(action, options)}"
        for codename, _ in options.permissions:
            yield f"{options.app_label}.{codename}"
