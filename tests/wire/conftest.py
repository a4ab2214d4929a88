"""Opens the doors; each acceptance test goes through all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import clear_script_prefix

from django_mcp.store.ledger import close_ledger
from django_mcp.transport.lanes import close_lanes

from . import deviations, site
from .doors import Door, open_door
from .speech import Caller

# The mount runs synchronous code on threads of its own, which see what is committed.
DOORS = [
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
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public", "LANES": 2}
    site.calls.clear()
    yield
    clear_script_prefix()


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Iterator[Door]:
    """Each door in turn."""
    if request.param != "mount":
        yield open_door(request.param)
        return
    with asyncio.Runner() as runner:
        yield open_door("mount", runner.run)
        close_ledger()
        runner.run(close_lanes())


@pytest.fixture
def caller(door: Door) -> Caller:
    """A client of the public endpoint."""
    return Caller(door)
