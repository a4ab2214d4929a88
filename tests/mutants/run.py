"""Plants small bugs, one at a time, and counts those that the tests notice.

``python -m tests.mutants.run [--mutants COUNT] [--seed SEED] [PACKAGE ...]``. A bug is planted in a
copy of the working tree, and the tests run there that reach its line, until the first that fails.
One with which a test does not end is noticed as well. Exits with 1 if too few are noticed.

The same seed plants the same bugs in the same code. Which tests reach what is measured once for a
state of the tree, which takes as long as the tests do, and kept in ``.mutants/`` with the outcomes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from .planting import Mutant, chosen
from .reach import Reach, compile_all, measure
from .trial import ENDLESS, Outcome, try_mutant

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".mutants"
PACKAGES = ("protocol", "store", "server", "running", "http")
NOTICED_PERCENT = 90
"""How many must be noticed at least."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant the bugs, print the report, return the exit code."""
    options = _options(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="django-mcp-mutants-") as scratch:
        trees = [Path(scratch) / f"tree-{number}" for number in range(options.processes)]
        kept = KEPT / _copy(trees[0])
        kept.mkdir(parents=True, exist_ok=True)
        reach = measure(trees[0], kept, options.processes)
        for test in reach.failed:
            print(f"Fails without any bug, so it is left out: {test}")
        compile_all(trees[0])
        for tree in trees[1:]:
            shutil.copytree(trees[0], tree)
        mutants = chosen(trees[0] / "django_mcp", options.packages, options.mutants, options.seed)
        print(f"{len(mutants)} mutants, seed {options.seed}", flush=True)
        outcomes = list(_tried(mutants, reach, trees))
    report = json.dumps([asdict(outcome) for outcome in outcomes], indent=1)
    (kept / f"outcomes-{options.seed}.json").write_text(report + "\n")
    print(table(outcomes))
    print(f"{time.monotonic() - began:.0f} s in all")
    noticed = sum(bool(outcome.noticed_by) for outcome in outcomes)
    return 0 if 100 * noticed >= NOTICED_PERCENT * len(outcomes) else 1


def table(outcomes: Sequence[Outcome]) -> str:
    """Return how many were planted and noticed, by package."""
    columns = {
        "planted": Counter(each.mutant.package for each in outcomes),
        "noticed": Counter(each.mutant.package for each in outcomes if each.noticed_by),
        "by time": Counter(each.mutant.package for each in outcomes if ENDLESS in each.noticed_by),
        "no test": Counter(each.mutant.package for each in outcomes if not each.tests),
    }
    for counts in columns.values():
        counts["all"] = counts.total()
    rows = [["", *columns, "percent"]]
    for name in [*sorted(columns["planted"].keys() - {"all"}), "all"]:
        counted = [counts[name] for counts in columns.values()]
        percent = 100 * counted[1] / counted[0] if counted[0] else 100
        rows.append([name, *map(str, counted), f"{percent:.0f}"])
    return "\n".join(f"{name:10}" + "".join(f"{cell:>9}" for cell in row) for name, *row in rows)


def _tried(mutants: Sequence[Mutant], reach: Reach, trees: Sequence[Path]) -> Iterator[Outcome]:
    """Try the mutants, as many at once as there are trees, and print what becomes of each."""
    idle: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for tree in trees:
        idle.put(tree)
    sources = {mutant.path: (trees[0] / mutant.path).read_text() for mutant in mutants}

    def attempt(mutant: Mutant) -> Outcome:
        tree = idle.get()
        try:
            return try_mutant(mutant, reach, tree)
        finally:
            idle.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        for number, outcome in enumerate(pool.map(attempt, mutants), 1):
            mutant = outcome.mutant
            verdict = outcome.noticed_by or f"NOT NOTICED by {outcome.tests} tests"
            place = f"{mutant.path}:{mutant.line} {mutant.operator}"
            print(f"{number}. {place} ({outcome.seconds:.0f} s): {verdict}", flush=True)
            if not outcome.noticed_by:
                print(mutant.diff(sources[mutant.path]), flush=True)
            yield outcome


def _copy(tree: Path) -> str:
    """Copy what git has or would take; return a name for this state of the code."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    state = hashlib.sha256(sys.version.encode())
    for name in sorted(filter(None, listed.split("\0"))):
        source, target = ROOT / name, tree / name
        if source.is_file():  # git has still what was removed and not committed
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            if target.suffix == ".py":
                state.update(name.encode() + source.read_bytes())
    return state.hexdigest()[:12]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="below django_mcp")
    parser.add_argument("--mutants", type=int, default=200, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2, help="how many mutants at once")
    options = parser.parse_args(arguments)
    options.packages = options.packages or PACKAGES
    return options


if __name__ == "__main__":
    sys.exit(main())
