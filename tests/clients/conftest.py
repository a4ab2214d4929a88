"""Sends every client to the bookshop, through every door, and to the library, at two workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.balancer import Cut, Passed, balancing
from tests.support.servers import RunningServer, running_server, running_servers
from tests.support.services import require_redis

from .peers import PEERS, Peer, Story

T = TypeVar("T")

HERE = Path(__file__).resolve().parent
DOORS = ["mount", "daphne", "wsgi", "wsgi-workers"]
LAYERS = {
    "none": "",
    "memory": "channels.layers.InMemoryChannelLayer",
    "redis": "channels_redis.pubsub.RedisPubSubChannelLayer",
    "threads": "",
}
"""Channel layers. That in memory reaches nobody but its own process. ``threads`` has none: there
the workers are gunicorn's, with threads and ``WSGI_STREAMS``.
"""
UNDER_WSGI = {"threads", "wsgi-workers"}
"""Where the workers are gunicorn's, with threads that may wait for streams."""
NEEDS_OWN_STREAM = {
    "test_hears_of_the_changes_that_it_wants": "it hears of them on the session's own stream",
}
"""What a client with a session is not tested for under WSGI, where GET is answered with 405, and
the reason. Its conversation goes on without the step ``changes``.
"""
CUTS = [
    # The priming event, and two sheets of six.
    Cut(after=3, having=b"Mansfield Park"),
    # The priming event alone: the question is not seen before the client has come back.
    Cut(after=1, having=b'"dictate"'),
    # The question as well: its answer is given while nobody looks at the stream.
    Cut(after=2, having=b'"testify"'),
    # The session's own stream, after the first change.
    Cut(after=2, method="GET"),
    # A modern stream of changes, after the acknowledgement and the first of them.
    Cut(after=2, having=b"book://sanditon"),
    # A modern call that has said one thing.
    Cut(after=1, having=b"cut off"),
]
"""Where each conversation is interrupted."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test of this directory, and leave out what cannot be under WSGI."""
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    left_out = [item for item in ours if _needs_own_stream(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    for item in ours:
        item.add_marker(pytest.mark.clients)
        if item.get_closest_marker("xdist_group") is None:
            # Each conversation is held once, and mostly waited for: several at the same time, each
            # by a process that serves the library for it. All other clients share a process.
            speaker, where = _where(item)
            alone = speaker is not None and where in LAYERS
            group = f"clients-{speaker.name}-{where}" if alone else "clients"
            item.add_marker(pytest.mark.xdist_group(group))


def _needs_own_stream(item: pytest.Item) -> bool:
    peer, where = _where(item)
    under_wsgi = peer is not None and not peer.modern and where in UNDER_WSGI
    return under_wsgi and getattr(item, "originalname", "") in NEEDS_OWN_STREAM


def _where(item: pytest.Item) -> tuple[Peer | None, str]:
    """The client that a test is about, and where it is sent."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    pair: tuple[Peer | None, str] = (
        parameters.get("visit") or parameters.get("meeting") or (None, "")
    )
    return pair


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

    @told_once
    def walk(peer: Peer, door: str) -> Story:
        return peer.walk(server_of(door).url)

    return walk


def told_once(tell: Callable[[Peer, str], T]) -> Callable[[Peer, str], T]:
    """Remember what a function returned, or raised, for each client."""
    told: dict[tuple[str, str], T | BaseException] = {}

    def tell_again(peer: Peer, where: str) -> T:
        key = (peer.name, where)
        if key not in told:
            try:
                told[key] = tell(peer, where)
            except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                told[key] = error
        story = told[key]
        if isinstance(story, BaseException):
            raise story
        return story

    return tell_again


def visits() -> Iterator[object]:
    """Every client at every door, as parameters of a fixture."""
    for peer, door in product(PEERS, DOORS):
        marks = [pytest.mark.node] if peer.needs_node else []
        marks += [pytest.mark.workers] if door in UNDER_WSGI else []
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


@dataclass(frozen=True)
class Conversation:
    """What a client asked, heard and answered, and the requests in which it did."""

    story: Story
    passed: list[Passed]


@pytest.fixture(scope="session")
def workers_of(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], list[RunningServer]]]:
    """Give two workers that serve the library with a channel layer."""
    with ExitStack() as stack:

        @cache
        def start(layer: str) -> list[RunningServer]:
            if layer == "redis":
                require_redis()
            diary = tmp_path_factory.mktemp("library") / "diary"
            serving = running_servers(
                ["wsgi-streams" if layer == "threads" else "mount"] * 2,
                settings="library.settings",
                path=HERE,
                variables={"LAYER": LAYERS[layer], "DIARY": str(diary)},
            )
            return stack.enter_context(serving)[0]

        yield start


@pytest.fixture(scope="session")
def conversed(
    workers_of: Callable[[str], list[RunningServer]],
) -> Callable[[Peer, str], Conversation]:
    """Give a client's conversation. Each is held once, however many tests read it."""

    @told_once
    def converse(peer: Peer, layer: str) -> Conversation:
        workers = workers_of(layer)
        with balancing([worker.port for worker in workers], CUTS) as balancer:
            try:
                without = [] if peer.modern or layer not in UNDER_WSGI else ["changes"]
                return Conversation(peer.converse(balancer.url, without), balancer.passed)
            except Exception as error:
                for passed in balancer.passed[-10:]:
                    error.add_note(f"{passed.method} {passed.asks} at {passed.worker}")
                for worker in workers:
                    error.add_note(worker.log.read_text(errors="replace")[-4000:])
                raise

    return converse


def meetings() -> Iterator[object]:
    """Every client at workers without a channel layer, and two of them with one."""
    for peer in PEERS:
        marks = [pytest.mark.node] if peer.needs_node else []
        yield pytest.param((peer, "none"), id=peer.name, marks=marks)
        workers = [*marks, pytest.mark.workers]
        yield pytest.param((peer, "threads"), id=f"{peer.name}-threads", marks=workers)
    for name, layer in [
        ("python-legacy", "memory"),
        ("python-legacy", "redis"),
        ("python-auto", "redis"),
    ]:
        peer = next(peer for peer in PEERS if peer.name == name)
        yield pytest.param((peer, layer), id=f"{name}-{layer}", marks=pytest.mark.workers)


@pytest.fixture(params=meetings())
def meeting(request: pytest.FixtureRequest) -> tuple[Peer, str]:
    """One client, and the channel layer of the workers that it speaks with."""
    pair: tuple[Peer, str] = request.param
    return pair


@pytest.fixture
def speaker(meeting: tuple[Peer, str]) -> Peer:
    """The client that speaks with the library."""
    return meeting[0]


@pytest.fixture
def talk(meeting: tuple[Peer, str], conversed: Callable[[Peer, str], Conversation]) -> Story:
    """What was said."""
    return conversed(*meeting).story


@pytest.fixture
def passed(
    meeting: tuple[Peer, str], conversed: Callable[[Peer, str], Conversation]
) -> list[Passed]:
    """The requests in which it was said, as the balancer saw them."""
    return conversed(*meeting).passed
