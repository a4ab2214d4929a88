"""``DATABASE_URL`` to an entry of ``DATABASES``; and databases that are copied and removed."""

from __future__ import annotations

import os
import shutil
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


def copy_database(template: str, url: str) -> None:
    """Make the database of ``url`` from that of ``template``, which nobody uses. Not on MySQL."""
    if url.startswith("sqlite"):
        shutil.copyfile(_file(template), _file(url))
        return
    _tell_postgresql(url, f'CREATE DATABASE "{_name(url)}" TEMPLATE "{_name(template)}"')


def remove_database(url: str) -> None:
    """Remove the database of ``url``, whoever is still connected."""
    if url.startswith("sqlite"):
        for suffix in ("", "-wal", "-shm"):
            Path(f"{_file(url)}{suffix}").unlink(missing_ok=True)
    elif url.startswith("mysql"):
        import MySQLdb  # noqa: PLC0415 - not there without the services

        parts = urlsplit(url)
        server: Any = MySQLdb.connect(
            host=parts.hostname or "",
            port=parts.port or 3306,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
        )
        server.cursor().execute(f"DROP DATABASE IF EXISTS `{_name(url)}`")
        server.close()
    else:
        _tell_postgresql(url, f'DROP DATABASE IF EXISTS "{_name(url)}" WITH (FORCE)')


def _tell_postgresql(url: str, statement: str) -> None:
    import psycopg  # noqa: PLC0415 - not there without the services

    parts = urlsplit(url)
    server = psycopg.connect(
        host=parts.hostname,
        port=parts.port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        dbname="postgres",
        autocommit=True,
    )
    with server:
        server.execute(statement)


def _name(url: str) -> str:
    return urlsplit(url).path.lstrip("/")


def _file(url: str) -> str:
    return url.partition("///")[2].partition("?")[0]
