"""Serves the bookshop through every door, and sends every client there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from tests.conformance.servers import RunningServer, running_server

from .peers import PEERS, Peer, Story

HERE = Path(__file__).resolve().parent
DOORS = ["mount", "daphne", "wsgi"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this directory."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.clients)


@pytest.fixture(scope="session")
def server_of() -> Iterator[Callable[[str], RunningServer]]:
    """Give the server of a door; it starts when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def start(door: str) -> RunningServer:
            serving = running_server(door, settings="bookshop.settings", path=HERE)
            return stack.enter_context(serving)

        yield start


@pytest.fixture(scope="session")
def walked(server_of: Callable[[str], RunningServer]) -> Callable[[Peer, str], Story]:
    """Give a client's story at a door. Each is told once, however many tests read it."""
    stories: dict[tuple[str, str], Story | BaseException] = {}

    def walk(peer: Peer, door: str) -> Story:
        key = (peer.name, door)
        if key not in stories:
            try:
                stories[key] = peer.walk(server_of(door).url)
            except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                stories[key] = error
        story = stories[key]
        if isinstance(story, BaseException):
            raise story
        return story

    return walk


def visits() -> Iterator[object]:
    """Every client at every door, as parameters of a fixture."""
    for peer, door in product(PEERS, DOORS):
        marks = [pytest.mark.node] if peer.needs_node else []
        yield pytest.param((peer, door), id=f"{peer.name}-{door}", marks=marks)


@pytest.fixture(params=visits())
def visit(request: pytest.FixtureRequest) -> tuple[Peer, str]:
    """One client at one door."""
    pair: tuple[Peer, str] = request.param
    return pair


@pytest.fixture
def peer(visit: tuple[Peer, str]) -> Peer:
    """The client that went."""
    return visit[0]


@pytest.fixture
def server(visit: tuple[Peer, str], server_of: Callable[[str], RunningServer]) -> RunningServer:
    """The server that it went to."""
    return server_of(visit[1])


@pytest.fixture
def story(visit: tuple[Peer, str], walked: Callable[[Peer, str], Story]) -> Story:
    """What the client saw."""
    return walked(*visit)
