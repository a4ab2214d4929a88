"""Limits of several processes: what they let through together is the limit, and not one more."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest

from tests.support.client import StatelessClient, served
from tests.support.services import require_redis

from .serving import Workers, serving

LIMIT = 40
CALLS = 120


def statuses(workers: Workers, tool: str = "awork") -> Counter[int]:
    """Call from many connections at once, at all workers in turn; return how it went."""

    async def main(http: Any) -> Counter[int]:
        client = StatelessClient(*served(workers.urls, http))
        return Counter(await asyncio.gather(*(one(client) for _ in range(CALLS))))

    async def one(client: StatelessClient) -> int:
        async with client.call(tool, value="x") as answer:
            await answer.messages()
            return answer.status

    return workers.run(main)


def new_cache() -> str:
    """Return the name, and prefix, of a cache in which nothing has been counted."""
    return f"counts-{uuid4().hex}"


@pytest.mark.parametrize("tool", ["work", "awork"])
def test_exactly_the_limit_passes(tool):
    """On each database."""
    with serving(RATE=f"{LIMIT}/d") as workers:
        assert statuses(workers, tool) == {200: LIMIT, 429: CALLS - LIMIT}


def test_exactly_the_limit_passes_where_a_cache_counts():
    require_redis()
    with serving(RATE=f"{LIMIT}/d", RATE_CACHE=new_cache()) as workers:
        assert statuses(workers) == {200: LIMIT, 429: CALLS - LIMIT}


def test_each_process_by_itself_lets_as_much_through():
    with serving(RATE=f"{LIMIT}/d per process") as workers:
        assert statuses(workers) == {200: 2 * LIMIT, 429: CALLS - 2 * LIMIT}


@pytest.mark.parametrize("fault", ["looks_first", "looks_first_in_cache"])
def test_what_is_looked_at_first_and_then_written_lets_more_through(fault):
    """A test of the tests."""
    cache = {"RATE_CACHE": new_cache()} if fault.endswith("cache") else {}
    if cache:
        require_redis()
    with serving(RATE=f"{LIMIT}/d", PLANT=fault, **cache) as workers:
        assert statuses(workers)[200] > LIMIT
