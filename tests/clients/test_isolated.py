"""Older generations of the SDK, FastMCP and the adapters of frameworks, by value.

At two workers behind a balancer that takes each request to another one than the one before, and
breaks one stream off. Some of them are sent to two workers under WSGI as well, whose threads may
wait for streams; and one to the view where nothing can stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from tests.support.balancer import Cut, Passed, balancing
from tests.support.servers import RunningServer, running_servers

from .conftest import HERE
from .isolated import ISOLATED, IsolatedClient

DOORS = {"mount": ["mount"] * 2, "threads": ["wsgi-streams"] * 2, "wsgi": ["wsgi"]}


@dataclass(frozen=True)
class Tour:
    """What came of each step, and the requests in which it was done."""

    story: dict[str, Any]
    passed: list[Passed]
    workers: int


@pytest.fixture(scope="session")
def library_of(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], list[RunningServer]]]:
    """Give the workers that serve the library in one way; they start when first asked for."""
    with ExitStack() as stack:

        @cache
        def start(door: str) -> list[RunningServer]:
            diary = tmp_path_factory.mktemp("library") / "diary"
            serving = running_servers(
                DOORS[door],
                settings="library.settings",
                path=HERE,
                variables={"LAYER": "", "DIARY": str(diary)},
            )
            return stack.enter_context(serving)[0]

        yield start


@pytest.fixture(scope="session")
def toured(library_of: Callable[[str], list[RunningServer]]) -> Callable[[IsolatedClient], Tour]:
    """Give a client's tour. Each is made once, however many tests read it."""
    made: dict[str, Tour | BaseException] = {}

    def make(client: IsolatedClient) -> Tour:
        workers = library_of(client.door)
        cuts = [Cut(after=3, having=b"Mansfield Park")]
        with balancing([worker.port for worker in workers], cuts) as balancer:
            story = client.tour(balancer.url)
            return Tour(story, balancer.passed, len(workers))

    def tell(client: IsolatedClient) -> Tour:
        if str(client) not in made:
            try:
                made[str(client)] = make(client)
            except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                made[str(client)] = error
        tour = made[str(client)]
        if isinstance(tour, BaseException):
            raise tour
        return tour

    return tell


def clients() -> Iterator[object]:
    """Every client, as parameters of a fixture; all that is said of one is tested together."""
    for client in ISOLATED:
        marks = [pytest.mark.workers, pytest.mark.xdist_group(str(client))]
        yield pytest.param(client, id=str(client), marks=marks)


@pytest.fixture(params=clients())
def isolated(request: pytest.FixtureRequest) -> IsolatedClient:
    """A client."""
    client: IsolatedClient = request.param
    return client


@pytest.fixture
def tour(isolated: IsolatedClient, toured: Callable[[IsolatedClient], Tour]) -> Tour:
    """What it did."""
    return toured(isolated)


def takes(isolated: IsolatedClient, tour: Tour, step: str) -> bool:
    """Whether a client takes a step; if not, it is known why."""
    assert (step in tour.story) != bool(isolated.lacks.get(step))
    return step in tour.story


def sheets(count: int) -> list[list[Any]]:
    return [[sheet, count, f"sheet {sheet}"] for sheet in range(1, count + 1)]


def test_lists_the_tools_with_their_arguments(tour: Tour) -> None:
    tools = tour.story["tools"]

    assert {"bind", "borrow", "gossip", "renew", "who_asks"} <= tools.keys()
    assert tools["renew"]["properties"].keys() == {"title", "weeks", "pace"}
    assert tools["renew"]["required"] == ["title"]
    assert tools["renew"]["properties"]["weeks"]["default"] == 4
    assert '"enum": ["slow", "fast"]' in json.dumps(tools["renew"])


def test_reads_a_resource(isolated: IsolatedClient, tour: Tour) -> None:
    if takes(isolated, tour, "resource"):
        assert tour.story["resource"] == "Emma\nPersuasion"


def test_gets_a_prompt(isolated: IsolatedClient, tour: Tour) -> None:
    if takes(isolated, tour, "prompt"):
        assert tour.story["prompt"] == "Review Emma."


def test_calls_tools(isolated: IsolatedClient, tour: Tour) -> None:
    who, renewed = tour.story["call"]

    assert who.endswith(f" speaks {isolated.revision}")
    assert renewed == "Persuasion for 4 more weeks, slow"


def test_sees_progress(isolated: IsolatedClient, tour: Tour) -> None:
    if takes(isolated, tour, "progress"):
        assert tour.story["progress"] == {"text": "bound Emma", "progress": sheets(4)}


def test_sees_logs(isolated: IsolatedClient, tour: Tour) -> None:
    if takes(isolated, tour, "logs"):
        assert tour.story["logs"] == list(isolated.levels)


def test_is_asked(isolated: IsolatedClient, tour: Tour) -> None:
    if takes(isolated, tour, "question"):
        assert tour.story["question"] == {
            "text": "Emma for 14 days, renew: True",
            "asked": ["For how long do you want Emma?"],
        }


def test_reads_why_a_tool_failed(tour: Tour) -> None:
    failure = tour.story["failure"]

    assert failure["text"] == "Emma is reserved for somebody else."
    # None where agents are given the text alone.
    assert failure["is_error"] in (True, None)


def test_reads_that_a_tool_crashed_and_goes_on(tour: Tour) -> None:
    crash = tour.story["crash"]

    assert crash["text"].startswith("The tool failed.")
    assert crash["is_error"] in (True, None)


def test_goes_on_after_a_broken_stream(isolated: IsolatedClient, tour: Tour) -> None:
    if takes(isolated, tour, "resumption"):
        assert tour.story["resumption"] == {"text": "bound Mansfield Park", "progress": sheets(6)}
        (broken,) = [request for request in tour.passed if request.was_cut]
        back = [request for request in tour.passed if request.last_event_id]
        assert broken.asks == "tools/call bind"
        assert back[0].worker == 1 - broken.worker


def test_calls_off_what_runs(isolated: IsolatedClient, tour: Tour) -> None:
    if takes(isolated, tour, "cancellation"):
        assert tour.story["cancellation"] is True


def test_meets_every_worker_and_no_fault_of_a_server(tour: Tour) -> None:
    assert {request.worker for request in tour.passed} == set(range(tour.workers))
    assert [request.asks for request in tour.passed if (request.status or 0) >= 500] == []
