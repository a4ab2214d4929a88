"""What a body can cost at most, on any method, whatever is in it: :mod:`.costly_bodies`."""

from __future__ import annotations

import json
import subprocess
import sys

MEASURE = "import django; django.setup(); from tests.http.costly_bodies import main; main()"

# About ten times what it takes on a machine with nothing else to do.
SECONDS = 3.0
GAP_SECONDS = 0.6
BYTES = 100 * 1024 * 1024


def test_no_body_costs_much():
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, timeout=300, check=True
    )
    figures = [json.loads(line) for line in measured.stdout.splitlines() if line[:1] == "{"]
    assert len(figures) == 60
    too_slow = [each for each in figures if each["seconds"] > SECONDS]
    holding = [each for each in figures if each["gap"] > GAP_SECONDS]
    too_large = [each for each in figures if each["bytes"] > BYTES]
    assert (too_slow, holding, too_large) == ([], [], [])
    # Each has got as far as it was meant to.
    found = {each["body"]: each["status"] for each in figures}
    assert set(found.values()) == {200, 202, 400, None}
    assert {body for body, status in found.items() if status is None} == {
        f"subscriptions: {shape}" for shape in ("texts", "uris", "long uris")
    }
