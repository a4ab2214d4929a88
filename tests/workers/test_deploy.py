"""A deploy costs nobody a call: the short form of ``python -m tests.workers.rolling``."""

from __future__ import annotations

import asyncio

import pytest

from .rolling import restart_under_load, rolling

SERVERS = ["mount", "asgi-view", "gunicorn", "daphne", "hypercorn", "wsgi-hook"]


@pytest.mark.parametrize(
    ("door", "balancer"),
    [
        *((door, "connections") for door in SERVERS),
        # It closes connections at once on which nothing is under way, also those that have just
        # come. Proxies see that it has; clients may be too late.
        ("granian", "requests"),
        ("granian-wsgi", "requests"),
    ],
)
def test_workers_are_restarted_in_turn_and_every_call_has_its_result(door, balancer):
    with rolling(door, door, balancer=balancer) as site:
        count = asyncio.run(restart_under_load(site, calls=200, restarts=4))
        logs = [server.log.read_text(errors="replace")[-4000:] for server in site.servers]
    assert not count.errors, "\n".join([str(count), *logs])
    assert count.restarts >= 4
