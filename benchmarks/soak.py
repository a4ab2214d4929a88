"""Whether the tables level off under a load that goes on: rows, dead ones and memory over time.

    python -m benchmarks.soak [--minutes 5] [--calls 110] [--workers 2]

Serves the shop of the tests by several processes, on a database of their own at ``DATABASE_URL``
(SQLite without it), and calls its tools from sessions that come and go: a tenth of the calls ask, a
quarter speak for a while, so that they leave rows; the others leave none. What has ended is kept
for a minute, what can be fetched again for half of one. Needs what the tests need.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import django
import httpx

from tests.support.client import Client, served
from tests.workers.serving import Workers, serving

CALLS_OF_A_SESSION = 18
PAUSE_SECONDS = 0.4
"""Most that a client waits between two calls."""
LOOK_SECONDS = 10.0
TOOLS = {"aask": 10, "aspeak": 25, "awork": 65}
"""Which tool is called how often, in percent."""
KEPT = {"REPLAY": "30", "RETENTION": "60"}
TABLES = ("session", "stream", "outgoingmessage", "pendingrequest", "subscription")


class Load:
    """Sessions that come and go, and what has become of their calls."""

    def __init__(self, workers: Workers, http: httpx.AsyncClient, calls: float) -> None:
        self.took: list[float] = []
        self.wrong: Counter[str] = Counter()
        self._urls = workers.urls
        self._http = http
        self._pause = CALLS_OF_A_SESSION / calls
        self._chance = random.Random(14)

    async def run(self, seconds: float) -> None:
        """Begin sessions at an even pace, for so long, and wait for the last ones."""
        following = time.monotonic()
        end = following + seconds
        async with asyncio.TaskGroup() as group:
            while following < end:
                group.create_task(self._visit())
                following += self._pause
                await asyncio.sleep(max(0, following - time.monotonic()))

    async def _visit(self) -> None:
        try:
            client = await Client(*served(self._urls, self._http)).open(elicitation={})
            async with client.post("resources/subscribe", uri="thing://1") as answer:
                await answer.messages()
            for _ in range(CALLS_OF_A_SESSION):
                begun = time.monotonic()
                await self._call(client)
                self.took.append(time.monotonic() - begun)
                await asyncio.sleep(self._chance.uniform(0, PAUSE_SECONDS))
            async with client.request("DELETE") as answer:
                await answer.read()
        except Exception as error:
            self.wrong[repr(error)[:200]] += 1

    async def _call(self, client: Client) -> None:
        (tool,) = self._chance.choices(list(TOOLS), list(TOOLS.values()))
        arguments = {"lasts": True} if tool == "aspeak" else {}
        last: Any = None
        async with client.call(tool, value="x", **arguments) as answer:
            async for last in answer:
                if "id" in last and "method" in last:
                    given = {"action": "accept", "content": {"name": "y"}}
                    await client.answer(last, given)
        if not (last and "result" in last):
            self.wrong[f"{tool}: {last!r}"[:200]] += 1


def rows() -> dict[str, int]:
    """Return how many rows there are; on PostgreSQL dead ones, too, and the size of all."""
    from django.db import connection  # noqa: PLC0415 - after setup()

    found = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"SELECT count(*) FROM django_mcp_{table}")
            found[table] = cursor.fetchone()[0]
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT sum(n_dead_tup), sum(pg_total_relation_size(relid)) / 1048576"
                " FROM pg_stat_user_tables WHERE relname LIKE 'django_mcp_%'"
            )
            found |= dict(zip(("dead", "MiB"), map(int, cursor.fetchone()), strict=True))
    return found


def memory(workers: Workers) -> list[int]:
    """Return how many MiB each process holds."""
    pages = [Path(f"/proc/{each.process.pid}/statm").read_text() for each in workers.servers]
    return [int(each.split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20 for each in pages]


async def watch(workers: Workers, load: Load) -> None:
    """Say now and then how many rows there are."""
    begun = time.monotonic()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        found = await asyncio.to_thread(rows)
        said = ", ".join(f"{number} {name}" for name, number in found.items())
        held = " and ".join(map(str, memory(workers)))
        passed = time.monotonic() - begun
        print(f"{passed:5.0f} s, {len(load.took)} calls: {said}; {held} MiB held", flush=True)


async def soak(workers: Workers, options: argparse.Namespace) -> None:
    """Load, watch, and say how the calls went."""
    limits = httpx.Limits(max_connections=None, keepalive_expiry=None)
    async with httpx.AsyncClient(timeout=60, limits=limits) as http:
        load = Load(workers, http, options.calls)
        watching = asyncio.create_task(watch(workers, load))
        begun = time.monotonic()
        await load.run(options.minutes * 60)
        watching.cancel()
    took = sorted(each * 1000 for each in load.took)
    middle, late = took[len(took) // 2], took[int(len(took) * 0.99)]
    print(
        f"{len(took) / (time.monotonic() - begun):.0f} calls a second; median {middle:.0f} ms, "
        f"99 % {late:.0f}, most {took[-1]:.0f}; wrong: {dict(load.wrong)}"
    )


def main() -> None:
    """Serve, and soak."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--calls", type=float, default=110, help="in a second")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with serving(*["mount"] * options.workers, **KEPT) as workers:
        os.environ["DATABASE_URL"] = workers.environment["DATABASE_URL"]
        os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
        django.setup()
        asyncio.run(soak(workers, options))


if __name__ == "__main__":
    main()
