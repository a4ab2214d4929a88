"""System checks: what a site has forgotten, before its users find out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from .conf import get_settings


@register
def check_settings(**kwargs: Any) -> Iterable[CheckMessage]:
    """Check ``DJANGO_MCP`` itself."""
    try:
        settings = get_settings()
    except ImproperlyConfigured as error:
        return [Error(str(error), id="django_mcp.E002")]
    if settings.auth is None:
        return [
            Error(
                'DJANGO_MCP["AUTH"] is not set, so endpoints refuse everybody.',
                hint='Choose who may use them: "django_mcp.contrib.tokens.auth.token_auth" (bearer '
                'tokens), "django_mcp.auth.django_user" (logged-in users), "django_mcp.auth.public" '
                "(everybody, on purpose), or a callable of your own.",
                id="django_mcp.E001",
            )
        ]
    return list(_check_auth(settings.auth))


def _check_auth(auth: Any) -> Iterable[CheckMessage]:
    if isinstance(auth, str):
        try:
            import_string(auth)
        except ImportError as error:
            yield Error(f'DJANGO_MCP["AUTH"] cannot be imported: {error}', id="django_mcp.E003")


@register
def check_database(**kwargs: Any) -> Iterable[CheckMessage]:
    """Check what concurrent writers need of SQLite."""
    settings = get_settings()
    database = django_settings.DATABASES.get(settings.database)
    if database is None:
        yield Error(
            f'DJANGO_MCP["DATABASE"] names {settings.database!r}, which is not in DATABASES.',
            id="django_mcp.E004",
        )
    elif "sqlite3" in database["ENGINE"]:
        if database.get("OPTIONS", {}).get("transaction_mode") != "IMMEDIATE":
            yield Warning(
                "SQLite without IMMEDIATE transactions fails under concurrent writers.",
                hint='Set OPTIONS = {"transaction_mode": "IMMEDIATE", "timeout": 20, '
                '"init_command": "PRAGMA journal_mode=WAL"} in DATABASES.',
                id="django_mcp.W001",
            )
