"""What the load generator itself reaches: it must be several times what it is to measure."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.support.servers import HOST

from .legs import MODERN, PLAIN, Caller
from .load import Load
from .machine import Cores
from .serving import PROJECTS, serving


def reach(cores: Cores, log: Path, seconds: float) -> dict[str, Any]:
    """Return its rate against the least that can answer, and what a request costs itself."""
    command = [sys.executable, str(PROJECTS / "responder.py"), "{port}"]
    with serving(command, {}, cores.server, log) as server:
        load = Load(server.port, [Caller(PLAIN, MODERN, HOST) for _ in range(64)])
        try:
            load.run(seconds / 2)
            outcome = load.run(seconds)
        finally:
            load.close()
    return {
        "rate": round(outcome.rate),
        "microseconds": round(outcome.own_seconds / outcome.answered * 1e6, 2),
        "wrong": len(outcome.wrong),
    }
