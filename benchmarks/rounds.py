"""Measures every cell of every contender, round after round.

In each round a server is started, measured and stopped before the next one, so that what drifts
(clocks, caches, neighbours) meets all of them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.servers import HOST

from .contenders import Cell, Contender
from .databases import Databases, Missing
from .environments import ENVIRONMENTS, Unavailable
from .figures import percentile
from .legs import LEGACY, OPEN, Caller
from .load import Load, Outcome
from .machine import Cores, busy_seconds
from .serving import Failed, Server, serving
from .sessions import Refused, open_sessions

WARM_UP = 0.4
"""Of a measurement, the share by which it is preceded without being looked at."""
PROBES = 3
PROBE_SECONDS = 5.0
SHOWN = 300


@dataclass(frozen=True, slots=True)
class Measured:
    """One cell in one round."""

    contender: str
    cell: str
    round: int
    rate: float
    microseconds: float
    """Processor time of the server for a request."""
    median: float
    late: float
    """The 99th percentile of the latency, like the median in milliseconds."""
    wrong: int
    why: str
    reconnects: int
    server_busy: float
    """How much of its core the server used."""
    load_busy: float
    """How much of the other core was used, by generator and database together."""
    generator_busy: float


@dataclass(frozen=True, slots=True)
class Plan:
    """How thoroughly."""

    rounds: int
    seconds: float
    requests: int | None = None
    """So many suffice; without a number the seconds count alone."""


class Bench:
    """Runs contenders on one machine."""

    def __init__(self, cores: Cores, databases: Databases, logs: Path) -> None:
        self.cores = cores
        self.databases = databases
        self.logs = logs
        self.measured: list[Measured] = []
        self.left_out: dict[str, str] = {}
        """What could not be measured, and why."""

    @contextmanager
    def serving(self, contender: Contender, **variables: str) -> Iterator[Server]:
        """Run a contender; what it refuses is raised with the end of its log."""
        log = self.logs / f"{contender.name.replace(' ', '-').replace(',', '')}.log"
        given = contender.variables | variables
        given["DATABASE_URL"] = self.databases.url(contender.database)
        with serving(contender.arguments(), given, self.cores.server, log) as server:
            try:
                yield server
            except (OSError, Refused) as error:
                raise Failed(f"{error}\n{server.tail()}") from error

    def attempt(self, contender: Contender, work: Callable[[Server], None]) -> None:
        """Do something with a running contender; note it if that cannot be."""
        try:
            with self.serving(contender) as server:
                work(server)
        except (Failed, Missing) as error:
            self.leave_out(contender.name, str(error))

    def leave_out(self, what: str, why: str) -> None:
        """Note that something could not be measured."""
        if what not in self.left_out:
            self.left_out[what] = why.strip()
            print(f"LEFT OUT: {what}: {why.strip()[-600:]}", flush=True)

    def prepare(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Make the environments; return those contenders that have theirs."""
        for name in sorted({each.environment for each in contenders} - {""}):
            try:
                ENVIRONMENTS[name].prepare()
            except Unavailable as error:
                for each in contenders:
                    if each.environment == name:
                        self.leave_out(each.name, str(error))
        return [each for each in contenders if each.name not in self.left_out]

    def run(self, contenders: Sequence[Contender], plan: Plan, between: Callable[[], None]) -> None:
        """Measure all of them in each round, each time beginning with another one."""
        for number in range(plan.rounds):
            between()
            first = number * len(contenders) // plan.rounds
            for contender in [*contenders[first:], *contenders[:first]]:
                if contender.name not in self.left_out:
                    self.attempt(contender, partial(self._measure, contender, plan, number))

    def _measure(self, contender: Contender, plan: Plan, number: int, server: Server) -> None:
        for cell in contender.cells:
            what = f"{contender.name}: {cell.name}"
            if what in self.left_out:
                continue
            try:
                found = self._measure_cell(server, contender, cell, plan, number)
            except _NoAnswer as error:
                self.leave_out(what, str(error))
                continue
            self.measured.append(found)
            print(_line(found), flush=True)

    def _measure_cell(
        self, server: Server, contender: Contender, cell: Cell, plan: Plan, number: int
    ) -> Measured:
        load = Load(server.port, callers(server, contender, cell))
        try:
            probe = load.run(PROBE_SECONDS, PROBES)
            if not probe.answered:
                raise _NoAnswer("; ".join(probe.wrong)[-SHOWN:])
            load.run(plan.seconds * WARM_UP, plan.requests)
            busy, before = busy_seconds(self.cores.load), server.use().seconds
            outcome = load.run(plan.seconds, plan.requests)
            used = server.use().seconds - before
            busy = busy_seconds(self.cores.load) - busy
        finally:
            load.close()
        return _summed_up(contender, cell, number, outcome, used, busy)


class _NoAnswer(Exception):
    """No request of a cell has got its right answer."""


def callers(server: Server, contender: Contender, cell: Cell) -> list[Caller]:
    """Return who calls for a cell: one for each connection, in a session of its own if need be."""
    sessions = [""] * cell.connections
    if cell.era == LEGACY and contender.sessions and cell.leg is not OPEN:
        sessions = open_sessions(server.port, cell.connections)
    host = f"{HOST}:{server.port}"
    return [Caller(cell.leg, cell.era, host, cell.path, session) for session in sessions]


def _summed_up(
    contender: Contender, cell: Cell, number: int, outcome: Outcome, used: float, busy: float
) -> Measured:
    return Measured(
        contender=contender.name,
        cell=cell.name,
        round=number,
        rate=outcome.rate,
        microseconds=used / outcome.answered * 1e6 if outcome.answered else 0.0,
        median=percentile(outcome.latencies, 0.5) * 1e3,
        late=percentile(outcome.latencies, 0.99) * 1e3,
        wrong=len(outcome.wrong),
        why=outcome.wrong[0][:SHOWN] if outcome.wrong else "",
        reconnects=outcome.reconnects,
        server_busy=used / outcome.seconds,
        load_busy=busy / outcome.seconds,
        generator_busy=outcome.own_seconds / outcome.seconds,
    )


def _line(found: Measured) -> str:
    wrong = f"  {found.wrong} WRONG: {found.why}" if found.wrong else ""
    return (
        f"{found.round + 1}  {found.contender:<44.44} {found.cell:<24} {found.rate:9,.0f}/s "
        f"{found.microseconds:7,.0f} µs  p50 {found.median:6.2f}  p99 {found.late:7.2f} ms  "
        f"server {found.server_busy:4.0%} load {found.load_busy:4.0%}{wrong}"
    )


def as_json(found: Measured) -> dict[str, Any]:
    """Return a measurement, with no more digits than it deserves."""
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in asdict(found).items()
    }
