"""System checks of the page on which people make tokens of their own, and of its settings."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.utils.module_loading import import_string

from ...checks.settings import are_settings_valid
from ...conf import get_settings
from .choices import allowed_scopes, known_scopes, servers_with_tokens
from .own_tokens_page import path_of_page

LOGIN_HINT: Final = (
    'Add "django.contrib.auth.middleware.AuthenticationMiddleware" to MIDDLEWARE, behind the one '
    "for sessions."
)
SCOPE_HINT: Final = (
    'Correct its name, or add it to DJANGO_MCP["SCOPES"] with a sentence that says what it allows.'
)
USELESS_HINT: Final = (
    "Add it, or one that includes it. If that server is meant for other tokens only, add "
    '"django_mcp.W031" to SILENCED_SYSTEM_CHECKS.'
)


@register(Tags.urls)
def check_own_tokens(**kwargs: Any) -> list[CheckMessage]:
    """Check that people can make tokens of their own, and use them, where the site has the page."""
    if not getattr(django_settings, "ROOT_URLCONF", None) or not are_settings_valid():
        return []
    messages = [*_unknown_scopes()]
    if path_of_page():
        messages += [*_no_login(), *_closed_servers()]
    return messages


def _no_login() -> Iterator[CheckMessage]:
    if not any(map(_is_authentication, django_settings.MIDDLEWARE)):
        message = "Nobody is logged in on the page for tokens of one's own, for no middleware does."
        yield Error(message, hint=LOGIN_HINT, id="django_mcp.E030")


def _is_authentication(path: str) -> bool:
    # Its module has models, which a site may be without that has neither these nor the page.
    from django.contrib.auth.middleware import AuthenticationMiddleware  # noqa: PLC0415

    try:
        found = import_string(path)
    except ImportError:  # of which Django tells
        return False
    return isinstance(found, type) and issubclass(found, AuthenticationMiddleware)


def _unknown_scopes() -> Iterator[CheckMessage]:
    known = known_scopes()
    for scope in get_settings().own_token_scopes:
        if scope not in known:
            near = difflib.get_close_matches(scope, known, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            message = f'Nothing needs {scope!r} of DJANGO_MCP["OWN_TOKEN_SCOPES"].{meant}'
            yield CheckWarning(message, hint=SCOPE_HINT, id="django_mcp.W030")


def _closed_servers() -> Iterator[CheckMessage]:
    allowed = allowed_scopes(get_settings())
    if allowed is None:
        return
    for server in servers_with_tokens():
        if missing := [scope for scope in server.scopes if scope not in allowed]:
            message = (
                f"Every request to the server {server.name!r} needs the scope {missing[0]!r}, "
                'which people cannot give to tokens of their own: DJANGO_MCP["OWN_TOKEN_SCOPES"].'
            )
            yield CheckWarning(message, hint=USELESS_HINT, id="django_mcp.W031")
