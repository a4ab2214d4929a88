"""How many Python functions are called for one quiet ``tools/call``: what a request costs, told
without a clock. Somebody who adds a function to the way of every request is told so here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import django
import pytest

CEILINGS = {
    "view, modern": 107,
    "view, modern, async tool": 158,
    "view, session remembered": 125,
    "view, session by its row": 182,
    "view, session by its row, async tool": 236,
    "mount, modern": 245,
    "mount, modern, async tool": 151,
    "mount, session by its row": 420,
    "mount, session by its row, async tool": 325,
}
"""Most calls of Python functions, in all threads: at the view beyond those of a bare Django view,
at the mount in all. What was counted, and 2 % more."""
SLACK = 0.1
"""Part of a ceiling by which a count may be below it. Lower what you have made cheaper."""

PYTHON, DJANGO = (3, 13), (6, 1)
COUNT = "import django; django.setup(); from tests.http.function_calls import main; main()"
SECONDS = 120

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != PYTHON or django.VERSION[:2] != DJANGO,
    reason="counted on Python {}.{} and Django {}.{}: others call more or fewer functions of their "
    "own".format(*PYTHON, *DJANGO),
)


@pytest.fixture(scope="module")
def counted() -> dict[str, int]:
    """What a process of its own counts, on SQLite: other drivers are written in Python."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "DATABASE_URL": ""}
    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("case", CEILINGS)
def test_a_quiet_call_calls_no_more_functions_than_the_table_says(counted, case):
    assert counted[case] <= CEILINGS[case], "more functions are called on the way of every request"


@pytest.mark.parametrize("case", CEILINGS)
def test_the_table_says_what_is_called(counted, case):
    """A ceiling far above says nothing of the next function that is added."""
    assert counted[case] >= CEILINGS[case] * (1 - SLACK), "lower the ceiling"


def test_all_that_is_counted_has_a_ceiling(counted):
    assert {*counted} == {*CEILINGS}
