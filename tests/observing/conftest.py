"""The observed site, at each way in as a server has it: a loop with threads, or a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextvars import copy_context
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIHandler
from django.urls import clear_script_prefix

from django_mcp import endpoint
from django_mcp.asgi import mount
from django_mcp.running import call_observers
from django_mcp.running.call_observers import are_being_told
from django_mcp.running.worker_threads import close_worker_threads
from django_mcp.signals import CallInfo, call_finished, call_started
from django_mcp.store.ledger import close_ledger
from django_mcp.store.sessions import ended
from tests.support.caller import Caller
from tests.support.entrances import ASGIEntrance, Entrance, WSGIEntrance
from tests.support.sites import urlconf

from . import site

TOKEN = "user-token-Zm9yIHlvdXIgZXllcw"

ENTRANCES = [
    pytest.param("wsgi", marks=pytest.mark.django_db),
    # Not in a transaction: there the view would run everything in the test's own thread.
    pytest.param("view on a loop", marks=pytest.mark.django_db(transaction=True)),
    pytest.param("mount", marks=pytest.mark.django_db(transaction=True)),
]


@pytest.fixture(autouse=True)
def _site(settings: Any) -> Iterator[None]:
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=site.server))
    settings.DJANGO_MCP = {"AUTH": site.bearer, "WORKER_THREADS": 4}
    site.reset()
    yield
    clear_script_prefix()
    assert call_started.receivers == call_finished.receivers == []


@pytest.fixture(autouse=True)
def _observers() -> Iterator[None]:
    """Leave nobody behind that a test has registered."""
    before = list(call_observers.observers), list(ended.watchers)
    yield
    call_observers.observers[:], ended.watchers[:] = before


@pytest.fixture
def application(transactional_db: None, user: Any) -> Any:
    """The mount, for tests that look at what happens meanwhile."""
    return mount(ASGIHandler())


@pytest.fixture(params=ENTRANCES)
def entrance(request: pytest.FixtureRequest) -> Iterator[Entrance]:
    """Each way in, in turn."""
    if request.param == "wsgi":
        yield WSGIEntrance()
        return
    with asyncio.Runner() as runner:

        def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
            return runner.run(until_told(coroutine), context=copy_context())

        def build() -> Any:
            return mount(ASGIHandler()) if request.param == "mount" else ASGIHandler()

        yield ASGIEntrance(request.param, build, run)
        close_ledger()
        runner.run(close_worker_threads())


async def until_told(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Wait for an answer, and until everybody has been told of the call."""
    answer = await coroutine
    async with asyncio.timeout(site.BOUND):
        while are_being_told():
            await asyncio.sleep(0.005)
    return answer


@pytest.fixture
def user(db: None) -> Any:
    """The user who calls."""
    user = site.user()
    user.save(force_insert=True)
    return user


@pytest.fixture
def caller(entrance: Entrance, user: Any) -> Caller:
    """A user's client."""
    return Caller(entrance).with_headers(Authorization=f"Bearer {TOKEN}")


@pytest.fixture
def finished() -> Iterator[list[CallInfo]]:
    """The calls that have come to their end."""
    calls: list[CallInfo] = []

    def receive(call: CallInfo, **kwargs: Any) -> None:
        calls.append(call)

    call_finished.connect(receive)
    yield calls
    call_finished.disconnect(receive)
