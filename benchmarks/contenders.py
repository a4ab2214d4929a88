"""Who is compared: how each is started, and which legs it takes part in.

One process each, with the settings of production: no debugging, no access log, the fast event loop
and parser where there is a choice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from .environments import ENVIRONMENTS
from .legs import (
    ADD,
    ADD_OTHER,
    DISCOVER,
    ERAS,
    LEGACY,
    LINGER,
    LIST,
    MODERN,
    OPEN,
    PLAIN,
    PLAIN_SELECT,
    SELECT,
    TELL,
    Leg,
)

THREADS = "8"
OURS, PEER, BARE = "ours", "peer", "bare"
USUAL = 16
"""Connections, unless a cell says otherwise."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing that is measured at a server."""

    leg: Leg
    era: str = MODERN
    connections: int = USUAL
    path: str = "/mcp"

    @property
    def name(self) -> str:
        """What it is called in the figures."""
        return f"{self.leg.name} {self.era} {self.connections}"


@dataclass(frozen=True, slots=True)
class Contender:
    """A server."""

    name: str
    kind: str
    command: tuple[str, ...]
    cells: tuple[Cell, ...]
    environment: str = ""
    """Of which peer; empty for our own."""
    variables: dict[str, str] = field(default_factory=dict)
    database: str = ""
    sessions: bool = True
    """Whether legacy requests belong to a session."""
    holds: bool = False
    """Whether what its sessions and streams hold is measured."""
    streams: bool = True
    """Whether it has streams that clients GET."""

    def arguments(self) -> list[str]:
        """Return the command with the interpreter of its environment."""
        if not self.environment:
            return [sys.executable, "-m", *self.command]
        home = ENVIRONMENTS[self.environment]
        if home.is_node:
            return [word.replace("{directory}", str(home.directory)) for word in self.command]
        return [str(home.python), "-m", *self.command]


def _gunicorn(application: str = "wsgi:application") -> tuple[str, ...]:
    options = ("--workers", "1", "--worker-class", "gthread", "--threads", THREADS)
    return ("gunicorn", "--bind", "127.0.0.1:{port}", *options, "--log-level", "error", application)


def _granian(interface: str, application: str) -> tuple[str, ...]:
    options = ("--host", "127.0.0.1", "--port", "{port}", "--workers", "1", "--no-ws")
    threads = ("--blocking-threads", THREADS) if interface == "wsgi" else ()
    return (
        *("granian", "--interface", interface, *options, *threads),
        *("--log-level", "error", application),
    )


def with_one_thread(contender: Contender) -> Contender:
    """Return a contender whose requests do not wait for each other's threads."""
    command = tuple("1" if word == THREADS else word for word in contender.command)
    return replace(contender, command=command)


def _uvicorn(application: str) -> tuple[str, ...]:
    options = ("--host", "127.0.0.1", "--port", "{port}", "--no-access-log")
    return ("uvicorn", *options, "--log-level", "error", application)


def _daphne(application: str) -> tuple[str, ...]:
    return ("daphne", "-b", "127.0.0.1", "-p", "{port}", "-v", "0", application)


def _cells(*legs: Leg, eras: tuple[str, ...] = (LEGACY, MODERN)) -> tuple[Cell, ...]:
    every = [Cell(leg, era) for era in eras for leg in legs]
    every += [Cell(OPEN, LEGACY)] if LEGACY in eras else []
    every += [Cell(DISCOVER, MODERN)] if MODERN in eras else []
    return tuple(every)


def _lingering(era: str) -> Cell:
    # Many, so that there is always something to do while others wait.
    return Cell(LINGER, era, 64)


def _few_and_many(leg: Leg, era: str) -> tuple[Cell, ...]:
    return (Cell(leg, era, 1), Cell(leg, era, 64))


_DJANGO = {"DJANGO_SETTINGS_MODULE": "bare.settings"}
_VIEW = {"DJANGO_SETTINGS_MODULE": "ours.settings", "DOOR": "wsgi"}
_MOUNT = {"DJANGO_SETTINGS_MODULE": "ours.settings", "DOOR": "asgi"}
_POOL = {"DATABASE_POOL": "1"}
_REMEMBERING = {"SESSION_CACHE_SECONDS": "1"}
_PLAIN = (Cell(PLAIN),)

REFERENCE = "bare Django view, gunicorn gthread"

LEAST = "bare ASGI, uvicorn"

BARES = (
    Contender(LEAST, BARE, _uvicorn("bare_asgi:application"), _PLAIN, sessions=False, holds=True),
    Contender(
        REFERENCE,
        BARE,
        _gunicorn(),
        (*_PLAIN, *_few_and_many(PLAIN, MODERN), Cell(PLAIN_SELECT, path="/select")),
        variables=_DJANGO,
        database="postgres",
    ),
    Contender(
        "bare Django view, granian WSGI",
        BARE,
        _granian("wsgi", "wsgi:application"),
        (*_PLAIN, Cell(PLAIN_SELECT, path="/select")),
        variables=_DJANGO,
        database="postgres",
    ),
    Contender(
        "bare Django view, uvicorn",
        BARE,
        _uvicorn("asgi:application"),
        _PLAIN,
        variables=_DJANGO,
    ),
    Contender(
        "bare Django view, Daphne", BARE, _daphne("asgi:application"), _PLAIN, variables=_DJANGO
    ),
)

_VIEW_CELLS = _cells(ADD, SELECT, LIST)
_OTHER = (Cell(ADD_OTHER, MODERN),)
_MOUNT_CELLS = (*_cells(ADD, SELECT, TELL, LIST), *map(_lingering, ERAS))

ENTRANCES = (
    Contender(
        "view, gunicorn gthread",
        OURS,
        _gunicorn(),
        (*_VIEW_CELLS, *_OTHER, *_few_and_many(ADD, LEGACY), *_few_and_many(ADD, MODERN)),
        variables=_VIEW,
        database="postgres",
        holds=True,
        streams=False,
    ),
    Contender(
        "view, granian WSGI",
        OURS,
        _granian("wsgi", "wsgi:application"),
        _VIEW_CELLS,
        variables=_VIEW,
        database="postgres",
    ),
    Contender(
        "mount, uvicorn",
        OURS,
        _uvicorn("ours.asgi:application"),
        (*_MOUNT_CELLS, *_OTHER, *_few_and_many(ADD, LEGACY), *_few_and_many(ADD, MODERN)),
        variables=_MOUNT,
        database="postgres",
        holds=True,
    ),
    Contender(
        "mount, granian ASGI",
        OURS,
        _granian("asgi", "ours.asgi:application"),
        _MOUNT_CELLS,
        variables=_MOUNT,
        database="postgres",
    ),
    Contender(
        "mount, Daphne",
        OURS,
        _daphne("ours.asgi:application"),
        _MOUNT_CELLS,
        variables=_MOUNT,
        database="postgres",
    ),
    Contender(
        "view, uvicorn",
        OURS,
        _uvicorn("asgi:application"),
        _cells(ADD),
        variables=_VIEW,
        database="postgres",
        holds=True,
    ),
    # Under ASGI Django gives each request a thread, which has a connection to itself.
    Contender(
        "view, uvicorn, connection pool",
        OURS,
        _uvicorn("asgi:application"),
        (Cell(ADD, LEGACY), Cell(OPEN, LEGACY)),
        variables=_VIEW | _POOL,
        database="postgres",
    ),
    Contender(
        "view, gunicorn gthread, session remembered",
        OURS,
        _gunicorn(),
        (Cell(ADD, LEGACY), Cell(SELECT, LEGACY)),
        variables=_VIEW | _REMEMBERING,
        database="postgres",
        streams=False,
    ),
    Contender(
        "mount, uvicorn, session remembered",
        OURS,
        _uvicorn("ours.asgi:application"),
        (Cell(ADD, LEGACY), Cell(SELECT, LEGACY)),
        variables=_MOUNT | _REMEMBERING,
        database="postgres",
    ),
)


def elsewhere() -> Iterator[Contender]:
    """Yield two entrances on the other databases."""
    for entrance in (ENTRANCES[0], ENTRANCES[2]):
        for database, title in (("mariadb", "MariaDB"), ("sqlite", "SQLite")):
            yield replace(
                entrance,
                name=f"{entrance.name}, {title}",
                cells=(Cell(ADD, LEGACY), Cell(SELECT, LEGACY), Cell(OPEN, LEGACY)),
                database=database,
                holds=False,
            )


def grown(levels: tuple[int, ...], database: str = "postgres") -> Iterator[Contender]:
    """Yield an entrance beside so many sessions, each with a stream, a request and a message."""
    cells = (Cell(ADD, LEGACY), Cell(ADD, LEGACY, 1), _lingering(LEGACY), Cell(OPEN, LEGACY))
    for level in levels:
        yield replace(
            ENTRANCES[2],
            name=f"mount, uvicorn, {level:,} sessions",
            cells=cells,
            database=f"{database}:{level}",
            holds=False,
        )


def _sdk(name: str, application: str, environment: str) -> Iterator[Contender]:
    command = _uvicorn(application)
    for form, variables in (("events", {}), ("JSON", {"JSON": "1"})):
        legs = (ADD, TELL, LIST) if form == "events" else (ADD, LIST)
        many = (*_few_and_many(ADD, LEGACY), *_few_and_many(ADD, MODERN))
        yield Contender(
            f"{name}, {form}",
            PEER,
            command,
            (*_cells(*legs), *(many if form == "JSON" else map(_lingering, ERAS))),
            environment,
            variables,
            holds=form == "events",
        )


def _bolt() -> Iterator[Contender]:
    run = ("django", "runbolt", "--host", "127.0.0.1", "--port", "{port}", "--no-admin")
    settings = {"DJANGO_SETTINGS_MODULE": "peers.bolt.settings"}
    # In a session it sends log messages on the stream that the client GETs, not with the answer.
    told = (Cell(TELL, MODERN), _lingering(MODERN))
    every = (*_cells(ADD, SELECT, LIST), *told, *_few_and_many(ADD, LEGACY))
    for name, variables, cells in (
        ("bolt-mcp, sessions, events", {}, every),
        ("bolt-mcp, stateless, JSON", {"STATELESS": "1", "JSON": "1"}, _legacy(ADD, SELECT, LIST)),
    ):
        yield Contender(
            name,
            PEER,
            run,
            cells,
            "bolt",
            settings | variables,
            "postgres",
            sessions="STATELESS" not in variables,
            holds="STATELESS" not in variables,
        )


def _legacy(*legs: Leg) -> tuple[Cell, ...]:
    return _cells(*legs, eras=(LEGACY,))


def _typescript() -> Iterator[Contender]:
    for version in ("1", "2"):
        for form, variables in (("events", {}), ("JSON", {"JSON": "1"})):
            yield Contender(
                f"TypeScript SDK v{version}, {form}",
                PEER,
                ("node", f"{{directory}}/v{version}.mjs", "{port}"),
                (*_legacy(ADD, TELL, LIST), _lingering(LEGACY))
                if form == "events"
                else _legacy(ADD, LIST),
                f"typescript-{version}",
                variables,
                holds=form == "events",
            )
    yield Contender(
        "TypeScript SDK v2, modern",
        PEER,
        ("node", "{directory}/v2-modern.mjs", "{port}"),
        (*_cells(ADD, TELL, LIST, eras=(MODERN,)), _lingering(MODERN)),
        "typescript-2",
    )


PEERS = (
    *_sdk("Python SDK", "peers.sdk:application", "sdk"),
    *_sdk("FastMCP", "peers.fast:application", "fastmcp"),
    *_bolt(),
    Contender(
        "django-mcpz, gthread",
        PEER,
        _gunicorn(),
        (*_cells(ADD, SELECT, LIST), *_few_and_many(ADD, LEGACY)),
        "mcpz",
        {"DJANGO_SETTINGS_MODULE": "peers.mcpz.settings"},
        "postgres",
        sessions=False,
    ),
    Contender(
        "django-mcp-server, gthread, sessions",
        PEER,
        _gunicorn(),
        _legacy(ADD, SELECT, LIST),
        "django-mcp-server",
        {"DJANGO_SETTINGS_MODULE": "peers.mcp_server_site.settings"},
        "postgres",
    ),
    Contender(
        "django-mcp-server, gthread, stateless",
        PEER,
        _gunicorn(),
        _legacy(ADD, SELECT, LIST),
        "django-mcp-server",
        {"DJANGO_SETTINGS_MODULE": "peers.mcp_server_site.settings", "STATELESS": "1"},
        "postgres",
        sessions=False,
    ),
    *_typescript(),
)
