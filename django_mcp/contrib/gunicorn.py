"""Settings for gunicorn with threads: ``gunicorn -c python:django_mcp.contrib.gunicorn ...``.

At SIGTERM a worker with threads keeps its listening sockets open, though nobody accepts what
connects to them: it hangs, and is reset in the end. With these settings they are closed, after what
had connected by then is accepted; and calls that outlast ``SHUTDOWN_SECONDS`` are told to end.
Other kinds of workers are left as they are.
"""

from __future__ import annotations

import selectors
from typing import Any


def post_worker_init(worker: Any) -> None:
    """Prepare a worker, before it serves, for the end of its service (a hook of gunicorn's)."""
    enable = getattr(worker, "set_accept_enabled", None)
    if enable is None:
        if hasattr(worker, "tpool"):
            worker.log.warning(
                "django_mcp.contrib.gunicorn needs gunicorn 24 or newer for workers with threads: "
                "without it this worker loses requests when it is asked to stop."
            )
        return

    def set_accept_enabled(enabled: bool) -> None:
        enable(enabled)
        if not (enabled or worker.alive):
            _stop_listening(worker)
            _end_calls_in_time()

    worker.set_accept_enabled = set_accept_enabled


def _stop_listening(worker: Any) -> None:
    for listener in worker.sockets:
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            for _ in range(worker.cfg.backlog):  # as many as may wait; others may serve the rest
                if not selector.select(0):
                    break
                worker.accept(listener)
        listener.close()


def _end_calls_in_time() -> None:
    # Not before Django is set up: gunicorn reads its settings earlier.
    from ..running.shutdown import end_calls_in_time  # noqa: PLC0415

    end_calls_in_time()
