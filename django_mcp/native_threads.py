"""Whether threads are those of the system, and how code waits in one of them for an event loop."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from asgiref.sync import async_to_sync


@cache
def has_threads() -> bool:
    """Return whether threads are those of the system, so that one may wait for another.

    gevent and eventlet, which replace them, run all in one: there a loop that waits for events
    would keep everything else from running.
    """
    gevent = sys.modules.get("gevent.monkey")
    eventlet = sys.modules.get("eventlet.patcher")
    return not (
        (gevent is not None and gevent.is_module_patched("threading"))
        or (eventlet is not None and eventlet.is_monkey_patched("thread"))
    )


def waiting_for(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an asynchronous function as one that waits in this thread, on a loop of its own.

    Raises :class:`RuntimeError` where threads are not those of the system. While the loop waits
    there, it counts as the loop of whatever else the process serves: Django would refuse the
    database to all of that.
    """
    if has_threads():
        return async_to_sync(function)
    raise RuntimeError(
        "Asynchronous functions do not run under gevent or eventlet: while one waits, the database "
        "refuses whatever else the process serves. Write `def` instead, which these servers have "
        "wait without holding up others; or serve the site by threads or by ASGI."
    )
