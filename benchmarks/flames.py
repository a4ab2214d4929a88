"""Where the time of a quiet call goes: the stacks of a server under load, sampled by py-spy.

Looked at is whoever has the interpreter, from where the server hands a request over. What it does
before and after, and what a driver does without the interpreter, is not seen. A view has one thread
then: several, stopped for each look, are mostly found handing the interpreter to each other.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from .contenders import Cell, Contender, with_one_thread
from .legs import ADD, ERAS, LEGACY, MODERN
from .load import Load
from .rounds import Bench, callers
from .serving import Failed, Server

NEEDED = "py-spy"
HERTZ = 500
FEWEST = 20
"""Samples without which there is nothing to tell."""
LEAST = 0.006
"""The share of the samples below which a frame is not drawn."""
FLAMED = {
    ("view, granian WSGI", MODERN): "view-modern",
    ("view, granian WSGI", LEGACY): "view-session",
    ("mount, uvicorn", MODERN): "mount-modern",
    ("mount, uvicorn", LEGACY): "mount-session",
}
"""Which calls are looked at, and what their pictures are called."""
ORIGINS = {
    "django_mcp": "django_mcp",
    "django": "Django",
    "asgiref": "Django",
    "pydantic": "pydantic",
    "psycopg": "driver",
}
"""Whose code a frame is, by the first part of its file's path; else the server's or Python's."""
REST = "server, Python"


@dataclass(slots=True)
class Frame:
    """A function as it was called from where it was, with what it called."""

    name: str
    origin: str
    samples: int = 0
    calls: dict[str, Frame] = field(default_factory=dict)

    def as_json(self, total: int) -> list[Any]:
        """Return it without what is too small to see."""
        kept = [each for each in self.calls.values() if each.samples >= total * LEAST]
        share = round(self.samples / total, 4)
        return [self.name, self.origin, share, [each.as_json(total) for each in kept]]


def measure(bench: Bench, contenders: Sequence[Contender], seconds: float) -> list[dict[str, Any]]:
    """Sample those servers that are to be looked at, each for so many seconds."""
    found: list[dict[str, Any]] = []

    def look(contender: Contender, cell: Cell, picture: str, server: Server) -> None:
        stacks = summed_up(_sample(bench, server, contender, cell, seconds))
        if stacks["samples"] < FEWEST:
            raise Failed(f"{NEEDED} saw {stacks['samples']} stacks of the package at work")
        found.append({"contender": contender.name, "cell": cell.name, "picture": picture} | stacks)

    for contender in contenders:
        for era in ERAS:
            picture = FLAMED.get((contender.name, era))
            if picture is not None and shutil.which(NEEDED, path=_path()) is None:
                bench.leave_out(f"where the time goes: {picture}", f"{NEEDED} is not installed")
            elif picture is not None:
                work = partial(look, contender, Cell(ADD, era), picture)
                bench.attempt(with_one_thread(contender), work)
    return found


def summed_up(lines: Iterable[str]) -> dict[str, Any]:
    """Return the stacks, each a line that ends in a number, as one tree and as shares."""
    root = Frame("all", REST)
    shares: Counter[str] = Counter()
    for line in lines:
        stack, _, number = line.rpartition(" ")
        frames = [_frame(each) for each in stack.split(";")]
        if not any(origin == "django_mcp" for _, origin in frames):
            continue  # waiting, accepting, keeping books
        samples = int(number)
        frame = root
        frame.samples += samples
        for name, origin in frames:
            frame = frame.calls.setdefault(name, Frame(name, origin))
            frame.samples += samples
        shares[frames[-1][1]] += samples
    total = root.samples
    return {
        "samples": total,
        "shares": {name: round(number / total, 4) for name, number in shares.most_common()},
        "tree": _without_beginning(root).as_json(max(total, 1)),
    }


def _without_beginning(frame: Frame) -> Frame:
    """Return the first frame below which the stacks differ, or are not the server's any more."""
    while len(frame.calls) == 1:
        (only,) = frame.calls.values()
        if only.origin != REST:
            break
        frame = only
    return frame


def _frame(text: str) -> tuple[str, str]:
    """Return the name and the origin of a frame as py-spy writes it, ``name (path/file.py)``."""
    name, _, path = text.rpartition(" (")
    path = path.rstrip(")")
    parts = Path(path.rpartition(":")[0] or path).parts
    for part in parts:
        if part in ORIGINS or part.removesuffix("_core") in ORIGINS:
            return name, ORIGINS.get(part) or ORIGINS[part.removesuffix("_core")]
    return name, REST


def _sample(
    bench: Bench, server: Server, contender: Contender, cell: Cell, seconds: float
) -> list[str]:
    stacks = bench.logs / f"stacks-{server.port}.txt"
    load = Load(server.port, callers(server, contender, cell))
    command = [
        *(NEEDED, "record", "--function"),
        "--gil",  # a thread that waits costs nothing
        *("--format", "raw", "--rate", str(HERTZ), "--duration", f"{max(round(seconds), 1)}"),
        *("--output", str(stacks)),
    ]
    try:
        load.run(seconds / 2)
        command += ["--pid", str(server.busiest())]
        with subprocess.Popen(
            command, env={"PATH": _path()}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as sampling:
            while sampling.poll() is None:
                load.run(0.5)
    finally:
        load.close()
    return stacks.read_text().splitlines() if stacks.exists() else []


def _path() -> str:
    return f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
