"""What was aimed at, beside what a run has measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .contenders import LEAST, REFERENCE
from .figures import Spread
from .legs import LEGACY, MODERN
from .results import Results, cell_name

ADD_SESSION, ADD_MODERN = cell_name("add", LEGACY), cell_name("add", MODERN)
ADD_OTHER, OPEN = cell_name("add other", MODERN), cell_name("open", LEGACY)
PLAIN = (REFERENCE, cell_name("plain", MODERN))
SDK = "Python SDK, JSON"
VIEW, MOUNT, BOLT = "view, gunicorn gthread", "mount, uvicorn", "bolt-mcp, sessions, events"
VIEW_REMEMBERING, MOUNT_REMEMBERING = f"{VIEW}, session remembered", f"{MOUNT}, session remembered"
POLL_MS = 500
NOT_MEASURED = "not measured"


SELECT, TELL = cell_name("select", LEGACY), cell_name("tell", LEGACY)
RATIOS = (
    ("view under gthread, modern call, to the bare view", 0.92, (VIEW, ADD_MODERN), PLAIN),
    (
        "view under gthread, session in PostgreSQL, to the bare view",
        0.5,
        (VIEW, ADD_SESSION),
        PLAIN,
    ),
    (
        "view under gthread, session remembered for a second, to the bare view",
        0.85,
        (VIEW_REMEMBERING, ADD_SESSION),
        PLAIN,
    ),
    (
        "view under gthread, asynchronous tool, modern call, to the bare view",
        0.5,
        (VIEW, ADD_OTHER),
        PLAIN,
    ),
    (
        "mount under uvicorn, session in PostgreSQL, to the Python SDK's in memory, JSON",
        1.8,
        (MOUNT, ADD_SESSION),
        (SDK, ADD_SESSION),
    ),
    (
        "mount under uvicorn, session remembered for a second, to the Python SDK's, JSON",
        5.0,
        (MOUNT_REMEMBERING, ADD_SESSION),
        (SDK, ADD_SESSION),
    ),
    (
        "mount under uvicorn, modern call, to the Python SDK's, JSON",
        6.0,
        (MOUNT, ADD_MODERN),
        (SDK, ADD_MODERN),
    ),
    (
        "mount under uvicorn, synchronous tool, modern call, to the Python SDK's, JSON",
        3.0,
        (MOUNT, ADD_OTHER),
        (SDK, ADD_MODERN),
    ),
    (
        "mount under uvicorn, `initialize` in PostgreSQL, to the Python SDK's in memory, JSON",
        1.0,
        (MOUNT, OPEN),
        (SDK, OPEN),
    ),
    (
        "one ORM SELECT in the tool, mount, session in PostgreSQL, to bolt-mcp's in memory",
        0.8,
        (MOUNT, SELECT),
        (BOLT, SELECT),
    ),
    (
        "one ORM SELECT in the tool, view under gthread, session in PostgreSQL, likewise",
        0.8,
        (VIEW, SELECT),
        (BOLT, SELECT),
    ),
    (
        "a call that says three things, mount under uvicorn, to the Python SDK's",
        2.0,
        (MOUNT, TELL),
        ("Python SDK, events", TELL),
    ),
)
"""What, at least how many times as fast, who, as whom."""


@dataclass(frozen=True, slots=True)
class Target:
    """One aim."""

    title: str
    aim: str
    measured: str
    reached: bool | None
    """Nothing where it was not measured."""
    processor: str = ""
    """Of a ratio: the same by the time that the servers' core took, whatever else it did."""


GROWN = (("add", 16), ("linger", 64), ("open", 16))
"""What is measured beside ever more sessions, and over how many connections."""


def targets(results: Results) -> Iterator[Target]:
    """Yield all of them."""
    for title, least, one, other in RATIOS:
        found = results.ratio(one, other)
        used = results.ratio(other, one, "microseconds")
        aim = f"≥ {least:g} ×"
        if found is None or used is None:
            yield Target(title, aim, NOT_MEASURED, None)
        else:
            reached = found.median >= least
            yield Target(title, aim, _times(found), reached, f"{used.median:.2f} ×")
    yield from _held(results)
    yield from _grown(results)
    yield from _woken(results)


def _held(results: Results) -> Iterator[Target]:
    for held in results.report["held"]:
        if held["contender"] != MOUNT:
            continue
        session = held["session"] / 1024
        yield Target("memory for each open session", "0 KB", f"{session:.1f} KB", session < 0.5)
        if held["stream"] is not None:
            stream, (before, after) = held["stream"] / 1024, held["threads"]
            measured = f"{stream:.1f} KB{_of_the_server(results)}"
            yield Target("memory for each idle stream", "≤ 10 KB", measured, stream <= 10)
            yield Target(
                "threads, while idle streams are opened",
                "constant",
                f"{before} → {after}",
                before == after,
            )


def _of_the_server(results: Results) -> str:
    """Say what the server alone holds for a stream, with nothing of ours in it."""
    least = [each["stream"] for each in results.report["held"] if each["contender"] == LEAST]
    return f", of which {least[0] / 1024:.1f} KB are the server's" if least and least[0] else ""


def _grown(results: Results) -> Iterator[Target]:
    levels = results.report["levels"]
    few, many = (f"{MOUNT}, {level:,} sessions" for level in (levels[0], levels[-1]))
    for leg, connections in GROWN:
        cell = cell_name(leg, LEGACY, connections)
        found = results.ratio((few, cell), (many, cell))
        title = f"time for `{leg}` from {levels[0]:,} to {levels[-1]:,} sessions and queues"
        if found is None:
            yield Target(title, "≤ +10 %", NOT_MEASURED, None)
        else:
            yield Target(title, "≤ +10 %", f"{found.median - 1:+.0%}", found.median <= 1.1)


def _woken(results: Results) -> Iterator[Target]:
    aims = {"Redis": 5.0, "polling": float(POLL_MS)}
    for how, aim in aims.items():
        title = f"wake-up of a stream at another process, by {how}, median"
        found = [each["median"] for each in results.report["woken"] if each["how"] == how]
        if found:
            yield Target(title, f"≤ {aim:g} ms", f"{found[0]:.1f} ms", found[0] <= aim)
        else:
            yield Target(title, f"≤ {aim:g} ms", NOT_MEASURED, None)


def _times(found: Spread) -> str:
    return f"{found.median:.2f} × ({found.least:.2f} to {found.most:.2f})"
