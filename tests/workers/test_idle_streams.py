"""Hundreds of streams at one worker on which nothing comes: they must cost next to nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from django_mcp.running.worker_threads import ADMISSION_THREADS
from tests.support.client import Client, Server, StatelessClient, served

from .idle_streams import SUBSCRIPTION_ID, IdleStream, IdleStreams, Needs
from .serving import BOUND, Workers, serving
from .test_concurrency import last_of

FEW, MANY = 10, 500
WORKER_THREADS = 4
THREADS = 1 + ADMISSION_THREADS + WORKER_THREADS + 1
"""Of a worker that has been busy: its loop, its worker threads, its ledger."""
CONNECTIONS = ADMISSION_THREADS + WORKER_THREADS + 1
LOOKS = 12
TOOLS_CHANGED = "notifications/tools/list_changed"

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")


def test_idle_streams_cost_no_thread_no_connection_and_no_statement_and_are_served():
    """Ten streams or five hundred, half of them sessions' own, half of 2026-07-28."""
    # uvloop, where it is installed, has threads of its own.
    threads = {"WORKER_THREADS": str(WORKER_THREADS), "UVICORN_LOOP": "asyncio"}
    with serving(**threads, PLANT="prompt") as workers:

        async def main(http):
            async with AsyncExitStack() as stack:
                await make_busy(workers, http)
                # All at the first worker; what they are to hear comes from the other one.
                idle = IdleStreams(workers.urls[:1], http, stack)
                costs = []
                for number in (FEW, MANY):
                    await idle.grow(number)
                    costs.append(await cost(workers, http))
                await hear_everything(idle.streams, StatelessClient(Server(workers.urls[1], http)))
                return costs, await cost(workers, http)

        (few, many), after = workers.run(main)
    for number, (threads, connections, statements) in ((FEW, few), (MANY, many)):
        print(f"{number} streams: {threads=} {connections=} {len(statements)} statements a look")
    assert few == many == after


async def make_busy(workers: Workers, http: httpx.AsyncClient) -> None:
    """Bring both workers to where they have all threads and connections that they may have."""
    client = await Client(*served(workers.urls, http)).open()
    wanted = [THREADS, THREADS], 2 * CONNECTIONS
    has: Any = None
    try:
        async with asyncio.timeout(BOUND / 4):
            while (has := await held(workers, http)) != wanted:
                # The latter keep the threads for admission busy, where they wait for the former.
                calls = (client.call("hold_sessions") for _ in range(40))
                changes = (client.post("logging/setLevel", level="debug") for _ in range(40))
                await asyncio.gather(*map(last_of, [*calls, *changes]))
    except TimeoutError:
        raise AssertionError(f"The workers hold {has}, and not {wanted}") from None


async def held(workers: Workers, http: httpx.AsyncClient) -> tuple[list[int], int]:
    """Return how many threads each worker has, and how many connections their database."""
    needs = [Needs.of(server) for server in workers.servers]
    if workers.database == "sqlite":
        connections = sum(need.files for need in needs)
    else:
        connections = await StatelessClient(Server(workers.urls[1], http)).value(
            "database_connections"
        )
    return [need.threads for need in needs], connections


async def cost(workers: Workers, http: httpx.AsyncClient) -> Any:
    """Return what the workers hold, and the statements that a look of the first one takes."""
    steady: set[str] = set()
    async with asyncio.timeout(BOUND):
        # That sessions were used is written later, and for each at a moment of its own; and
        # what was left behind before is cleaned away at first, in ticks that do nothing else.
        while not steady:
            ticks = await recorded(workers, http, LOOKS)
            if not any(map(notes_use, ticks)):
                steady = in_every_look(ticks)
    assert [tick for tick in ticks if max(Counter(tick).values()) > 1] == []
    return *await held(workers, http), steady


def in_every_look(ticks: list[list[str]]) -> set[str]:
    """Return the statements that each look makes."""
    kinds = Counter(statement for tick in ticks for statement in tick)
    # Leases are renewed and old rows are looked for at every third look, or seldomer. Changes are
    # looked for as often as the rest, on a slow machine in ticks of their own: half of them each.
    return {statement for statement, count in kinds.items() if count > LOOKS * 0.4}


def notes_use(tick: list[str]) -> bool:
    """Return whether it was written that sessions were used."""
    return any("UPDATE" in each and "last_active" in each for each in tick)


async def recorded(workers: Workers, http: httpx.AsyncClient, number: int) -> list[list[str]]:
    """Return the statements of so many ticks of the first worker's ledger, from now on."""
    client = StatelessClient(Server(workers.urls[0], http))
    await client.value("forget_ticks")
    async with asyncio.timeout(BOUND / 4):
        while len(ticks := (await client.value("ticks"))["ticks"]) < number:
            await asyncio.sleep(0.1)
    return ticks


async def hear_everything(streams: list[IdleStream], elsewhere: StatelessClient) -> None:
    """Say something at another worker, of each kind; each stream hears what concerns it, once."""
    own = [each for each in streams if each.session]
    listening = [each for each in streams if not each.session]
    assert len(own) == len(listening) == len(streams) / 2

    await elsewhere.value("change_tools")
    await all_hear_of_tools(streams)

    assert await elsewhere.value("put_everywhere") == len(own)
    heard = await asyncio.gather(*(each.hear() for each in own))
    assert [each["params"]["data"] for each in heard] == [each.session for each in own]

    await elsewhere.value("change_things", count=len(streams))
    heard = await asyncio.gather(*(each.hear() for each in listening))
    uris = [f"thing://{each.number}" for each in listening]
    assert [each["params"]["uri"] for each in heard] == uris

    # Nothing else has come in between.
    await elsewhere.value("change_tools")
    await all_hear_of_tools(streams)


async def all_hear_of_tools(streams: list[IdleStream]) -> None:
    """Wait until each stream has heard that the tools have changed."""
    heard = await asyncio.gather(*(each.hear() for each in streams))
    assert {each["method"] for each in heard} == {TOOLS_CHANGED}
    tags = [each.get("params", {}).get("_meta", {}).get(SUBSCRIPTION_ID, -1) for each in heard]
    assert tags == [each.number for each in streams]
