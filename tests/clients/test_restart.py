"""All workers are killed and new ones started, in the middle of a conversation: no session is lost.

The balancer holds one request back while that happens, so that each client is at the
same place of its conversation every time. It loses its stream by it, and comes back by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.balancer import Balancer, Passed, resuming, served
from tests.support.servers import RunningServer, running_servers, started, wait_until_ready

from .conftest import HERE, told_once
from .peers import PEERS, Peer, Story

MOMENT = b'"relabel"'
"""What is in the request that finds new workers: the first after the client has subscribed. It is
followed by changes that the client must hear of. Once only: official clients give a stream up that
has broken off twice.
"""


class Workers:
    """Two workers on one database, and those that take their places."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self._stack = stack
        self._directory = directory
        self._servers, self._environment = stack.enter_context(
            running_servers(
                ["mount", "mount"],
                settings="library.settings",
                path=HERE,
                variables={"LAYER": "", "DIARY": str(directory / "diary")},
            )
        )
        self.killed: list[RunningServer] = []

    @property
    def ports(self) -> list[int]:
        return [server.port for server in self._servers]

    def replace(self) -> list[int]:
        """Kill all, and only then start new ones; return their ports."""
        for server in self._servers:
            server.process.kill()
            server.process.wait()
        self.killed += self._servers
        first = len(self.killed)
        self._servers = [self._start(number) for number in range(first, first + 2)]
        for server in self._servers:
            wait_until_ready(server)
        return self.ports

    def _start(self, number: int) -> RunningServer:
        log = self._directory / f"server-{number}.log"
        return self._stack.enter_context(started("mount", self._environment, log=log))


class Holding(Balancer):
    """Lets nobody through while the workers are replaced."""

    def __init__(self, workers: Workers) -> None:
        super().__init__(workers.ports)
        self._workers = workers
        self._lock = asyncio.Lock()

    async def _reach(self, passed: Passed) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with self._lock:
            if not self._workers.killed and MOMENT in passed.body:
                self.ports = await asyncio.to_thread(self._workers.replace)
        return await super()._reach(passed)


@dataclass(frozen=True)
class Outlived:
    """A conversation that has outlived its workers."""

    story: Story
    passed: list[Passed] = field(repr=False)
    killed: int


@pytest.fixture(scope="module")
def outlive(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Peer, str], Outlived]:
    """Let a client have its conversation, once."""

    @told_once
    def converse(peer: Peer, where: str) -> Outlived:
        with ExitStack() as stack:
            workers = Workers(stack, tmp_path_factory.mktemp(where))
            with served(Holding(workers)) as balancer:
                story = peer.converse(balancer.url, ())
            return Outlived(story, balancer.passed, len(workers.killed))

    return converse


def legacy_peers() -> Iterator[object]:
    """Every client that has a session to lose."""
    for peer in PEERS:
        if not peer.modern:
            marks = [pytest.mark.node] if peer.needs_node else []
            yield pytest.param(peer, id=peer.name, marks=marks)


@pytest.fixture(params=legacy_peers())
def outlived(request: pytest.FixtureRequest, outlive: Callable[[Peer, str], Outlived]) -> Outlived:
    """What became of one client's conversation."""
    return outlive(request.param, "restart")


def test_no_request_is_answered_with_404(outlived: Outlived) -> None:
    assert outlived.killed == 2
    assert [each.asks for each in outlived.passed if each.status == 404] == []


def test_the_client_opens_no_other_session(outlived: Outlived) -> None:
    opened = [each for each in outlived.passed if each.asks == "initialize"]

    assert len(opened) == 1


def test_the_conversation_goes_on_to_its_end(outlived: Outlived) -> None:
    assert outlived.story["called off"] == ["doze", "watch"]


def test_the_client_comes_back_to_its_stream_and_hears_of_every_change(outlived: Outlived) -> None:
    changes = ["book://emma", "tools", "prompts", "resources", "tools"]

    assert outlived.story["changes"]["heard"] == changes
    assert {each.status for each in resuming(outlived.passed)} == {200}
