"""One leg: a database, a channel layer and a kind of server, from start to figures."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.servers import CHECKOUT

from . import following
from .checker import Figures, check
from .clients import Legacy
from .front import Front, fronting
from .ledger import Event, Ledger, read
from .saboteur import LEASE, LONGEST_PAUSE, Saboteur
from .servers import HERE, Worker, environment, migrate
from .services import MariaDB, PostgreSQL, Redis, Service

LAYERS = {
    "none": "",
    "memory": "channels.layers.InMemoryChannelLayer",
    "core": "channels_redis.core.RedisChannelLayer",
    "pubsub": "channels_redis.pubsub.RedisPubSubChannelLayer",
}
AGAIN = "again"
"""The one planted fault that is the balancer's: requests of a broken worker are sent again."""
OF_CLIENTS = {"repeats"}
"""Planted faults of our own client, in :mod:`tests.chaos.library`."""
SETTLING_SECONDS = 6 * LEASE
"""How long after the last request everything has an end, at most."""


@dataclass(frozen=True)
class Plan:
    """What is run, and how much of it."""

    database: str
    layer: str
    server: str
    """A kind of server, or several with ``+`` between: each worker is of the next."""
    acts: int
    """How many; 0 for one of each kind."""
    requests: int
    """At least; the workload goes on while there are acts, too."""
    seed: str
    workers: int = 2
    clients: int = 2
    actors: int = 7
    """Sessions at once, of each client process."""
    plant: str = ""
    only: tuple[str, ...] = ()
    """Acts to choose from; all that there are without."""
    longest_pause: float = LONGEST_PAUSE

    @property
    def name(self) -> str:
        """What the leg is called on the command line."""
        return f"{self.database}-{self.layer}-{self.server}"


@dataclass
class Outcome:
    """What a leg came to."""

    plan: Plan
    figures: Figures
    events: list[Event]
    seconds: float
    logs: Path


def run(plan: Plan, directory: Path) -> Outcome:
    """Run a leg in a directory, which keeps its ledgers and logs."""
    begun = time.monotonic()
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    with ExitStack() as stack:
        database: Any = stack.enter_context(_database(plan.database, directory))
        needs_redis = plan.layer in ("core", "pubsub")
        redis = stack.enter_context(_served(Redis, directory)) if needs_redis else None
        variables = environment(
            DATABASE_URL=f"sqlite:///{database}" if isinstance(database, Path) else database.url,
            REDIS_URL=redis.url if redis else "",
            LAYER=LAYERS[plan.layer],
            LEASE=str(LEASE),
        )
        migrate(variables)
        ledger = Ledger(directory / "saboteur.jsonl")
        planted = variables | {"PLANT": "" if plan.plant in {AGAIN, *OF_CLIENTS} else plan.plant}
        workers = stack.enter_context(_workers(plan, planted, directory))
        front = stack.enter_context(
            fronting(
                [worker.port for worker in workers],
                Ledger(directory / "balancer.jsonl"),
                again=plan.plant == AGAIN,
            )
        )
        saboteur = Saboteur(
            workers, front, ledger, plan.seed, database, redis, plan.only, plan.longest_pause
        )
        _sabotage(plan, saboteur, front, directory)
        rows = _settled(front, ledger, variables)
    events = read(directory.glob("*.jsonl"))
    figures = check(events, rows["effects"], rows["left"])
    return Outcome(plan, figures, events, time.monotonic() - begun, directory)


def _sabotage(plan: Plan, saboteur: Saboteur, front: Front, directory: Path) -> None:
    with _clients(plan, front.url, directory) as clients:
        for act in saboteur.acts(plan.acts):
            saboteur.do(act)
            _check(clients)
        while _sent(directory) < plan.requests:
            time.sleep(0.2)
            _check(clients)


def _check(clients: Sequence[subprocess.Popen[bytes]]) -> None:
    if any(client.poll() is not None for client in clients):
        raise RuntimeError("A client process has ended by itself")


def _sent(directory: Path) -> int:
    return sum(path.read_bytes().count(b'"e":"sent"') for path in directory.glob("client-*.jsonl"))


@contextmanager
def _clients(plan: Plan, url: str, directory: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run the client processes; at the end of the block each ends what it has begun."""
    clients = []
    for number in range(plan.clients):
        ledger = str(directory / f"client-{number}.jsonl")
        words = [url, ledger, f"{plan.seed}/{number}", str(plan.actors), plan.server]
        clients.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.workload", *words],
                cwd=CHECKOUT,
                env=os.environ | {"PLANT": plan.plant if plan.plant in OF_CLIENTS else ""},
                stdin=subprocess.PIPE,
            )
        )
    try:
        yield clients
        for client in clients:
            assert client.stdin is not None
            client.stdin.close()
        for client in clients:
            if client.wait(4 * following.BOUND):
                raise RuntimeError("A client process has failed")
    finally:
        for client in clients:
            client.kill()
            client.wait()


@contextmanager
def _workers(plan: Plan, variables: Mapping[str, str], directory: Path) -> Iterator[list[Worker]]:
    servers = plan.server.split("+")
    workers = [
        Worker(
            number, servers[number % len(servers)], variables, directory / f"worker-{number}.log"
        )
        for number in range(plan.workers)
    ]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.wait_until_ready()
        yield workers
    finally:
        for worker in workers:
            worker.kill()


@contextmanager
def _database(name: str, directory: Path) -> Iterator[Service | Path]:
    if name == "sqlite":
        yield directory / "db.sqlite3"
        return
    kind = {"postgres": PostgreSQL, "mariadb": MariaDB}[name]
    with _served(kind, directory) as service:
        yield service


@contextmanager
def _served(kind: type[Service], directory: Path) -> Iterator[Any]:
    service = kind(directory / kind.__name__.lower())
    try:
        yield service
    finally:
        service.stop()


def _settled(front: Front, ledger: Ledger, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the rows once all are final, or when they should have been."""
    deadline = time.monotonic() + SETTLING_SECONDS
    while True:
        # Who is dead is found by whoever is in use.
        _visit(front.url, ledger)
        rows = _rows(variables)
        if not rows["left"] or time.monotonic() > deadline:
            return rows
        time.sleep(0.5)


def _visit(url: str, ledger: Ledger) -> None:
    """Use the database by way of a worker, as the next client would."""

    async def visit() -> None:
        client = Legacy(url, ledger, random.Random(0))
        if await client.open():
            await client.exchange("tools/list", {}, what="tools/list").run()
            await client.end()

    asyncio.run(visit())


def _rows(variables: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "bazaar.rows"]
    done = subprocess.run(
        command, cwd=HERE, env=dict(variables), check=True, stdout=subprocess.PIPE, timeout=60
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
