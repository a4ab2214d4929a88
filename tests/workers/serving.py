"""Starts the workers, two by default, on a database of their own, and runs clients against them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.servers import RunningServer, running_servers

from .shop.gates import Gates

HERE = Path(__file__).resolve().parent
BOUND = 400


class Workers:
    """Server processes on one database."""

    def __init__(self, servers: list[RunningServer], environment: dict[str, str]) -> None:
        self.servers = servers
        self.environment = environment
        self.gates = Gates(Path(environment["GATES"]))
        self.database = environment["DATABASE_URL"].partition(":")[0]
        shared = not environment.get("LAYER") and self.database != "sqlite"
        self.is_thorough = shared
        """Whether the long forms run here: once on each database that several hosts can share."""

    @property
    def urls(self) -> list[str]:
        """The address of each one's endpoint."""
        return [server.url for server in self.servers]

    def run(self, main: Callable[[httpx.AsyncClient], Coroutine[Any, Any, Any]]) -> Any:
        """Run a client against them, for a bounded time."""

        async def bounded() -> Any:
            # For good: httpcore may close a connection that expires in the moment it is used again.
            limits = httpx.Limits(keepalive_expiry=None)
            async with (
                asyncio.timeout(BOUND),
                httpx.AsyncClient(timeout=60, limits=limits) as http,
            ):
                return await main(http)

        try:
            return asyncio.run(bounded())
        except BaseException:
            for server in self.servers:
                print(server.log.read_text(errors="replace")[-8000:])
            raise


@contextmanager
def serving(*doors: str, **variables: str) -> Iterator[Workers]:
    """Serve the shop by a process for each door: by two, at the mount, unless told otherwise."""
    with tempfile.TemporaryDirectory(prefix="django-mcp-gates-") as gates:
        started = running_servers(
            doors or ["mount"] * 2,
            settings="shop.settings",
            path=HERE,
            variables={
                **variables,
                "GATES": gates,
                "UVICORN_TIMEOUT_KEEP_ALIVE": str(BOUND),
                "PYTHONFAULTHANDLER": "1",
            },
        )
        with started as (servers, environment):
            yield Workers(servers, environment)
