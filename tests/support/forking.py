"""Something done in a forked process, as pre-forking servers and Celery make them."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest


def needs_fork(test: Callable[..., object]) -> Callable[..., object]:
    """Leave a test out where there are no forks."""
    quiet = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")(quiet(test))


def in_child(work: Callable[[], object]) -> int:
    """Do something in a forked process; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() in (True, None) else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
