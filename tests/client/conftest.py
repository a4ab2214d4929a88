"""Runs each test of this directory that is a coroutine, and sees that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import RunningServer, running_servers

from .scripted import LegacyServer, ModernServer, Server

HERE = Path(__file__).resolve().parent
CLIENTS = HERE.parent / "clients"
BOUND = 30
CYCLES = 10


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine in a loop of its own, for a bounded time."""
    function = pyfuncitem.obj
    if not inspect.iscoroutinefunction(function) or not pyfuncitem.path.is_relative_to(HERE):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    asyncio.run(bounded(function(**{name: pyfuncitem.funcargs[name] for name in names})))
    return True


async def bounded(test: object) -> None:
    """Wait for a test; nobody waits for ever, and no task outlives its client."""
    asyncio.get_running_loop().set_exception_handler(complain)
    async with asyncio.timeout(BOUND):
        await test  # type: ignore[misc]
    left = others()
    for _ in range(CYCLES):
        # What was cancelled needs a moment to end.
        await asyncio.sleep(0)
        left = others()
    assert not left, left


def complain(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say what asyncio says, but not of calls that a test has made and left to their fate."""
    if "never retrieved" not in context["message"]:
        loop.default_exception_handler(context)


def others() -> set[asyncio.Task[object]]:
    """All tasks but this one."""
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]


@pytest.fixture(params=[LegacyServer, ModernServer])
def server(request: pytest.FixtureRequest) -> Server:
    """A server of each era that does what a test says."""
    made: Server = request.param()
    return made


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningServer]]:
    """Two workers of this project's own server, on one database; see tests/clients/library."""
    diary = tmp_path_factory.mktemp("library") / "diary"
    with running_servers(
        ["mount", "mount"],
        settings="library.settings",
        path=CLIENTS,
        variables={"LAYER": "", "DIARY": str(diary)},
    ) as (servers, _):
        yield servers
