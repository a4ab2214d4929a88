"""Databases of the benchmark's own, with the durability of production, beside the load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.chaos.services import MariaDB, Missing, PostgreSQL, Redis

from .serving import PROJECTS, environment

__all__ = ["Databases", "Missing", "Redis"]


class Durable(PostgreSQL):
    """PostgreSQL that keeps what it has committed."""

    def command(self) -> list[str]:
        return [
            *super().command(),
            "-c",
            "fsync=on",
            "-c",
            "shared_buffers=512MB",
            "-c",
            "max_wal_size=8GB",
        ]


class DurableMariaDB(MariaDB):
    """MariaDB that keeps what it has committed."""

    def command(self) -> list[str]:
        options = ["--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=512M"]
        return [*super().command(), *options]


class Databases:
    """Started when somebody first asks for one, with tables and rows, and stopped at the end.

    A database is named by its server, ``postgres``, ``mariadb`` or ``sqlite``, and, after a colon,
    by what it is filled with. The servers inherit the core of the process that starts them.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._services: dict[str, Durable | DurableMariaDB] = {}
        self._missing: dict[str, Missing] = {}
        self._urls: dict[str, str] = {}

    def url(self, name: str) -> str:
        """Return the address of a database that is ready, or raise :class:`Missing`."""
        if not name:
            return ""
        if name not in self._urls:
            self._urls[name] = self._create(name)
        return self._urls[name]

    def connections(self, name: str) -> int:
        """Return how many connections there are to a server, beside the one that asks."""
        service = self._services[name.partition(":")[0]]
        if isinstance(service, Durable):
            with service.connect() as connection:
                own = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
                query = f"SELECT count(*) FROM pg_stat_activity WHERE {own}"
                return int(connection.execute(query).fetchone()[0])
        raise LookupError(name)

    def close(self) -> None:
        """Stop what was started."""
        for service in self._services.values():
            service.stop()

    def _create(self, name: str) -> str:
        kind, _, filled = name.partition(":")
        if kind == "sqlite":
            url = f"sqlite:///{self._directory / f'{name}.sqlite3'}"
        else:
            service = self._service(kind)
            url = service.url
            if filled:
                url = _beside(service, f"filled_{filled}")
        run_django("migrate", url, ["migrate", "--run-syncdb", "-v", "0"])
        run_django("fill", url, ["shell", "-v", "0", "-c", _FILL % int(filled or 0)])
        return url

    def _service(self, kind: str) -> Durable | DurableMariaDB:
        if kind in self._missing:
            raise self._missing[kind]
        if kind not in self._services:
            found = Durable if kind == "postgres" else DurableMariaDB
            try:
                self._services[kind] = found(self._directory / kind)
            except Missing as error:
                self._missing[kind] = error
                raise
        return self._services[kind]


_FILL = "from benchmarks.filling import fill; fill(%d)"


def _beside(service: Durable | DurableMariaDB, name: str) -> str:
    connection = service.connect()
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()
    return f"{service.url.rpartition('/')[0]}/{name}"


def run_django(what: str, url: str, words: list[str]) -> None:
    """Run a command of Django's in the project of ours."""
    variables = environment() | {"DJANGO_SETTINGS_MODULE": "ours.settings", "DATABASE_URL": url}
    done = subprocess.run(
        [sys.executable, "-m", "django", *words],
        cwd=PROJECTS,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{what}:\n{done.stderr[-2000:]}")
