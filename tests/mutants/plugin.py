"""A plugin for pytest: how long each test takes, and which tests are run in which order.

``MUTANTS_SECONDS`` names the file of JSON in which a run leaves what it measured, and
``MUTANTS_CHOSEN`` one with the names of the tests that a run is to take, the first first.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

_seconds: defaultdict[str, float] = defaultdict(float)
_failed: set[str] = set()


def name_of(node_id: str) -> str:
    """Return the name of a test without that of its group, which pytest-xdist appends."""
    before, bracket, after = node_id.rpartition("]")
    return before + bracket + after.partition("@")[0]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what a test and its fixtures take."""
    name = name_of(report.nodeid)
    _seconds[name] += report.duration
    if report.failed:
        _failed.add(name)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave what was measured: the seconds of each test that passes."""
    path = os.environ.get("MUTANTS_SECONDS")
    if path and not hasattr(session.config, "workerinput"):
        measured = {"seconds": _seconds, "failed": sorted(_failed)}
        Path(path).write_text(json.dumps(measured))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take the chosen tests alone."""
    path = os.environ.get("MUTANTS_CHOSEN")
    if path:
        found = {item.nodeid: item for item in items}
        items[:] = [found[name] for name in json.loads(Path(path).read_text()) if name in found]
