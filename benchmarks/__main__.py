"""Runs the benchmark and writes the page: ``python -m benchmarks [--short] [--only WORD ...]``.

Without options it takes about half an hour, sets up the environments of the peers at the first
time, and rewrites ``docs/explanation/performance.md``. ``--short`` is for CI: it runs every kind of
measurement once, with a few requests, without the peers; it fails if an answer is wrong, or if
something cannot be run that is there, and judges no time.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import flames, holding, waking
from .contenders import BARES, ENTRANCES, PEERS, Contender, elsewhere, grown
from .databases import Databases
from .environments import ENVIRONMENTS, OWN, PRODUCTION, own_versions
from .generator import reach
from .machine import Cores, busy_seconds, description
from .report import write
from .results import Results
from .rounds import Bench, Plan, as_json

DOCS = Path(__file__).resolve().parents[1] / "docs"
PARTS = ("rounds", "holding", "waking", "flames")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write, and return the exit code."""
    options = _options(arguments)
    # Whoever ends this ends the servers, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.again:
        write(Results(json.loads(options.again.read_text())), *_places(DOCS))
        return 0
    with tempfile.TemporaryDirectory(prefix="django-mcp-bench-") as scratch:
        directory = Path(scratch)
        directory.chmod(0o755)  # database servers run as users of their own
        report = _measure(options, directory)
        docs = directory if options.short else options.output
        _save(report, docs)
        failed = _failures(report) if options.short else []
        if options.short and "|" not in _places(docs)[0].read_text():
            failed.append("the page has no figures")
    for each in failed:
        print(f"FAILED: {each}")
    print("The short form has run." if options.short else f"Written: {_places(docs)[0]}")
    return 1 if failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="for CI: everything once, no peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each figure in a round")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="in a server's name")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--streams", type=int, default=500, help="idle ones that are opened")
    parser.add_argument("--sessions", type=int, default=1_000_000, help="to which tables grow")
    parser.add_argument("--output", type=Path, default=DOCS, help="where the pages are")
    parser.add_argument(
        "--again", type=Path, metavar="JSON", help="write the page of these figures"
    )
    return parser.parse_args(arguments)


def _measure(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    missing = [name for name in PRODUCTION if find_spec(name) is None]
    if missing and not options.short:
        # The peers have them: ours would be measured with less.
        raise SystemExit(f"{', '.join(missing)}: not installed. Install the group `bench`.")
    cores = Cores.choose()
    os.sched_setaffinity(0, {cores.load})
    others = [_others(cores)]
    print(f"Others use {others[0]:.0%} of cores {cores.server} and {cores.load}.", flush=True)
    databases = Databases(directory)
    bench = Bench(cores, databases, directory)
    levels = (1, 100) if options.short else (1, 10_000, options.sessions)
    plan = Plan(1, 0.5, 32) if options.short else Plan(options.rounds, options.seconds)
    woken, held, burnt = [], [], []
    try:
        chosen = bench.prepare(_chosen(options, levels))
        generator = reach(cores, directory / "responder.log", plan.seconds)
        if "rounds" in options.parts:
            bench.run(chosen, plan, between=lambda: others.append(_others(cores)))
        if "holding" in options.parts:
            number, pause = (20, 0.2) if options.short else (options.streams, 1.0)
            held = holding.measure(bench, chosen, number, pause)
        if "waking" in options.parts:
            woken = waking.measure(bench, 3 if options.short else 50)
        if "flames" in options.parts:
            burnt = flames.measure(bench, chosen, 1 if options.short else 8)
    finally:
        databases.close()
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": description(),
        "versions": _versions(chosen),
        "plan": asdict(plan),
        "others": round(others[0], 3),
        "others_most": round(max(others), 3),
        "generator": generator,
        "levels": levels,
        "held": held,
        "woken": woken,
        "flames": burnt,
        "left_out": bench.left_out,
        "measured": [as_json(each) for each in bench.measured],
    }


def _chosen(options: argparse.Namespace, levels: tuple[int, ...]) -> list[Contender]:
    every = [*BARES, *ENTRANCES, *elsewhere()]
    every += grown(levels, "sqlite" if options.short else "postgres")
    every += [] if options.short else PEERS
    return [
        each
        for each in every
        if not options.only or any(word.lower() in each.name.lower() for word in options.only)
    ]


def _others(cores: Cores) -> float:
    """Return how much of both cores others use, while this process sleeps for a second."""
    both = (cores.server, cores.load)
    before, begun = sum(map(busy_seconds, both)), time.monotonic()
    time.sleep(1)
    busy = (sum(map(busy_seconds, both)) - before) / (time.monotonic() - begun)
    return min(busy / len(both), 1.0)


def _versions(contenders: Sequence[Contender]) -> dict[str, dict[str, str]]:
    names = sorted({each.environment for each in contenders} - {""})
    return {OWN: own_versions()} | {name: ENVIRONMENTS[name].versions() for name in names}


def _places(docs: Path) -> tuple[Path, Path]:
    return docs / "explanation" / "performance.md", docs / "images"


def _save(report: dict[str, Any], docs: Path) -> None:
    page, pictures = _places(docs)
    measured = ",\n".join(json.dumps(each) for each in report["measured"])
    rest = json.dumps({key: value for key, value in report.items() if key != "measured"}, indent=1)
    text = f'{rest[:-2]},\n "measured": [\n{measured}\n]}}\n'
    page.parent.mkdir(parents=True, exist_ok=True)
    page.with_suffix(".json").write_text(text)
    write(Results(report), page, pictures)


def _failures(report: dict[str, Any]) -> list[str]:
    wrong = [f"{each['contender']}: {each['why']}" for each in report["measured"] if each["wrong"]]
    # What is not installed is reported; CI has everything.
    left_out = [f"{what}: {why}" for what, why in report["left_out"].items()]
    excused = [each for each in left_out if "is not installed" in each]
    return wrong + [each for each in left_out if each not in excused or os.environ.get("CI")]


if __name__ == "__main__":
    sys.exit(main())
