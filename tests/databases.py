"""``DATABASE_URL`` to an entry of ``DATABASES``."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

ENGINES = {
    "postgres": "django.db.backends.postgresql",
    "postgresql": "django.db.backends.postgresql",
    "mysql": "django.db.backends.mysql",
}
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
}


def database_from_url(url: str) -> dict[str, Any]:
    """Return the settings for ``url``; for an empty one, SQLite in memory."""
    if not url or url.startswith("sqlite"):
        path = url.partition("///")[2] or ":memory:"
        options = SQLITE_OPTIONS if path != ":memory:" else {"transaction_mode": "IMMEDIATE"}
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": path, "OPTIONS": options}
    parts = urlsplit(url)
    return {
        "ENGINE": ENGINES[parts.scheme],
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "OPTIONS": {"charset": "utf8mb4"} if parts.scheme == "mysql" else {},
    }
