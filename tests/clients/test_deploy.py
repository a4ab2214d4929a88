"""The official clients hear of what changes after a deploy: none of them loses its stream.

Two workers are asked to stop at once. One has nothing to do, the other one is held up by a call;
behind the first the balancer tries it, as long as it takes connections, and only then the third.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.client import Server, StatelessClient
from tests.support.forwarding import forwarding
from tests.workers.serving import Workers, serving

from .conftest import HERE
from .isolated import own_environment, python_of
from .peers import TYPESCRIPT, find_node

pytestmark = [pytest.mark.workers, pytest.mark.xdist_group("deploy")]
HEARING = HERE / "hearing"
BOUND = 60
CHANGED = "notifications/tools/list_changed"
GRACE_SECONDS = 4


class Hearer:
    """An official client in a process of its own, and the changes that it has heard of."""

    def __init__(self, stack: ExitStack, command: Sequence[str | Path]) -> None:
        self.heard: list[str] = []
        self._process = subprocess.Popen(
            command, cwd=HERE, env=own_environment(), stdout=subprocess.PIPE, text=True
        )
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        stack.callback(self._end)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.heard.append(line.strip())

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join()


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Two that are going to be asked to stop, and one that stays."""
    with serving("mount", "mount", "mount", SHUTDOWN=str(GRACE_SECONDS)) as served:
        yield served


def test_the_clients_in_python_hear_of_a_change_after_a_deploy(workers: Workers) -> None:
    heard = changes_heard(
        workers,
        [python_of("python-sdk-1.30"), HEARING / "python_1.py"],
        [sys.executable, HEARING / "python_2.py"],
    )
    assert heard == [[CHANGED], [CHANGED]]


@pytest.mark.node
def test_the_clients_in_typescript_hear_of_a_change_after_a_deploy(workers: Workers) -> None:
    hear = [find_node(), TYPESCRIPT / "hear.mjs"]
    assert changes_heard(workers, [*hear, "1"], [*hear, "2"]) == [[CHANGED], [CHANGED]]


def changes_heard(workers: Workers, *commands: Sequence[str | Path]) -> list[list[str]]:
    """Let clients open their streams, deploy, and announce a change; return what each has heard."""
    with ExitStack() as stack:
        ports = [server.port for server in workers.servers]
        url = stack.enter_context(forwarding(ports, "in-order"))
        hearers = [Hearer(stack, [*command, url]) for command in commands]

        async def main(http: httpx.AsyncClient) -> None:
            first, second, third = (StatelessClient(Server(each, http)) for each in workers.urls)
            await until(lambda: shows(first, len(hearers)))
            assert not any(each.heard for each in hearers)
            held = asyncio.create_task(held_up(second))
            await workers.gates.until_reached("held")
            for server in workers.servers[:2]:
                server.process.send_signal(signal.SIGTERM)
            await until(lambda: shows(third, len(hearers)))
            await third.value("change_tools")
            await until(lambda: all_have_heard(hearers))
            await held

        workers.run(main)
        return [each.heard for each in hearers]


async def held_up(worker: StatelessClient) -> None:
    """Make a call that lasts for the whole grace."""
    async with worker.post("tools/call", name="ahold", arguments={"value": "held"}) as answer:
        (end,) = await answer.messages()
    assert "error" in end


async def shows(worker: StatelessClient, count: int) -> bool:
    """Whether so many streams of sessions are shown by a worker."""
    waiting = await worker.value("waiting_here")
    return bool(waiting["readers"] == count)


async def all_have_heard(hearers: Sequence[Hearer]) -> bool:
    """Whether each client has heard of a change."""
    return all(each.heard for each in hearers)


async def until(ask: Callable[[], Any]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(BOUND):
        while not await ask():
            await asyncio.sleep(0.1)
