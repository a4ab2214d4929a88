"""What counts as passing, and what a door is known not to be able to carry.

The suite's own counts mislead: a dead port "passes" dozens of checks, and a warning or a skip costs
nothing. Here a scenario passes if it ran, something of its own succeeded, and nothing failed,
warned or was skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .suite import Check

GOOD = {"SUCCESS", "INFO"}
GENERIC = "wire-schema-"
"""Checks that every scenario gets, and that the suite's own messages are enough to pass."""


@dataclass(frozen=True, slots=True)
class Known:
    """A scenario that cannot pass at a door."""

    reason: str
    checks: frozenset[str] = frozenset()
    """If given, the very checks that do not pass; the scenario's others must."""


Limits = Mapping[str, Mapping[str, Known]]
"""The entries by leg and scenario."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a scenario does not pass."""

    check: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """How one leg went."""

    leg: str
    passed: Sequence[str]
    expected: Sequence[str]
    """Scenarios that do not pass, since the door cannot carry them."""
    problems: Sequence[str]


def faults(checks: Iterable[Check]) -> list[Fault]:
    """Why a scenario with these checks does not pass; empty if it does."""
    checks = list(checks)
    bad = [check for check in checks if check["status"] not in GOOD]
    if bad:
        return [Fault(check["id"], _described(check)) for check in bad]
    own = [check for check in checks if not check["id"].startswith(GENERIC)]
    if any(check["status"] == "SUCCESS" for check in own):
        return []
    return [Fault("", "none of its own checks succeeded")]


def _described(check: Check) -> str:
    message = " ".join(str(check.get("errorMessage") or "").split())
    return f"{check['status']} {check['id']}: {message}"


def compare(
    leg: str,
    *,
    selected: Sequence[str],
    findings: Mapping[str, Sequence[Check]],
    known: Mapping[str, Known],
) -> Report:
    """Hold the findings of a leg against the suite's list and the limits of the door."""
    ran = {name: faults(findings[name]) for name in selected if name in findings}
    problems = [f"{name}: did not run" for name in selected if name not in ran]
    problems += [f"{name}: unknown name among the limits" for name in known if name not in selected]
    for name, found in ran.items():
        problems += [f"{name}: {problem}" for problem in _problems(found, known.get(name))]
    if not selected:
        problems.append("the suite lists no scenario")
    return Report(
        leg=leg,
        passed=[name for name, found in ran.items() if not found and name not in known],
        expected=[name for name, found in ran.items() if found and name in known],
        problems=problems,
    )


def _problems(found: Sequence[Fault], known: Known | None) -> Iterator[str]:
    if known is None:
        yield from [fault.text for fault in found[:1]]
    elif not found:
        yield "passes, yet stands among the limits"
    elif known.checks:
        yield from [fault.text for fault in found if fault.check not in known.checks]
        passing = known.checks - {fault.check for fault in found}
        yield from [f"{check} passes, yet stands among the limits" for check in sorted(passing)]


def read_limits(path: Path, *, door: str, legs: Iterable[str]) -> Limits:
    """What a door cannot carry; every leg named must be one that can be run."""
    entries = json.loads(path.read_text()).get(door, {})
    unknown = set(entries) - set(legs)
    if unknown:
        raise ValueError(f"Unknown legs in {path.name}: {', '.join(sorted(unknown))}")
    return {
        leg: {scenario: _known(entry) for scenario, entry in scenarios.items()}
        for leg, scenarios in entries.items()
    }


def _known(entry: Any) -> Known:
    if isinstance(entry, str):
        return Known(entry)
    return Known(entry["reason"], frozenset(entry["checks"]))


def table(reports: Iterable[Report]) -> str:
    """One line for each leg, the problems, and the sum."""
    reports = list(reports)
    lines = [f"{'leg':<26}{'passed':>8}{'limits':>10}{'failed':>8}"]
    lines += [
        f"{r.leg:<26}{len(r.passed):>8}{len(r.expected):>10}{len(r.problems):>8}" for r in reports
    ]
    lines += [f"FAILED {r.leg} {problem}" for r in reports for problem in r.problems]
    passed = sum(len(r.passed) for r in reports)
    failed = sum(len(r.problems) for r in reports)
    return "\n".join([*lines, f"{passed} passed, {failed} failed"])
