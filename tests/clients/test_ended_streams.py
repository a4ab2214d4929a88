"""A client that has got an error as the last event of a stream, and comes back all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.servers import RunningServer

from .peers import run_typescript

PACKAGES = {"@modelcontextprotocol/sdk": [204], "@modelcontextprotocol/client": []}
"""What each is answered. The first asks for the rest of a stream unless that ended in a result."""


@pytest.mark.node
@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(
    "layer",
    [
        "none",
        pytest.param(
            "threads", marks=[pytest.mark.workers, pytest.mark.xdist_group("clients-threads")]
        ),
    ],
)
def test_a_client_is_not_told_of_an_error_that_there_is_not(
    workers_of: Callable[[str], list[RunningServer]], package: str, layer: str
) -> None:
    server = workers_of(layer)[0]

    story = run_typescript(server.url, script="ended.mjs", mode=package, what="4000")

    assert story == {"error": -32602, "back": PACKAGES[package], "complaints": []}
