"""A session that ends at one worker, and that another one remembers."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.client import Client, served
from tests.support.services import require_redis

from .conftest import CORE, PUBSUB
from .serving import Workers, serving
from .test_limits import new_cache

SECONDS = 10
PLENTY = 1000
"""Looks, more than there can be in that time."""


async def let_in(client: Client) -> bool:
    async with client.call("work", value="x") as answer:
        await answer.messages()
        return answer.status == 200


def ended_elsewhere(workers: Workers) -> float:
    """Return for how many seconds one worker lets a session in after the other has ended it."""

    async def main(http: Any) -> float:
        client = await Client(*served(workers.urls, http)).open()
        here, there = client.at(0), client.at(1)
        # Twice: the second time it is remembered.
        assert [await let_in(each) for each in (here, there) * 2] == [True] * 4
        async with here.request("DELETE") as answer:
            assert answer.status == 204
        ended = time.monotonic()
        assert not await let_in(here)
        for _ in range(PLENTY):
            if not await let_in(there):
                return time.monotonic() - ended
        raise AssertionError("It never ended")

    return float(workers.run(main))


@pytest.mark.parametrize("layer", [CORE, PUBSUB])
def test_others_are_told_before_they_have_forgotten_by_themselves(layer):
    require_redis()
    with serving(LAYER=layer, SESSION_CACHE_SECONDS=str(SECONDS)) as workers:
        assert ended_elsewhere(workers) < SECONDS / 2


def test_a_shared_cache_is_told_at_once():
    require_redis()
    variables = {"SESSION_CACHE": new_cache(), "SESSION_CACHE_SECONDS": str(SECONDS)}
    with serving(**variables) as workers:
        assert ended_elsewhere(workers) < SECONDS / 2


def test_who_cannot_be_told_forgets_in_time():
    with serving(SESSION_CACHE_SECONDS="2") as workers:
        assert ended_elsewhere(workers) < 2 + SECONDS / 2
