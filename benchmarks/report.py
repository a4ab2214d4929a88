"""A page about a run: the text is a person's, in ``page.md``, and figures are put into it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .contenders import BARES, REFERENCE
from .environments import OWN, PRODUCTION
from .figures import Spread
from .flames import ORIGINS, REST
from .legs import ERAS, LEGACY, LEGS, MODERN
from .plots import Bar, bars, flame
from .results import Results, cell_name, kind_of
from .targets import GROWN, targets

TEMPLATE = Path(__file__).resolve().parent / "page.md"
QUIET = 0.05
"""Above this share that others use of the machine, a page says how little it proves."""
SATURATED = 0.85
"""Below this share of its core a server waits for something else."""
_PLACE = re.compile(r"\[\[([a-z-]+)\]\]")
_PICTURES = {
    "add-session": ("A tool that does nothing, 2025-11-25: requests per second", "add", LEGACY),
    "add-modern": ("A tool that does nothing, 2026-07-28: requests per second", "add", MODERN),
    "select": ("A tool that reads one row, 2025-11-25: requests per second", "select", LEGACY),
    "tell": ("A tool that says three things, 2025-11-25: requests per second", "tell", LEGACY),
}
_BARE = {"add": "plain", "select": "plain select"}


def write(results: Results, page: Path, pictures: Path) -> None:
    """Write the page, and the pictures that it shows."""
    pictures.mkdir(parents=True, exist_ok=True)
    for name, (title, leg, era) in _PICTURES.items():
        bare = _bars(results, _BARE[leg], MODERN) if leg in _BARE else ()
        picture = bars(title, [*_bars(results, leg, era), *bare])
        (pictures / f"benchmark-{name}.svg").write_text(picture)
    for each in results.report.get("flames", []):
        title = f"{each['contender']}, {_era(each)}"
        picture = flame(title, each["tree"], [*dict.fromkeys(ORIGINS.values()), REST])
        (pictures / f"flame-{each['picture']}.svg").write_text(picture)
    page.parent.mkdir(parents=True, exist_ok=True)
    text = _PLACE.sub(lambda found: PLACES[found[1]](results), TEMPLATE.read_text())
    page.write_text(text)


def _bars(results: Results, leg: str, era: str) -> Iterator[Bar]:
    for contender in results.contenders(leg, era):
        rate = results.spread(contender, cell_name(leg, era))
        # What is grown, and what has its sessions elsewhere, have tables of their own.
        if rate is not None and contender in results.usual:
            text = f"{rate.median:,.0f}"
            yield Bar(contender, kind_of(contender), rate.median, rate.least, rate.most, text)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _machine(results: Results) -> str:
    report = results.report
    machine, plan = report["machine"], report["plan"]
    generator = report["generator"]
    lines = [
        f"- {report['date']}, {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory']}, {machine['system']}, Python {machine['python']}.",
        f"- Rounds: {plan['rounds']}, with {plan['seconds']:g} s for each figure in each.",
        f"- Before it began, other programs used {report['others']:.0%} of the two cores, and at "
        f"most {report['others_most']:.0%} between rounds.",
        f"- Before it began, the load generator itself reached {generator['rate']:,.0f} requests "
        "a second against a responder that does nothing, with "
        f"{generator['microseconds']:.1f} µs of its core for each, checks included.",
    ]
    own = report["versions"].get(OWN, {})
    missing = [name for name in PRODUCTION if own.get(name) == "missing"]
    if missing:
        lines += ["", f"**Our own servers ran without {' and '.join(missing)}**, the others with."]
    if report["others_most"] > QUIET:
        lines += [
            "",
            "**The machine was not quiet.** The rates are lower than they would be, and ratios of "
            "them unsteady; processor times suffer least.",
        ]
    return "\n".join(lines)


def _versions(results: Results) -> str:
    rows = [
        (name, ", ".join(f"{package} {number}" for package, number in versions.items()))
        for name, versions in results.report["versions"].items()
    ]
    return table(("Environment", "Versions"), rows)


def _targets(results: Results) -> str:
    verdict = {True: "yes", False: "**no**", None: "—"}
    rows = [
        (each.title, each.aim, each.measured, verdict[each.reached], each.processor)
        for each in targets(results)
    ]
    return table(("What", "Target", "Measured", "Reached", "By processor time"), rows)


def _leg(leg: str, connections: int = 16) -> Callable[[Results], str]:
    def write_leg(results: Results) -> str:
        rows = [
            _row(results, contender, cell_name(leg, era, connections), era)
            for era in ERAS
            for contender in results.contenders(leg, era, connections)
            if contender in results.usual
        ]
        rows.sort(key=lambda row: -float(row[2].replace(",", "")))
        return table(_HEADINGS, rows)

    return write_leg


_HEADINGS = ("Server", "", "req/s", "± %", "µs", "× bare", "p50 ms", "p99 ms")


def _row(results: Results, contender: str, cell: str, what: str) -> list[str]:
    rate = results.spread(contender, cell) or Spread(0, 0, 0)
    bare = results.to_bare(contender, cell)
    busy = results.spread(contender, cell, "server_busy")
    name = f"**{contender}**" if kind_of(contender) == "ours" else contender
    mark = " ◦" if busy and busy.median < SATURATED else ""
    wrong = results.total(contender, cell, "wrong")
    return [
        name + mark + (f" ({wrong} wrong)" if wrong else ""),
        what,
        f"{rate.median:,.0f}",
        f"{rate.relative * 50:.0f}",
        *(_median(results, contender, cell, "microseconds", "{:,.0f}"),),
        f"{bare.median:.2f}" if bare else "",
        *(_median(results, contender, cell, key, "{:.2f}") for key in ("median", "late")),
    ]


def _median(results: Results, contender: str, cell: str, key: str, form: str) -> str:
    found = results.spread(contender, cell, key)
    return form.format(found.median) if found else ""


def _references(results: Results) -> str:
    rows = [
        _row(results, each.name, cell_name(leg, MODERN), LEGS[leg].title)
        for leg in ("plain", "plain select")
        for each in BARES
        if results.spread(each.name, cell_name(leg, MODERN))
    ]
    return table(_HEADINGS, rows)


def _connections(results: Results) -> str:
    rows = []
    for leg, era in (("plain", MODERN), ("add", LEGACY), ("add", MODERN)):
        for contender in results.contenders(leg, era, 64):
            spreads = [results.spread(contender, cell_name(leg, era, n)) for n in (1, 16, 64)]
            late = results.spread(contender, cell_name(leg, era, 64), "late")
            what = "" if leg == "plain" else era
            rates = [f"{each.median:,.0f}" if each else "" for each in spreads]
            rows.append([contender, what, *rates, f"{late.median:.1f}" if late else ""])
    headings = ("Server", "", "1", "16", "64 connections, req/s", "p99 ms at 64")
    return table(headings, rows)


def _databases(results: Results) -> str:
    rows = []
    for entrance in ("view, gunicorn gthread", "mount, uvicorn"):
        for title in ("PostgreSQL", "MariaDB", "SQLite"):
            name = entrance if title == "PostgreSQL" else f"{entrance}, {title}"
            found = [
                results.spread(name, cell_name(leg, LEGACY)) for leg in ("add", "select", "open")
            ]
            if any(found):
                rows.append(
                    [entrance, title, *(f"{each.median:,.0f}" if each else "" for each in found)]
                )
    return table(("Way in", "Sessions in", "`add`", "one SELECT", "`initialize`"), rows)


def _growth(results: Results) -> str:
    rows = []
    for level in results.report["levels"]:
        name = f"mount, uvicorn, {level:,} sessions"
        found = [results.spread(name, cell_name(leg, LEGACY, number)) for leg, number in GROWN]
        alone = results.spread(name, cell_name("add", LEGACY, 1), "median")
        rates = [f"{each.median:,.0f}" if each else "" for each in found]
        rows.append([f"{level:,}", *rates, f"{alone.median:.2f}" if alone else ""])
    headings = ("Sessions", "`add`", "`linger`", "`initialize`, req/s", "`add` alone, p50 ms")
    return table(headings, rows)


def _held(results: Results) -> str:
    rows = []
    for held in results.report["held"]:
        stream, (before, after) = held["stream"], held["threads"]
        rows.append(
            [
                f"**{held['contender']}**"
                if kind_of(held["contender"]) == "ours"
                else held["contender"],
                "" if held["session"] is None else f"{held['session'] / 1024:.1f}",
                f"{stream / 1024:.1f}" if stream is not None else f"— {held['why'][:80]}",
                f"{before} → {after}",
                "" if held["connections"] is None else str(held["connections"]),
            ]
        )
    headings = ("Server", "KB for a session", "KB for a stream", "Threads", "Connections")
    return table(headings, rows)


def _woken(results: Results) -> str:
    rows = [
        (each["how"], f"{each['median']:.1f}", f"{each['late']:.1f}", f"{each['call']:.1f}")
        for each in results.report["woken"]
    ]
    return table(("By", "p50 ms", "p99 ms", "of that the call itself, p50 ms"), rows)


def _flames(results: Results) -> str:
    found = results.report.get("flames", [])
    origins = [*dict.fromkeys(ORIGINS.values()), REST]
    rows = [
        [each["contender"], _era(each), *(f"{each['shares'].get(o, 0):.0%}" for o in origins)]
        for each in found
    ]
    pictures = [
        f"![{each['contender']}, {_era(each)}](../images/flame-{each['picture']}.svg)"
        for each in found
    ]
    return "\n\n".join([table(("Way in", "", *origins), rows), *pictures])


def _era(flamed: dict[str, Any]) -> str:
    return next(era for era in ERAS if era in flamed["cell"])


def _left_out(results: Results) -> str:
    if not results.report["left_out"]:
        return "Nothing was left out."
    rows = [
        (what, " ".join(why.split())[:240].replace("|", "\\|"))
        for what, why in results.report["left_out"].items()
    ]
    return table(("What could not be measured", "Why"), rows)


PLACES: dict[str, Callable[[Results], str]] = {
    "machine": _machine,
    "versions": _versions,
    "targets": _targets,
    "references": _references,
    "add": _leg("add"),
    "select": _leg("select"),
    "tell": _leg("tell"),
    "linger": _leg("linger", 64),
    "list": _leg("list"),
    "open": _leg("open"),
    "discover": _leg("discover"),
    "connections": _connections,
    "databases": _databases,
    "growth": _growth,
    "held": _held,
    "woken": _woken,
    "flames": _flames,
    "left-out": _left_out,
    "reference": lambda _: REFERENCE,
}
