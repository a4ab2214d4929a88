"""Plants a bug in a copy of the repository, and runs there the tests that reach it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .planting import Mutant
from .reach import Reach, Suite, by_suite, environment_in

LONGEST_TEST_SECONDS = 60
"""How long a test may take that takes no time at all, before it counts as one that never ends."""
SLOWER = 5
"""How many times as long as was measured tests may take."""
FEW_TESTS = 40
"""How many run at first."""
ENDLESS = "did not end"


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    noticed_by: str
    """The first test that failed, or what else told of the bug; empty if nothing did."""
    tests: int
    """How many tests reach it."""
    seconds: float


def try_mutant(mutant: Mutant, reach: Reach, tree: Path) -> Outcome:
    """Plant a bug in ``tree``, run the tests that reach it, and restore the tree."""
    began = time.monotonic()
    tests = reach.of_mutant(mutant)
    noticed_by = ""
    if tests:
        file = tree / mutant.path
        source = file.read_text()
        file.write_text(mutant.plant(source))
        try:
            runs = (_first_failure(suite, some, reach, tree) for suite, some in in_turns(tests))
            noticed_by = next(filter(None, runs), "")
        finally:
            file.write_text(source)
    return Outcome(mutant, noticed_by, len(tests), time.monotonic() - began)


def in_turns(tests: Sequence[str]) -> Iterator[tuple[Suite, Sequence[str]]]:
    """Split tests into runs: those of one suite in each, and first a few of every suite.

    The modules of all tests would take longer to import than the first tests to run.
    """
    suites = by_suite(tests)
    yield from ((suite, of_suite[:FEW_TESTS]) for suite, of_suite in suites)
    rest = ((suite, of_suite[FEW_TESTS:]) for suite, of_suite in suites)
    yield from ((suite, some) for suite, some in rest if some)


def _first_failure(suite: Suite, tests: Sequence[str], reach: Reach, tree: Path) -> str:
    names = tree.parent / f"{tree.name}-tests.json"
    names.write_text(json.dumps(tests))
    seconds = [reach.seconds[test] for test in tests]
    # pytest ends itself when a single test takes longer.
    longest = LONGEST_TEST_SECONDS + SLOWER * max(seconds)
    command = suite.pytest(
        *["-x", "--tb=no", "-rfE", "--no-header"],
        *["-p", "no:randomly", "-p", "no:cacheprovider", "-p", "tests.mutants.plugin"],
        *["-o", f"faulthandler_timeout={longest}", "-o", "faulthandler_exit_on_timeout=true"],
        # Together what is of one folder: pytest would lose its fixtures when it came back to it.
        *sorted({test.partition("::")[0] for test in tests}),
    )
    environment = environment_in(tree) | {
        "MUTANTS_CHOSEN": str(names),
        # A file that changes twice in a second would be run as it was first.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    code, said = _run(command, tree, environment, 2 * longest + SLOWER * sum(seconds))
    if code == 0:
        return ""
    if code is None or "Timeout (" in said:
        return f"a test {ENDLESS}"
    failure = re.search(r"^(?:FAILED|ERROR) (.*)$", said, re.MULTILINE)
    return failure[1][:200] if failure else f"pytest ended with exit code {code}: {said[-200:]}"


def _run(
    command: Sequence[str], tree: Path, environment: dict[str, str], timeout: float
) -> tuple[int | None, str]:
    """Return the exit code, which is None after ``timeout`` seconds, and what was written."""
    log = tree.parent / f"{tree.name}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        # Nor do servers stay that a test has started and could not stop.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return code, log.read_text(errors="replace")
