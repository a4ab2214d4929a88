"""``python -m tests.workers.rolling DOOR...``: restart two workers in turn, under load, and count.

A deploy as hosts make it: each worker is sent SIGTERM, ends in its own time, and starts again at
its place, one after the other, while clients call tools one call after the other, on connections
that are kept. In front of the workers is a balancer that goes by closed sockets alone. Calls take
up to half a second. Whatever is not a call's own result is an error: nothing is sent again.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx

from tests.support.client import Client, Server, StatelessClient
from tests.support.forwarding import KINDS, forwarding
from tests.support.servers import RunningServer, started, wait_until_ready

from .serving import Workers, serving

CLIENTS = 8
SECONDS = 0.5
"""What a call takes at most."""
WORDS = 3
TOOLS: dict[str, dict[str, Any]] = {
    "work": {"seconds": SECONDS},
    "awork": {"seconds": SECONDS},
    "speak": {"seconds": SECONDS / WORDS, "words": WORDS},
    "aspeak": {"seconds": SECONDS / WORDS, "words": WORDS},
}
STOP_SECONDS = 30
"""A bound for the end of a worker that nobody holds up for longer than its calls take."""
CALL_SECONDS = 60
"""A bound for a call that hangs."""


@dataclass
class Count:
    """What has become of calls."""

    calls: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    restarts: int = 0

    def __str__(self) -> str:
        wrong = sum(self.errors.values())
        text = f"{self.calls - wrong}/{self.calls} calls, {self.restarts} restarts"
        return "\n".join([text, *(f"  {number} x {what}" for what, number in self.errors.items())])


class Rolling:
    """Two workers behind a balancer, each of which can be replaced by a new one at its place."""

    def __init__(self, doors: list[str], workers: Workers, url: str) -> None:
        self.workers = workers
        self.url = url
        self._doors = doors
        self._servers = list(workers.servers)
        self._stack = ExitStack()

    @property
    def servers(self) -> list[RunningServer]:
        """Those that run now."""
        return self._servers

    def restart(self, number: int) -> None:
        """Ask a worker to stop, wait until it has, and start another one at its place."""
        old = self._servers[number]
        old.process.send_signal(signal.SIGTERM)
        try:
            old.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            # As hosts do. What it had not finished is an error that is counted.
            old.process.kill()
        starting = started(
            self._doors[number], self.workers.environment, log=old.log, port=old.port
        )
        self._servers[number] = self._stack.enter_context(starting)
        wait_until_ready(self._servers[number])

    def close(self) -> None:
        """End those that have taken the places of others."""
        self._stack.close()


@contextmanager
def rolling(*doors: str, balancer: str = "connections", **variables: str) -> Iterator[Rolling]:
    """Serve the shop by a worker for each door, behind a balancer."""
    with ExitStack() as stack:
        workers = stack.enter_context(serving(*doors, **variables))
        ports = [each.port for each in workers.servers]
        url = stack.enter_context(forwarding(ports, balancer))
        found = Rolling(list(doors), workers, url)
        stack.callback(found.close)
        yield found


class Load:
    """Clients that call tools without a pause, and count what comes of it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ends = False
        self.count = Count()
        self.begun = asyncio.Event()

    def end(self) -> None:
        """Let each client make no further call."""
        self._ends = True

    async def run(self) -> None:
        """Let all clients call until :meth:`end`."""
        async with AsyncExitStack() as stack:
            clients = [await self._client(number, stack) for number in range(CLIENTS)]
            async with asyncio.TaskGroup() as group:
                for client in clients:
                    group.create_task(self._call_on(client))

    async def _client(self, number: int, stack: AsyncExitStack) -> Client | StatelessClient:
        limits = httpx.Limits(keepalive_expiry=None)
        http = httpx.AsyncClient(timeout=CALL_SECONDS, limits=limits)
        await stack.enter_async_context(http)
        if number % 2:
            return StatelessClient(Server(self._url, http))
        return await Client(Server(self._url, http)).open()

    async def _call_on(self, client: Client | StatelessClient) -> None:
        while not self._ends:
            tool = random.choice(list(TOOLS))
            self.count.calls += 1
            if self.count.calls > 2 * CLIENTS:
                self.begun.set()
            try:
                wrong = await _call(client, tool)
            except httpx.TransportError as error:
                wrong = repr(error)
            if wrong is not None:
                self.count.errors[f"{type(client).__name__} {tool}: {wrong}"] += 1


async def _call(client: Client | StatelessClient, tool: str) -> str | None:
    """Make a call; return what is wrong with its answer."""
    arguments = {"value": uuid4().hex, **TOOLS[tool]}
    if isinstance(client, Client):
        calling = client.call(tool, id=arguments["value"], **arguments)
    else:
        calling = client.post("tools/call", id=arguments["value"], name=tool, arguments=arguments)
    async with calling as answer:
        *_, last = await answer.messages() or [{}]
    text = last.get("result", {}).get("content", [{}])[0].get("text")
    if answer.status == 200 and last["id"] == text == arguments["value"]:
        return None
    return f"{answer.status} {last.get('error', last)}"


async def restart_under_load(site: Rolling, *, calls: int, restarts: int) -> Count:
    """Restart the workers in turn, at least so often and until so many calls were made."""
    load = Load(site.url)
    running = asyncio.create_task(load.run())
    await asyncio.wait(
        [running, asyncio.create_task(load.begun.wait())], return_when="FIRST_COMPLETED"
    )
    count = load.count
    while (count.restarts < restarts or count.calls < calls) and not running.done():
        await asyncio.to_thread(site.restart, count.restarts % len(site.servers))
        count.restarts += 1
    load.end()
    await running
    return count


def main() -> None:
    """Do it with each door that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("doors", nargs="+")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--restarts", type=int, default=4)
    parser.add_argument("--balance", choices=KINDS, default="connections")
    given = parser.parse_args()
    for door in given.doors:
        with rolling(door, door, balancer=given.balance) as site:
            count = asyncio.run(
                restart_under_load(site, calls=given.calls, restarts=given.restarts)
            )
        print(f"{door}: {count}", flush=True)


if __name__ == "__main__":
    main()
