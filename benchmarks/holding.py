"""What sessions and idle streams hold: memory, threads, connections to the database."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from .contenders import Contender
from .rounds import Bench
from .serving import Server, Use
from .sessions import IdleStream, Refused, open_sessions

FEW = 10
"""What exists once is not counted: it is there after so many."""


@dataclass(frozen=True, slots=True)
class Held:
    """By one server."""

    contender: str
    session: float | None
    """Bytes for each; nothing where there are none."""
    stream: float | None
    """The same; nothing where there are no streams."""
    threads: tuple[int, int]
    """Before and after the streams."""
    connections: int | None
    """To the database, with all streams open."""
    why: str = ""
    """Why there are no streams."""


def measure(
    bench: Bench, contenders: Sequence[Contender], number: int, pause: float
) -> list[dict[str, Any]]:
    """Measure those contenders that are to be, with so many streams, and more sessions."""
    found: list[dict[str, Any]] = []

    def look(contender: Contender, server: Server) -> None:
        held = _measure(bench, contender, server, number, pause)
        found.append(asdict(held))
        print(f"{held}", flush=True)

    for contender in contenders:
        if contender.holds:
            bench.attempt(contender, partial(look, contender))
    return found


def _measure(bench: Bench, contender: Contender, server: Server, number: int, pause: float) -> Held:
    session = None
    if contender.sessions:
        open_sessions(server.port, FEW * 10)
        before = server.settled(pause)
        open_sessions(server.port, number * 4)
        session = (server.settled(pause).memory - before.memory) / (number * 4)
    why = "" if contender.streams else "it has none"
    few = many = server.settled(pause)
    stream = None
    streams: list[IdleStream] = []
    try:
        if contender.streams:
            try:
                # Those of sessions that are there already, so that these are counted apart.
                of = open_sessions(server.port, number) if contender.sessions else [""] * number
                few, many = _open_streams(server, streams, of, pause)
                stream = (many.memory - few.memory) / (number - FEW)
            except (Refused, OSError) as error:
                why = f"{len(streams)} of {number}: {error}"
        connections = None
        if contender.database and contender.kind == "ours":
            connections = bench.databases.connections(contender.database)
    finally:
        for each in streams:
            with suppress(OSError):
                each.close()
    threads = (few.threads, many.threads)
    return Held(contender.name, session, stream, threads, connections, why)


def _open_streams(
    server: Server, streams: list[IdleStream], sessions: Sequence[str], pause: float
) -> tuple[Use, Use]:
    streams += [IdleStream(server.port, session) for session in sessions[:FEW]]
    few = server.settled(pause)
    streams += [IdleStream(server.port, session) for session in sessions[FEW:]]
    return few, server.settled(pause)
