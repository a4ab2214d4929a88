"""Which tests reach a line of the code, and how long they take: a run of all of them, measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

from .planting import Mutant
from .plugin import name_of

MARKS = "not node and not browser and not workers and not clients"
ELSEWHERE = ("benchmarks", "chaos", "clients", "conformance", "docs", "example", "mutants")
"""Folders of tests that have settings or processes of their own, which are not measured."""
SECONDS, COVERAGE = "seconds.json", "coverage"
"""What is left of a suite that was measured."""
SETTINGS = """[run]
source = django_mcp
relative_files = true
core = ctrace
"""
"""The other ways to trace, which are faster, know no contexts."""


@dataclass(frozen=True)
class Suite:
    """Tests that have the same settings, and so can be run together."""

    name: str
    where: tuple[str, ...]
    """What tells pytest which tests those are."""
    settings: str
    folder: str = ""
    """Where all of them are, if they have one to themselves."""

    def pytest(self, *options: str) -> list[str]:
        """Return a command that runs tests of it."""
        return [sys.executable, "-m", "pytest", "-q", f"--ds={self.settings}", *options]

    def all(self, *options: str) -> list[str]:
        """Return a command that runs all of them."""
        return self.pytest(*self.where, "-m", MARKS, *options)


SUITES = (
    Suite("tenants", ("tests/tenants",), "tests.tenants.databases", "tests/tenants/"),
    Suite(
        "tests",
        ("tests", *(f"--ignore=tests/{folder}" for folder in ELSEWHERE)),
        "tests.settings",
    ),
)
"""The last one has what is in no folder of another."""


def by_suite(tests: Iterable[str]) -> list[tuple[Suite, list[str]]]:
    """Return the tests of each suite that has any of them, in their order."""
    found: dict[Suite, list[str]] = {}
    for test in tests:
        suite = next(each for each in SUITES if test.startswith(each.folder))
        found.setdefault(suite, []).append(test)
    return list(found.items())


class TestsFailed(Exception):
    """Nothing was measured."""


@dataclass(frozen=True)
class Reach:
    """Which tests reach what."""

    lines: dict[str, dict[int, frozenset[str]]]
    """By the path of a file, below the repository, and the number of a line."""
    seconds: dict[str, float]
    """What each test that passes takes."""
    failed: tuple[str, ...] = ()
    """The tests that do not pass as it is: they notice nothing."""

    def of_mutant(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant, in the order in which to run them.

        A line that runs when its module is imported, or on a thread that belongs to no test, is
        reached by each test that runs anything of the module; if that is nothing but such lines, of
        the modules beside it.
        """
        lines = self.lines.get(mutant.path, {})
        tests: frozenset[str] = frozenset()
        if mutant.runs:
            # Python traces some of the lines of a statement that goes over several.
            tests = lines.get(mutant.line) or lines.get(mutant.statement) or tests
            if not (tests or mutant.line in lines or mutant.statement in lines):
                return []
        if not tests:
            tests = tests.union(*lines.values())
            folder = Path(mutant.path).parent
            beside = [path for path in self.lines if Path(path).parent == folder]
            tests = tests or frozenset().union(
                *(tests for path in beside for tests in self.lines[path].values())
            )
        return self.in_order(tests)

    def in_order(self, tests: Collection[str]) -> list[str]:
        """Order tests so that the first failure comes early.

        Each function comes once before any comes with other parameters, and a file whose tests are
        quick comes before one whose tests are slow.
        """
        rounds: defaultdict[str, int] = defaultdict(int)
        round_of: dict[str, int] = {}
        cost: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            function = test.partition("[")[0]
            round_of[test] = min(rounds[function], 1)
            rounds[function] += 1
            cost[round_of[test], _file(test)].append(self.seconds[test])

        def key(test: str) -> tuple[int, float, str, str]:
            its_round, file = round_of[test], _file(test)
            costs = cost[its_round, file]
            return its_round, sum(costs) / len(costs), file, test

        return sorted(tests, key=key)


def measure(tree: Path, results: Path, processes: int) -> Reach:
    """Run the tests of ``tree`` with coverage; leave what was measured in the folder ``results``.

    What a run left there before is read instead.

    Raises:
        TestsFailed: pytest did not come to its end.
    """
    for suite in SUITES:
        _measure(suite, tree, results, processes)
    return read([results / suite.name for suite in SUITES])


def _measure(suite: Suite, tree: Path, results: Path, processes: int) -> None:
    of_suite = results / suite.name
    seconds, settings = of_suite / SECONDS, of_suite / "coveragerc"
    if seconds.exists():
        return
    of_suite.mkdir(exist_ok=True)
    settings.write_text(f"{SETTINGS}data_file = {of_suite / COVERAGE}\n")
    command = suite.all(
        *["--tb=line", "-p", "no:randomly", "-p", "tests.mutants.plugin"],
        *[f"--numprocesses={processes}", "--dist=loadgroup"],
        *["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="],
    )
    environment = environment_in(tree) | {"MUTANTS_SECONDS": str(seconds)}
    code = subprocess.run(command, cwd=tree, env=environment, check=False).returncode
    if code not in (0, 1) or not seconds.exists():
        seconds.unlink(missing_ok=True)
        raise TestsFailed(f"pytest ended with exit code {code}")


def compile_all(tree: Path) -> None:
    """Have Python and pytest keep what they compile: each run would do that again."""
    for suite in SUITES:
        subprocess.run(
            suite.all("--collect-only", "-qq"),
            cwd=tree,
            env=environment_in(tree),
            stdout=subprocess.DEVNULL,
            check=False,
        )


def read(folders: Iterable[Path]) -> Reach:
    """Return what was measured, a suite in each folder."""
    seconds: dict[str, float] = {}
    failed: list[str] = []
    lines: defaultdict[str, defaultdict[int, frozenset[str]]]
    lines = defaultdict(lambda: defaultdict(frozenset))
    for folder in folders:
        measured = json.loads((folder / SECONDS).read_text())
        failed += measured["failed"]
        seconds |= {test: measured["seconds"][test] for test in measured["seconds"].keys() - failed}
        data = CoverageData(str(folder / COVERAGE))
        data.read()
        for path in data.measured_files():
            for number, contexts in data.contexts_by_lineno(path).items():
                tests = {name_of(context.rpartition("|")[0]) for context in contexts}
                lines[path][number] |= tests & seconds.keys()
    return Reach({path: dict(found) for path, found in lines.items()}, seconds, tuple(failed))


def environment_in(tree: Path) -> dict[str, str]:
    """Return the environment of processes whose code is that of ``tree``, with its own scratch."""
    scratch = tree.parent / f"{tree.name}-scratch"
    scratch.mkdir(exist_ok=True)
    own = {"PYTHONPATH": str(tree), "TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": ""}
    return os.environ | own


def _file(test: str) -> str:
    return test.partition("::")[0]
