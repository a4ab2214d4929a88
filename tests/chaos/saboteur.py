"""The saboteur: what is done to the processes, in an order that follows from a seed alone.

The seed decides which acts there are, of which worker, how long each lasts and how long the pause
after it is. Not decided are the moments, since an act takes as long as a process takes to start,
and what it meets: which calls run just then, and which connections a cut finds open.
"""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .front import Front
from .ledger import Ledger
from .servers import Worker
from .services import Database, Redis

LEASE = 4.0
"""Seconds; what sleeps for longer than this is settled by others."""
LONGEST_PAUSE = 1.5 * LEASE
"""Seconds between two acts, at most: long enough for what the last has left to be settled."""


@dataclass(frozen=True)
class Act:
    """One act of sabotage, before it is done."""

    name: str
    worker: int
    seconds: float
    """How long what it does lasts, where it lasts."""
    share: float
    pause: float
    clock_offset: float
    """By how much the clock of a process that it starts is wrong."""


@dataclass
class Saboteur:
    """Does acts, one after the other, and leaves everything running."""

    workers: Sequence[Worker]
    front: Front
    ledger: Ledger
    seed: str
    database: Database | Path
    """Where a path is given, a file of SQLite's."""
    redis: Redis | None = None
    only: Sequence[str] = ()
    longest_pause: float = LONGEST_PAUSE

    def acts(self, count: int) -> Iterator[Act]:
        """Return what is to be done: each kind once, then in proportion; the same for a seed."""
        chance = random.Random(f"{self.seed}/acts")
        weights = self._weights()
        names = chance.sample(list(weights), len(weights))
        names += chance.choices(list(weights), list(weights.values()), k=max(0, count - len(names)))
        for name in names[: count or None]:
            yield Act(
                name=name,
                worker=chance.randrange(len(self.workers)),
                seconds=chance.random(),
                share=chance.uniform(0.2, 1),
                pause=chance.uniform(0.3, self.longest_pause),
                clock_offset=chance.choice([0, -900, -90, 90, 900]),
            )

    def do(self, act: Act) -> None:
        """Do an act; what it stopped runs again when this returns."""
        begun = time.monotonic()
        done = getattr(self, act.name)(act)
        facts = {"worker": act.worker, "begun": begun, "result": done}
        self.ledger.note("act", name=act.name, **facts)
        time.sleep(act.pause)

    def _weights(self) -> dict[str, int]:
        """Return the kinds of acts that there are here, and how often each is to come."""
        found = {"kill": 4, "terminate": 4, "stand_still": 3, "doze": 2, "cut": 3, "all_down": 1}
        found["all_terminate"] = 1
        if isinstance(self.database, Path):
            found["lock"] = 3
        else:
            found |= {"restart_database": 2, "kill_database": 1, "break_connections": 2}
        if self.redis is not None:
            found |= {"flush_redis": 2, "restart_redis": 2}
        return {name: found[name] for name in found if not self.only or name in self.only}

    # Acts upon the workers

    def kill(self, act: Act) -> None:
        """``kill -9``; start again after a while, with another clock."""
        worker = self.workers[act.worker]
        worker.kill()
        time.sleep(2 * act.seconds)
        self._start([worker], act)

    def terminate(self, act: Act) -> float | None:
        """SIGTERM, as a deployment does it; start again."""
        worker = self.workers[act.worker]
        seconds = worker.terminate()
        self._start([worker], act)
        return seconds

    def stand_still(self, act: Act) -> None:
        """SIGSTOP for longer than a lease, SIGCONT."""
        self._stop(act, LEASE * (1.2 + act.seconds))

    def doze(self, act: Act) -> None:
        """SIGSTOP for less than a lease, SIGCONT."""
        self._stop(act, LEASE * 0.6 * act.seconds)

    def all_down(self, act: Act) -> None:
        """Kill all workers, and start them after a while."""
        for worker in self.workers:
            worker.kill()
        time.sleep(2 * act.seconds)
        self._start(self.workers, act)

    def all_terminate(self, act: Act) -> list[float | None]:
        """SIGTERM to all workers, one after the other, and start them."""
        seconds = [worker.terminate() for worker in self.workers]
        self._start(self.workers, act)
        return seconds

    def _stop(self, act: Act, seconds: float) -> None:
        worker = self.workers[act.worker]
        worker.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            worker.send_signal(signal.SIGCONT)

    def _start(self, workers: Sequence[Worker], act: Act) -> None:
        for worker in workers:
            worker.start(act.clock_offset)
        for worker in workers:
            worker.wait_until_ready()

    # Acts upon what they need

    def cut(self, act: Act) -> None:
        """Break a share of all connections of clients."""
        self.front.cut(act.share, random.Random(f"{self.seed}/{act}"))

    def restart_database(self, act: Act) -> None:
        """Restart the database in an orderly way."""
        seconds = 1.5 * LEASE * act.seconds
        self._on_database(lambda database: database.restart(seconds, hard=False))

    def kill_database(self, act: Act) -> None:
        """Kill the database, and start it again."""
        seconds = LEASE * act.seconds
        self._on_database(lambda database: database.restart(seconds, hard=True))

    def break_connections(self, act: Act) -> int:
        """Break all connections to the database, which goes on."""
        broken: int = self._on_database(lambda database: database.break_connections())
        return broken

    def lock(self, act: Act) -> None:
        """Hold SQLite's lock for writing, as a long transaction of the site would."""
        assert isinstance(self.database, Path)
        connection = sqlite3.connect(self.database, timeout=30, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(3 * act.seconds)
        connection.execute("ROLLBACK")
        connection.close()

    def flush_redis(self, act: Act) -> None:
        """Let Redis forget everything."""
        assert self.redis is not None
        self.redis.flush()

    def restart_redis(self, act: Act) -> None:
        """Let Redis be away for a while, and forget everything."""
        assert self.redis is not None
        self.redis.restart(3 * act.seconds)

    def _on_database(self, do: Callable[[Any], Any]) -> Any:
        assert not isinstance(self.database, Path)
        return do(self.database)
