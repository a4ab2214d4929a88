"""System checks: what a site has forgotten, before its users find out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.apps import apps
from django.conf import settings as django_settings
from django.contrib.auth import get_permission_codename
from django.core.cache import caches
from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.dummy import DummyCache
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ImproperlyConfigured
from django.urls import get_resolver
from django.utils.module_loading import import_string

from .auth import public
from .conf import Settings, get_settings
from .default import mcp
from .offer_checks import check_offers
from .routing import find_endpoints, path_of
from .server.registry import MCPServer
from .store.doorbell import reaches_others
from .transport.http import Endpoint
from .well_known import catch_all, probes

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

OFFERS_HINT: Final = (
    "Decorate functions in the module mcp.py of an app, and see that the app is in INSTALLED_APPS. "
    '"manage.py mcp list" shows what is found.'
)
PERMISSION_HINT: Final = (
    'Write "app_label.codename". If a backend of yours knows it without a model, add '
    '"django_mcp.W005" to SILENCED_SYSTEM_CHECKS.'
)

PUBLIC_HINT: Final = (
    f'If that is meant, add "django_mcp.W006" to SILENCED_SYSTEM_CHECKS. Otherwise: {AUTH_HINT}'
)
ORIGINS_HINT: Final = (
    'Name the origins whose pages need them, as in ["https://app.example.com"]. The star also lets '
    "through pages that have made a name of their own point at this server. If that is meant, add "
    '"django_mcp.W007" to SILENCED_SYSTEM_CHECKS.'
)
WELL_KNOWN_HINT: Final = (
    'Put path("", include("django_mcp.well_known")) in front of it, in the URLconf\'s root; '
    'include("django_mcp.urls") there has the same.'
)

#: Caches that each process has for itself, or that read, add and write back.
INEXACT_CACHES: Final = (DatabaseCache, DummyCache, FileBasedCache, LocMemCache)

#: Middleware whose work the mount does itself, or that an endpoint does not need.
ACCOUNTED_FOR: Final = {
    "corsheaders.middleware.CorsMiddleware",
    "debug_toolbar.middleware.DebugToolbarMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.contrib.redirects.middleware.RedirectFallbackMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.cache.FetchFromCacheMiddleware",
    "django.middleware.cache.UpdateCacheMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.common.BrokenLinkEmailsMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
}


@register
def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """Check ``DJANGO_MCP``, and what it names."""
    try:
        settings = get_settings()
    except ImproperlyConfigured as error:
        return [Error(str(error), id="django_mcp.E002")]
    return [
        *_check_auth(settings),
        *_check_database(settings),
        *_check_cache(settings),
        *_check_session_cache(settings),
    ]


@register(Tags.urls)
def check_servers(**kwargs: Any) -> list[CheckMessage]:
    """Check the servers that the URLconf gives a place, and what is registered with them."""
    if not getattr(django_settings, "ROOT_URLCONF", None) or not _has_settings():
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
        *(message for auth in dict.fromkeys(auths) for message in _check_import(auth, "auth=")),
        *_check_offers(list(dict.fromkeys(endpoint.server for endpoint in endpoints))),
        *_check_permissions(servers),
        *check_offers(servers),
    ]


@register(Tags.urls)
def check_well_known(**kwargs: Any) -> list[CheckMessage]:
    """Check that clients that look for documents around an endpoint get no page of the site's."""
    if not getattr(django_settings, "ROOT_URLCONF", None):
        return []
    resolver = get_resolver()
    paths = [path_of(chain) for chain, _ in find_endpoints(resolver)]
    asked_for = [url for path in paths if path.isascii() for url in probes(path)]
    hidden: dict[str, str] = {}
    for url in asked_for:
        pattern = catch_all(resolver, url)
        if pattern:
            hidden.setdefault(pattern, url)
    return [
        CheckWarning(
            f"The URL pattern {pattern!r} answers {url}, which MCP clients ask for.",
            hint=WELL_KNOWN_HINT,
            id="django_mcp.W008",
        )
        for pattern, url in hidden.items()
    ]


@register
def check_mount(**kwargs: Any) -> list[CheckMessage]:
    """Check what the mount bypasses, where the ASGI application has one."""
    unknown = [name for name in django_settings.MIDDLEWARE if name not in ACCOUNTED_FOR]
    if not unknown or not _has_mount():
        return []
    message = f"The mount answers MCP requests without this middleware: {', '.join(unknown)}."
    hint = (
        "If one of them protects the endpoint or prepares what your tools need, do that in AUTH, "
        "or remove mount() from the ASGI application: the view runs all middleware. Otherwise add "
        '"django_mcp.W002" to SILENCED_SYSTEM_CHECKS.'
    )
    return [CheckWarning(message, hint=hint, id="django_mcp.W002")]


@register(Tags.security, deploy=True)
def check_openness(**kwargs: Any) -> list[CheckMessage]:
    """Check what is open to more people than a site in production may want."""
    if not getattr(django_settings, "ROOT_URLCONF", None) or not _has_settings():
        return []
    settings = get_settings()
    served = [endpoint for _, endpoint in find_endpoints(get_resolver())]
    found = [each.server.name for each in served if _is_public(each, settings)]
    messages: list[CheckMessage] = [
        CheckWarning(
            f"The server {name!r} is open to everybody: its AUTH is django_mcp.auth.public.",
            hint=PUBLIC_HINT,
            id="django_mcp.W006",
        )
        for name in dict.fromkeys(found)
    ]
    if "*" in settings.allowed_origins:
        message = 'Pages of every website may use the endpoints: DJANGO_MCP["ALLOWED_ORIGINS"].'
        messages.append(CheckWarning(message, hint=ORIGINS_HINT, id="django_mcp.W007"))
    return messages


def _is_public(endpoint: Endpoint, settings: Settings) -> bool:
    auth = endpoint.auth or endpoint.server.auth or settings.auth
    return auth in (public, f"{public.__module__}.{public.__name__}")


def _check_auth(settings: Settings) -> Iterator[CheckMessage]:
    if settings.auth is None:
        message = 'DJANGO_MCP["AUTH"] is not set, so endpoints refuse everybody.'
        yield Error(message, hint=AUTH_HINT, id="django_mcp.E001")
    yield from _check_import(settings.auth, 'DJANGO_MCP["AUTH"]')


def _check_import(auth: Any, where: str) -> Iterator[CheckMessage]:
    if isinstance(auth, str):
        try:
            import_string(auth)
        except ImportError as error:
            message = f"{where} cannot be imported: {error}"
            yield Error(message, hint=AUTH_HINT, id="django_mcp.E003")


def _check_names(servers: list[MCPServer]) -> Iterator[CheckMessage]:
    names = [server.name for server in servers]
    for name in sorted({name for name in names if names.count(name) > 1}):
        message = f"Two servers are named {name!r}, so they share sessions and tokens."
        yield Error(message, hint="Give each server a name of its own.", id="django_mcp.E006")


def _check_offers(served: list[MCPServer]) -> Iterator[CheckMessage]:
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


def _check_database(settings: Settings) -> Iterator[CheckMessage]:
    database = django_settings.DATABASES.get(settings.database)
    if database is None:
        message = f'DJANGO_MCP["DATABASE"] is {settings.database!r}, which DATABASES has not.'
        yield Error(message, id="django_mcp.E004")
    elif _lets_writers_fail(database):
        message = "SQLite without IMMEDIATE transactions fails under concurrent writers."
        yield CheckWarning(message, hint=SQLITE_HINT, id="django_mcp.W001")


def _check_cache(settings: Settings) -> Iterator[CheckMessage]:
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
        message = f'DJANGO_MCP["SESSION_CACHE"] does nothing for {seconds} seconds.'
        hint = "Shared caches count whole seconds: set SESSION_CACHE_SECONDS to 2 or more."
        yield Error(message, hint=hint, id="django_mcp.E008")
    elif not name and seconds > 1 and not reaches_others():
        message = (
            f"Other processes may let in a session for {seconds} seconds after it has ended: "
            'DJANGO_MCP["SESSION_CACHE_SECONDS"].'
        )
        yield CheckWarning(message, hint=ENDED_HINT, id="django_mcp.W003")


def _has_settings() -> bool:
    try:
        get_settings()
    except ImproperlyConfigured:  # E002 says so
        return False
    return True


def _lets_writers_fail(database: dict[str, Any]) -> bool:
    mode = database.get("OPTIONS", {}).get("transaction_mode")
    return "sqlite3" in database["ENGINE"] and mode != "IMMEDIATE"


def _has_mount() -> bool:
    path = getattr(django_settings, "ASGI_APPLICATION", None)
    if not path:
        return False
    try:
        application = import_string(path)
    except Exception:  # whatever is wrong there is reported by what serves it
        return False
    return any(getattr(each, "is_mcp_mount", False) for each in _applications(application))


def _applications(application: Any) -> Iterable[Any]:
    yield application
    # Channels' ProtocolTypeRouter.
    yield from getattr(application, "application_mapping", {}).values()
