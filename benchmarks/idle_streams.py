"""What an idle stream costs the process that serves it: memory, processor time, threads.

    python -m benchmarks.idle_streams [--streams 500]

Serves the project of ``tests/workers`` by the mount under uvicorn, one process, on the database of
``DATABASE_URL`` (SQLite without it), and opens streams at it: those of sessions (GET), and
``subscriptions/listen``. Needs what the tests need, and Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
from contextlib import AsyncExitStack
from importlib.metadata import version

import httpx

from tests.support.client import Client, served
from tests.workers.idle_streams import IdleStreams, Needs
from tests.workers.serving import Workers, serving

FEW = 10
SECONDS = 10.0
KINDS = {"own": "GET, of a session", "listen": "subscriptions/listen"}
PACKAGES = ("django", "uvicorn", "httptools", "uvloop", "psycopg", "mysqlclient")


async def measure(workers: Workers, http: httpx.AsyncClient, kind: str, number: int) -> str:
    """Return a line about streams of one kind."""
    (server,) = workers.servers
    # Worker threads, their connections and what is loaded late belong to the process, not to its
    # streams.
    client = await Client(*served(workers.urls, http)).open()
    for _ in range(5):
        await asyncio.gather(*(_call(client) for _ in range(40)))
    async with AsyncExitStack() as stack:
        streams = IdleStreams(workers.urls, http, stack)
        await streams.grow(FEW, kind)
        few = await _settled(workers)
        await streams.grow(number, kind)
        many = await _settled(workers)
        await asyncio.sleep(SECONDS)
        busy = (Needs.of(server).seconds - many.seconds) / SECONDS
    each = (many.memory - few.memory) / (number - FEW) / 1024
    return (
        f"{KINDS[kind]:<22} {each:6.1f} KB each   threads {few.threads} -> {many.threads}   "
        f"{busy:.1%} of a processor for {number}"
    )


async def _call(client: Client) -> None:
    async with client.call("use_database") as answer:
        await answer.messages()


async def _settled(workers: Workers) -> Needs:
    """Return what the process holds once it has done what opening streams left it to do."""
    (server,) = workers.servers
    before = Needs.of(server)
    while True:
        await asyncio.sleep(1)
        now = Needs.of(server)
        if now.memory == before.memory:
            return now
        before = now


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=int, default=500, help="how many, of each kind")
    number = parser.parse_args().streams
    print(f"Python {platform.python_version()}, {platform.machine()}", *_versions(), sep=", ")
    for kind in KINDS:
        # A process of its own for each, so that none uses room that another has left.
        with serving("mount") as workers:
            line = workers.run(lambda http, kind=kind: measure(workers, http, kind, number))
            print(f"{workers.database:<10} {line}", flush=True)


def _versions() -> list[str]:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except ImportError:
            continue
    return found


if __name__ == "__main__":
    main()
