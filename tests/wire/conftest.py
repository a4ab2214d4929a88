"""Opens the entrances; each acceptance test goes through all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import clear_script_prefix

from django_mcp.running.worker_threads import close_worker_threads
from django_mcp.store.ledger import close_ledger
from tests.support.caller import Caller
from tests.support.entrances import Entrance, open_entrance

from . import deviations, site

# The mount runs synchronous code on threads of its own, which see what is committed.
ENTRANCES = [
    pytest.param("wsgi", marks=pytest.mark.django_db),
    pytest.param("asgi", marks=pytest.mark.django_db),
    pytest.param("mount", marks=pytest.mark.django_db(transaction=True)),
]


HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect what is known to be wrong."""
    for item in items:
        if item.path.is_relative_to(HERE):
            deviations.mark(item)


@pytest.fixture(autouse=True)
def _site(settings: Any) -> Iterator[None]:
    settings.ROOT_URLCONF = "tests.wire.urls"
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public", "WORKER_THREADS": 2}
    site.calls.clear()
    yield
    clear_script_prefix()


@pytest.fixture(params=ENTRANCES)
def entrance(request: pytest.FixtureRequest) -> Iterator[Entrance]:
    """Each entrance in turn."""
    if request.param != "mount":
        yield open_entrance(request.param)
        return
    with asyncio.Runner() as runner:
        yield open_entrance("mount", runner.run)
        close_ledger()
        runner.run(close_worker_threads())


@pytest.fixture
def caller(entrance: Entrance) -> Caller:
    """A client of the public endpoint."""
    return Caller(entrance)
