"""Starts a Django project under a real server, on a fresh database, for as long as a block lasts.

Used by the conformance runner and by the tests with real clients.
"""

from __future__ import annotations

import atexit
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from .databases import copy_database, remove_database

CHECKOUT = Path(__file__).resolve().parents[2]
CONFORMANCE = CHECKOUT / "tests" / "conformance"
HOST = "127.0.0.1"
READY_SECONDS = 120
"""A bound: a busy machine starts several at once."""
STOP_SECONDS = 5
COMMAND_SECONDS = 120

UVICORN = ["uvicorn", "--log-level", "warning", "--host", HOST, "--port", "{port}"]
DOORS: dict[str, list[str]] = {
    "mount": [*UVICORN, "fixture.asgi:application"],
    "asgi-view": [*UVICORN, "fixture.asgi:django_application"],
    "daphne": ["daphne", "-v", "0", "-b", HOST, "-p", "{port}", "fixture.asgi:application"],
    "gunicorn": [
        *["gunicorn", "--bind", HOST + ":{port}", "--worker-class", "uvicorn_worker.UvicornWorker"],
        *["--log-level", "warning", "fixture.asgi:application"],
    ],
    "granian": [
        *["granian", "--interface", "asgi", "--host", HOST, "--port", "{port}"],
        *["--log-level", "warning", "fixture.asgi:application"],
    ],
    "hypercorn": [
        # In the process that is asked to stop: the parent of others keeps the socket open.
        *["hypercorn", "--workers", "0", "--bind", HOST + ":{port}", "--log-level", "warning"],
        "fixture.asgi:application",
    ],
    "granian-wsgi": [
        *["granian", "--interface", "wsgi", "--host", HOST, "--port", "{port}"],
        *["--blocking-threads", "16", "--log-level", "warning", "fixture.wsgi:application"],
    ],
    "runserver": ["django", "runserver", "--skip-checks", HOST + ":{port}"],
    # The suite keeps connections open while it sends more requests: one thread would deadlock.
    "wsgi": [
        *["gunicorn", "--bind", HOST + ":{port}", "--worker-class", "gthread"],
        *["--threads", "16", "--log-level", "warning", "fixture.wsgi:application"],
    ],
}
#: Most of its threads may wait for streams; one that has broken off keeps its own for a while.
DOORS["wsgi-streams"] = [
    *[*DOORS["wsgi"], "-c", "python:django_mcp.contrib.gunicorn"],
    *["--threads", "80", "--env", "WSGI_STREAMS=64"],
]
#: Two workers of that kind, which know nothing of each other.
DOORS["wsgi-workers"] = [*DOORS["wsgi-streams"], "--workers", "2"]
DOORS["wsgi-hook"] = [*DOORS["wsgi"], "-c", "python:django_mcp.contrib.gunicorn"]
"""How each way into the package is served: the arguments after `python -m`."""


class ServerError(Exception):
    """The server did not start, or ended by itself; the message carries its log."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server process that answers on `port`."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def origin(self) -> str:
        """The start of all its addresses."""
        return f"http://{HOST}:{self.port}"

    @property
    def url(self) -> str:
        """The address of its MCP endpoint."""
        return f"{self.origin}/mcp"

    def check_alive(self) -> None:
        """Raise, with the log, if the process has ended."""
        if self.process.poll() is not None:
            raise ServerError(f"The server has ended:\n{self.log.read_text(errors='replace')}")


@contextmanager
def running_server(
    door: str, *, settings: str = "fixture.settings", path: Path = CONFORMANCE
) -> Iterator[RunningServer]:
    """Serve the project of `settings`, found at `path`, through `door`.

    The database is a new one beside that of DATABASE_URL, by default a temporary SQLite file.
    """
    with running_servers([door], settings=settings, path=path) as (servers, _):
        yield servers[0]


@contextmanager
def running_servers(
    doors: Sequence[str],
    *,
    settings: str = "fixture.settings",
    path: Path = CONFORMANCE,
    variables: Mapping[str, str] | None = None,
    port: int = 0,
) -> Iterator[tuple[list[RunningServer], dict[str, str]]]:
    """Serve a project through several doors, each a process, on one database.

    A ``port`` is for one door alone, where the project has to know it. Gives the servers, and the
    environment in which other processes find the same database.
    """
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="django-mcp-")))
        own = _environment(settings, path, directory) | dict(variables or {})
        environment = stack.enter_context(fresh_database(own))
        servers = [
            stack.enter_context(
                started(door, environment, log=directory / f"server-{number}.log", port=port)
            )
            for number, door in enumerate(doors)
        ]
        for server in servers:
            wait_until_ready(server)
        yield servers, environment


def _environment(settings: str, path: Path, directory: Path) -> dict[str, str]:
    url = os.environ.get("DATABASE_URL") or f"sqlite:///{directory / 'db.sqlite3'}"
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": settings,
        "DATABASE_URL": _renamed(url),
        "PYTHONPATH": os.pathsep.join(map(str, [CHECKOUT, CONFORMANCE, path])),
    }


def _renamed(database_url: str) -> str:
    # A database of its own for every run, also where several run on one database server.
    address, mark, query = database_url.partition("?")
    name = f"django_mcp_{uuid4().hex[:12]}"
    if address.startswith("sqlite:"):
        return f"{address}.{name}{mark}{query}"
    return f"{address.rpartition('/')[0]}/{name}{mark}{query}"


@contextmanager
def fresh_database(environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """Create the environment's database with its tables; remove it afterwards.

    The first of each project is migrated, the others are copies of it, where that is faster.
    """
    url = environment["DATABASE_URL"]
    if url.startswith("mysql"):
        _migrate(environment)
    else:
        copy_database(_template(environment), url)
    try:
        yield environment
    finally:
        remove_database(url)


def _template(environment: dict[str, str]) -> str:
    url = environment["DATABASE_URL"]
    if url.startswith("sqlite"):
        server = f"sqlite:///{tempfile.gettempdir()}/template"
    else:
        server = url.rpartition("/")[0] + "/template"
    key = (environment["DJANGO_SETTINGS_MODULE"], environment["PYTHONPATH"], server)
    if key not in _templates:
        template = _renamed(server)
        atexit.register(remove_database, template)
        _migrate(environment | {"DATABASE_URL": template})
        _templates[key] = template
    return _templates[key]


_templates: dict[tuple[str, str, str], str] = {}


def wait_until_ready(server: RunningServer) -> None:
    """Poll until the endpoint answers anything at all."""
    deadline = time.monotonic() + READY_SECONDS
    while not _answers(server.port):
        server.check_alive()
        if time.monotonic() > deadline:
            raise ServerError(f"No answer in {READY_SECONDS} s:\n{server.log.read_text()}")
        time.sleep(0.05)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=READY_SECONDS)
    try:
        connection.request("OPTIONS", "/mcp")
        connection.getresponse()
    except OSError:
        return False
    finally:
        connection.close()
    return True


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(
    door: str, environment: dict[str, str], *, log: Path, port: int = 0
) -> Iterator[RunningServer]:
    """Start a server on a database that is there; :func:`wait_until_ready` waits for it."""
    port = port or free_port()
    command = [sys.executable, "-m", *(word.format(port=port) for word in DOORS[door])]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=CONFORMANCE, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield RunningServer(process, port, log)
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    # Nobody waits for its clients any more: without the time that a process has after SIGTERM.
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)


def _migrate(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fixture.database"],
        cwd=CONFORMANCE,
        env=environment,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    if done.returncode:
        raise ServerError(f"The database could not be prepared:\n{done.stderr}")
