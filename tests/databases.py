"""``DATABASE_URL`` to an entry of ``DATABASES``."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
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
    """Return the settings for ``url``; for an empty one, SQLite.

    The test database of SQLite is a file: one in memory never closes its connections, and locks
    unlike any that a site has.
    """
    if not url or url.startswith("sqlite"):
        scratch = Path(tempfile.gettempdir()) / f"django_mcp_{os.getpid()}.sqlite3"
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": url.partition("///")[2] or str(scratch),
            "OPTIONS": SQLITE_OPTIONS,
            "TEST": {"NAME": str(scratch)},
        }
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
