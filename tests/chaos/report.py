"""The figures of a run, as text and as JSON, and the histories of what must not be."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .checker import FAILURES
from .ledger import Event, keys_of
from .legs import Outcome

HISTORIES = 5
"""How many offenders of each figure are printed whole."""
AROUND = 15.0
"""Seconds before an offender's first event from which acts are printed with it."""


def as_json(outcomes: Sequence[Outcome], left_out: Sequence[str]) -> dict[str, Any]:
    """Return the report of all legs."""
    legs = []
    for each in outcomes:
        figures = each.figures
        legs.append(
            {
                "leg": each.plan.name,
                **asdict(each.plan),
                "seconds": round(each.seconds),
                "figures": dict(figures.counts),
                "closed by": dict(figures.closed_by),
                "errors": dict(figures.errors),
                "longest wait": round(figures.longest, 1),
                "acts done": [
                    {key: each[key] for key in ("name", "worker", "begun", "t", "result")}
                    for each in each.events
                    if each["e"] == "act"
                ],
                "offenders": {key: value for key, value in figures.offenders.items() if value},
            }
        )
    return {"legs": legs, "left out": list(left_out)}


def as_text(outcome: Outcome) -> str:
    """Return the report of one leg."""
    figures = outcome.figures
    counts = figures.counts
    done = Counter(each["name"] for each in outcome.events if each["e"] == "act")
    lines = [
        _listed(done),
        f"{counts['requests']} requests in {counts['sessions']} sessions: "
        f"{counts['accepted']} accepted, {counts['answered']} answered, {counts['failed']} ended "
        f"by error, {counts['closed']} closed; {counts['resumptions']} resumptions",
        f"  closed by: {_listed(figures.closed_by)}",
        *(f"  {count} x {reason}" for reason, count in figures.errors.most_common(12)),
        "  " + ", ".join(f"{counts[each]} {each}" for each in FAILURES),
        f"  longest wait {figures.longest:.1f} s; {outcome.seconds:.0f} s in all",
    ]
    for figure in FAILURES:
        for key, why in list(figures.offenders.get(figure, {}).items())[:HISTORIES]:
            lines += ["", f"{figure.upper()}: {key}: {why}", *_history(key, outcome.events)]
    return "\n".join(lines)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


def _history(key: str, events: Sequence[Event]) -> list[str]:
    """Return everything about an exchange or a session, and the acts of that time."""
    own = [each for each in events if key in (*keys_of(each), each.get("s"))]
    if not own:
        return []
    begin, end = own[0]["t"] - AROUND, own[-1]["t"] + 1
    acts = [
        each for each in events if each["e"] == "act" and begin < each["t"] and each["begun"] < end
    ]
    shown = sorted(own + acts, key=lambda each: each["t"])
    zero = own[0]["t"]
    return [f"  {each['t'] - zero:+8.3f} {_line(each, zero)}" for each in shown[:120]]


def _line(each: Event, zero: float) -> str:
    facts = {key: value for key, value in each.items() if key not in ("t", "e", "x")}
    if "begun" in facts:
        facts["begun"] = round(facts["begun"] - zero, 3)
    return f"{each['e'].upper():9}{json.dumps(facts)[:400]}"


def summary(report: dict[str, Any]) -> str:
    """Return the figures of all legs together."""
    total: Counter[str] = Counter()
    for leg in report["legs"]:
        total.update(leg["figures"])
    names = ["acts", "sessions", "requests", "accepted", "answered", "failed", "closed"]
    lines = [f"{total[name]:>8} {name}" for name in [*names, "resumptions", *FAILURES]]
    lines += [f"LEFT OUT: {name}" for name in report["left out"]]
    return "\n".join(lines)
