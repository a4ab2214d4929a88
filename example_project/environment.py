"""Reads the environment: flags, lists, and the URLs of the services that settings may use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

# WAL lets readers go on while somebody writes. IMMEDIATE takes the write lock at the start of
# a transaction, so that a busy database makes it wait rather than fail halfway.
SQLITE_OPTIONS = {
    "timeout": 5,
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}
# The gap locks of InnoDB's default, REPEATABLE READ, turn plain inserts into deadlocks.
MYSQL_OPTIONS = {"charset": "utf8mb4", "isolation_level": "read committed"}

SERVERS: dict[str, tuple[str, dict[str, Any]]] = {
    "postgres": ("django.db.backends.postgresql", {}),
    "postgresql": ("django.db.backends.postgresql", {}),
    "mysql": ("django.db.backends.mysql", MYSQL_OPTIONS),
    "mariadb": ("django.db.backends.mysql", MYSQL_OPTIONS),
}


def flag(name: str, *, default: bool) -> bool:
    """Whether the variable says yes."""
    value = os.environ.get(name, "").strip().lower()
    return value in {"1", "true", "yes", "on"} if value else default


def words(name: str, *, default: list[str]) -> list[str]:
    """The comma-separated values of the variable."""
    value = os.environ.get(name, "")
    return [word.strip() for word in value.split(",") if word.strip()] or default


def database(url: str, *, base: Path) -> dict[str, Any]:
    """The entry of DATABASES for a URL; a relative SQLite path starts at `base`."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return _sqlite(parts, base)
    if parts.scheme in SERVERS:
        return _database_server(parts)
    known = ", ".join(["sqlite", *SERVERS])
    raise ImproperlyConfigured(
        f"DATABASE_URL has the scheme {parts.scheme!r}; use one of: {known}."
    )


def caches(redis_url: str) -> dict[str, Any]:
    """CACHES: Redis where there is one, else this process's memory."""
    if not redis_url:
        return {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    return {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": redis_url}}


def channel_layers(redis_url: str) -> dict[str, Any]:
    """CHANNEL_LAYERS: Redis where there is one, else this process's memory."""
    if not redis_url:
        return {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    backend = "channels_redis.core.RedisChannelLayer"
    return {"default": {"BACKEND": backend, "CONFIG": {"hosts": [redis_url]}}}


def _sqlite(parts: SplitResult, base: Path) -> dict[str, Any]:
    # As in SQLAlchemy: three slashes for a relative path, four for an absolute one.
    path = unquote(parts.path.removeprefix("/")) or parts.netloc
    if not path:
        raise ImproperlyConfigured("DATABASE_URL names no file: sqlite:///db.sqlite3, for example.")
    name = path if path == ":memory:" else str(base / path)
    options = SQLITE_OPTIONS | _options(parts)
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": name, "OPTIONS": options}


def _database_server(parts: SplitResult) -> dict[str, Any]:
    engine, options = SERVERS[parts.scheme]
    query = _options(parts)
    return {
        "ENGINE": engine,
        "NAME": unquote(parts.path.removeprefix("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        # A socket's directory does not fit in a URL's authority: ?host=/run/postgresql
        "HOST": query.pop("host", parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options | query,
    }


def _options(parts: SplitResult) -> dict[str, Any]:
    # The drivers want numbers as numbers: ?timeout=20, ?connect_timeout=3
    query = parse_qsl(parts.query)
    return {name: int(value) if value.isdigit() else value for name, value in query}
