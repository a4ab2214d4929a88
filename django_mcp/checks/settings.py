"""Checks of ``DJANGO_MCP``, and of what it names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings as django_settings
from django.core.cache import caches
from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from ..conf import OLD_NAMES, Settings, get_settings
from ..store.doorbell import reaches_others

AUTH_HINT: Final = (
    "Choose who may use them: "
    '"django_mcp.contrib.tokens.auth.token_auth" (bearer tokens), '
    '"django_mcp.auth.django_user" (whoever Django has logged in), '
    '"django_mcp.auth.public" (everybody, on purpose), or a callable of your own.'
)
SQLITE_HINT: Final = (
    'Set OPTIONS = {"transaction_mode": "IMMEDIATE", "timeout": 20, '
    '"init_command": "PRAGMA journal_mode=WAL"} in DATABASES.'
)
CACHE_HINT: Final = (
    "Name a cache that all processes share and that increments in one step, in Redis or Memcached; "
    "or leave the setting out: the database counts."
)
SESSION_CACHE_HINT: Final = (
    "Name a cache that all processes share, in Redis or Memcached; or leave the setting out: each "
    "process remembers for itself."
)
ENDED_HINT: Final = (
    "Set it to 1 or less, configure a channel layer that reaches other processes, such as "
    "channels_redis, by which they are told at once, or name a shared cache in SESSION_CACHE. If "
    'there is only one process, or so long does not matter, add "django_mcp.W003" to '
    "SILENCED_SYSTEM_CHECKS."
)

#: Caches that each process has for itself, or that read, add and write back.
INEXACT_CACHES: Final = (DatabaseCache, DummyCache, FileBasedCache, LocMemCache)


@register
def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """Check ``DJANGO_MCP``, and what it names."""
    try:
        settings = get_settings()
    except ImproperlyConfigured as error:
        return [Error(problem, id="django_mcp.E002") for problem in str(error).splitlines()]
    return [
        *_check_old_names(),
        *_check_auth(settings),
        *_check_database(settings),
        *_check_rate_limit_cache(settings),
        *_check_session_cache(settings),
    ]


def are_settings_valid() -> bool:
    """Return whether there is nothing of which the check ``django_mcp.E002`` tells."""
    try:
        get_settings()
    except ImproperlyConfigured:
        return False
    return True


def _check_old_names() -> Iterator[CheckMessage]:
    given = getattr(django_settings, "DJANGO_MCP", None) or {}
    for old, new in OLD_NAMES.items():
        if old in given:
            message = f'DJANGO_MCP["{old}"] is an old name.'
            hint = f'Write "{new}": the value means the same.'
            yield CheckWarning(message, hint=hint, id="django_mcp.W017")


def _check_auth(settings: Settings) -> Iterator[CheckMessage]:
    if settings.auth is None:
        message = 'DJANGO_MCP["AUTH"] is not set, so endpoints refuse everybody.'
        yield Error(message, hint=AUTH_HINT, id="django_mcp.E001")
    yield from check_auth_path(settings.auth, 'DJANGO_MCP["AUTH"]')


def check_auth_path(auth: Any, where: str) -> Iterator[CheckMessage]:
    """Yield an error if the path of a callable for ``AUTH``, or one in it, leads nowhere."""
    for each in getattr(auth, "members", ()):
        yield from check_auth_path(each, where)
    if isinstance(auth, str):
        try:
            import_string(auth)
        except ImportError as error:
            message = f"{where} cannot be imported: {error}"
            yield Error(message, hint=AUTH_HINT, id="django_mcp.E003")


def _check_database(settings: Settings) -> Iterator[CheckMessage]:
    database = django_settings.DATABASES.get(settings.database)
    if database is None:
        message = f'DJANGO_MCP["DATABASE"] is {settings.database!r}, which DATABASES has not.'
        yield Error(message, id="django_mcp.E004")
    elif _lets_writers_fail(database):
        message = "SQLite without IMMEDIATE transactions fails under concurrent writers."
        yield CheckWarning(message, hint=SQLITE_HINT, id="django_mcp.W001")


def _check_rate_limit_cache(settings: Settings) -> Iterator[CheckMessage]:
    name = settings.rate_limit_cache
    if not name:
        return
    if name not in django_settings.CACHES:
        message = f'DJANGO_MCP["RATE_LIMIT_CACHE"] is {name!r}, which CACHES has not.'
        yield Error(message, hint=CACHE_HINT, id="django_mcp.E007")
    elif isinstance(caches[name], INEXACT_CACHES):
        message = f'DJANGO_MCP["RATE_LIMIT_CACHE"]: the cache {name!r} cannot count exactly.'
        yield Error(message, hint=CACHE_HINT, id="django_mcp.E007")


def _check_session_cache(settings: Settings) -> Iterator[CheckMessage]:
    name, seconds = settings.session_cache, settings.session_cache_seconds
    problem = ""
    if name and name not in django_settings.CACHES:
        problem = f'DJANGO_MCP["SESSION_CACHE"] is {name!r}, which CACHES has not.'
    elif name and isinstance(caches[name], INEXACT_CACHES):
        problem = (
            f'DJANGO_MCP["SESSION_CACHE"]: in the cache {name!r} sessions that have ended cannot '
            "be forgotten by all, or not faster than the database is asked."
        )
    if problem:
        yield Error(problem, hint=SESSION_CACHE_HINT, id="django_mcp.E008")
    elif name and seconds < 2:
        message = f'DJANGO_MCP["SESSION_CACHE"] does nothing for {seconds:g} seconds.'
        hint = "Shared caches count whole seconds: set SESSION_CACHE_SECONDS to 2 or more."
        yield Error(message, hint=hint, id="django_mcp.E008")
    elif not name and seconds > 1 and not reaches_others():
        message = (
            f"Other processes may let in a session for {seconds:g} seconds after it has ended: "
            'DJANGO_MCP["SESSION_CACHE_SECONDS"].'
        )
        yield CheckWarning(message, hint=ENDED_HINT, id="django_mcp.W003")


def _lets_writers_fail(database: dict[str, Any]) -> bool:
    mode = database.get("OPTIONS", {}).get("transaction_mode")
    return "sqlite3" in database["ENGINE"] and mode != "IMMEDIATE"
