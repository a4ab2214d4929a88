"""The figures of a run, looked up and summed up over its rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from .contenders import BARES, ENTRANCES, PEERS, REFERENCE
from .figures import Spread, ratios
from .legs import MODERN

KINDS = {each.name: each.kind for each in (*BARES, *ENTRANCES, *PEERS)}
Rounds = dict[int, dict[str, Any]]


class Results:
    """Reads what :func:`benchmarks.run.main` has written."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        self._rounds: dict[tuple[str, str], Rounds] = defaultdict(dict)
        for each in report["measured"]:
            self._rounds[each["contender"], each["cell"]][each["round"]] = each

    @property
    def usual(self) -> Collection[str]:
        """Who is compared; not what is the same on other databases, or beside more rows."""
        return KINDS

    def contenders(self, leg: str, era: str, connections: int = 16) -> list[str]:
        """Return who has been measured, the fastest first."""
        cell = cell_name(leg, era, connections)
        names = [name for name, each in self._rounds if each == cell]
        return sorted(names, key=lambda name: -(self.spread(name, cell) or Spread(0, 0, 0)).median)

    def spread(self, contender: str, cell: str, key: str = "rate") -> Spread | None:
        """Return a figure over all rounds, if there is one."""
        found = self._rounds.get((contender, cell))
        return Spread.of([each[key] for each in found.values()]) if found else None

    def total(self, contender: str, cell: str, key: str) -> int:
        """Return the sum of a figure over all rounds."""
        return sum(each[key] for each in self._rounds[contender, cell].values())

    def ratio(
        self, one: tuple[str, str], other: tuple[str, str], key: str = "rate"
    ) -> Spread | None:
        """Divide a figure of two cells, round by round."""
        first, second = self._rounds.get(one, {}), self._rounds.get(other, {})
        both = sorted(first.keys() & second.keys())
        values = ratios([first[i][key] for i in both], [second[i][key] for i in both])
        return Spread.of(values) if values else None

    def to_bare(self, contender: str, cell: str) -> Spread | None:
        """Divide by a bare Django view that serves as many connections."""
        connections = cell.rpartition(" ")[2]
        return self.ratio((contender, cell), (REFERENCE, f"plain {MODERN} {connections}"))


def cell_name(leg: str, era: str, connections: int = 16) -> str:
    """Return what a cell is called in the figures."""
    return f"{leg} {era} {connections}"


def kind_of(contender: str) -> str:
    """Return whether it is one of ours, a peer's, or bare."""
    return KINDS.get(contender, "ours")
