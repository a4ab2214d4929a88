"""Places where the code of one process waits until a test, in another, lets it go on: files."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

BOUND = 60
"""Seconds after which whoever nobody lets go gives up."""
PAUSE = 0.01


class Gates:
    """Gates that all processes on this host share, by name."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def reached(self, name: str) -> bool:
        """Return whether somebody waits at a gate, or has waited."""
        return self._entered(name).exists()

    def open(self, name: str) -> None:
        """Let whoever waits go on."""
        self._opened(name).touch()

    def wait(self, name: str, unless: Callable[[], bool] = lambda: False) -> None:
        """Wait in a thread, also until there is no reason to any more."""
        self._entered(name).touch()
        end = time.monotonic() + BOUND
        while not self._opened(name).exists() and not unless():
            if time.monotonic() > end:
                raise TimeoutError(f"Nobody has opened the gate {name!r}")
            time.sleep(PAUSE)

    async def await_(self, name: str) -> None:
        """Wait on a loop."""
        self._entered(name).touch()
        async with asyncio.timeout(BOUND):
            while not self._opened(name).exists():
                await asyncio.sleep(PAUSE)

    async def until_reached(self, name: str) -> None:
        """Wait, in a test, until somebody waits."""
        async with asyncio.timeout(BOUND):
            while not self.reached(name):
                await asyncio.sleep(PAUSE)

    def _entered(self, name: str) -> Path:
        return self._directory / f"{name}.entered"

    def _opened(self, name: str) -> Path:
        return self._directory / f"{name}.opened"


def gates() -> Gates:
    """Return the gates of this server process."""
    return Gates(Path(os.environ["GATES"]))
