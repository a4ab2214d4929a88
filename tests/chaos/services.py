"""PostgreSQL, MariaDB and Redis of the suite's own, which may be killed: they are nobody else's.

Each lives in a directory and listens on a port of this host. What is not installed is
:class:`Missing`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.support.servers import HOST, free_port

START_SECONDS = 60
STOP_SECONDS = 30


class Missing(Exception):
    """A program that a leg needs is not installed here."""


class Service:
    """One server program. The same port and directory before and after each restart."""

    user: str | None = None
    """As whom it runs where the suite runs as root, because it refuses root."""
    modules: tuple[str, ...] = ()
    """The packages without which nobody can talk to it."""
    crash = signal.SIGKILL
    """What ends it as a crash does."""
    orderly = signal.SIGTERM
    """What ends it in an orderly way, whoever is connected."""

    def __init__(self, directory: Path) -> None:
        self._check_is_there()
        self.port = free_port()
        self.directory = directory
        self.log = directory.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir()
        if self.user and os.geteuid() == 0:
            shutil.chown(directory, self.user)
        self.prepare()
        self.start()

    def _check_is_there(self) -> None:
        for module in self.modules:
            if find_spec(module) is None:
                raise Missing(f"{module} is not installed")
        root = os.geteuid() == 0
        if root and self.user and self.user not in {entry.pw_name for entry in pwd.getpwall()}:
            raise Missing(f"There is no user {self.user} as whom to run it")

    def prepare(self) -> None:
        """Create what there must be before the first start."""

    def command(self) -> list[str]:
        """Return the command that serves in the foreground."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it and wait until it answers."""
        with self.log.open("ab") as output:
            self._process = self._spawn(self.command(), output)
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.command()[0]}:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.05)

    def stop(self, *, hard: bool = False) -> None:
        """Stop it in an orderly way, or as a crash does."""
        if self._process is not None:
            self._process.send_signal(self.crash if hard else self.orderly)
            self._process.wait(STOP_SECONDS)

    def restart(self, seconds: float, *, hard: bool = False) -> None:
        """Let it be away for a while."""
        self.stop(hard=hard)
        time.sleep(seconds)
        self.start()

    def answers(self) -> bool:
        """Return whether it can be used."""
        try:
            socket.create_connection((HOST, self.port), timeout=2).close()
        except OSError:
            return False
        return True

    def run(self, command: list[str]) -> None:
        """Run a command as the service's user, to its end."""
        with self.log.open("ab") as output:
            if self._spawn(command, output).wait(START_SECONDS):
                raise RuntimeError(f"{command[0]}:\n{self.log.read_text()[-4000:]}")

    def _spawn(self, command: list[str], output: Any) -> subprocess.Popen[bytes]:
        as_user: dict[str, Any] = {}
        if self.user and os.geteuid() == 0:
            entry = pwd.getpwnam(self.user)
            as_user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        return subprocess.Popen(
            command, cwd=self.directory, stdout=output, stderr=subprocess.STDOUT, **as_user
        )


class Database(Service):
    """A server program that answers when it takes connections, not when it listens."""

    @property
    def url(self) -> str:
        """Its ``DATABASE_URL``."""
        raise NotImplementedError

    def connect(self) -> Any:
        """Return a connection of the suite's own."""
        raise NotImplementedError

    def break_connections(self) -> int:
        """Break all connections but this one; return how many."""
        raise NotImplementedError

    def answers(self) -> bool:
        try:
            self.connect().close()
        except Exception:
            return False
        return True


class PostgreSQL(Database):
    """Without fsync: what is killed is the program, not the machine, so nothing is lost by it."""

    user = "postgres"
    modules = ("psycopg",)
    crash = signal.SIGQUIT
    orderly = signal.SIGINT

    def prepare(self) -> None:
        self.run([program("initdb"), "-D", "data", "-U", "chaos", "-A", "trust", "--no-sync"])

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": HOST,
            "port": self.port,
            "fsync": "off",
            "max_connections": 200,
            "unix_socket_directories": "",
        }
        pairs = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return [program("postgres"), "-D", "data", *pairs]

    @property
    def url(self) -> str:
        return f"postgres://chaos@{HOST}:{self.port}/postgres"

    def connect(self) -> Any:
        import psycopg  # noqa: PLC0415  only where it is used

        return psycopg.connect(self.url, autocommit=True, connect_timeout=2)

    def break_connections(self) -> int:
        with self.connect() as connection:
            own = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
            cursor = connection.execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {own}"
            )
            return len(cursor.fetchall())


class MariaDB(Database):
    """The same with InnoDB's log flushed to the system at each commit, not to the disk."""

    user = "mysql"
    modules = ("MySQLdb",)

    def prepare(self) -> None:
        installer = program("mariadb-install-db")
        options = ["--no-defaults", f"--datadir={self.directory / 'data'}"]
        self.run([installer, *options, "--auth-root-authentication-method=normal"])

    def command(self) -> list[str]:
        return [
            *[program("mariadbd"), "--no-defaults", f"--datadir={self.directory / 'data'}"],
            *[f"--bind-address={HOST}", f"--port={self.port}"],
            *[f"--socket={self.directory / 'socket'}", "--innodb-flush-log-at-trx-commit=2"],
            *["--innodb-buffer-pool-size=64M", "--max-connections=300", "--skip-name-resolve"],
        ]

    @property
    def url(self) -> str:
        # The database `test` is there from the beginning.
        return f"mysql://root@{HOST}:{self.port}/test"

    def connect(self) -> Any:
        import MySQLdb  # noqa: PLC0415  only where it is used

        return MySQLdb.connect(host=HOST, port=self.port, user="root", connect_timeout=2)

    def break_connections(self) -> int:
        connection = self.connect()
        cursor = connection.cursor()
        own = "id <> connection_id() AND user = 'root'"
        cursor.execute(f"SELECT id FROM information_schema.processlist WHERE {own}")
        found = [number for (number,) in cursor.fetchall()]
        for number in found:
            # One that has gone by itself meanwhile is as good as broken.
            gone = "DECLARE CONTINUE HANDLER FOR 1094 BEGIN END"
            cursor.execute(f"BEGIN NOT ATOMIC {gone}; KILL {number}; END")
        connection.close()
        return len(found)


class Redis(Service):
    """Keeps nothing: whoever relies on it loses something."""

    modules = ("channels_redis",)

    def command(self) -> list[str]:
        options = ["--port", str(self.port), "--bind", HOST, "--save", "", "--appendonly", "no"]
        return [program("redis-server"), *options]

    @property
    def url(self) -> str:
        """Its ``REDIS_URL``."""
        return f"redis://{HOST}:{self.port}/0"

    def flush(self) -> None:
        """Make it forget everything."""
        with socket.create_connection((HOST, self.port), timeout=5) as connection:
            connection.sendall(b"FLUSHALL\r\n")
            connection.recv(64)


def program(name: str) -> str:
    """Return the path of an installed program, also where Debian keeps it off the path."""
    found = shutil.which(name)
    homes = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    homes += [path for path in [Path("/usr/sbin") / name] if path.exists()]
    if found is None and not homes:
        raise Missing(f"{name} is not installed")
    return str(found or homes[-1])
