"""Settings for gunicorn with threads: ``gunicorn -c python:django_mcp.contrib.gunicorn ...``.

At SIGTERM a worker with threads keeps its listening sockets open, though nobody accepts what
connects to them: it hangs, and is reset in the end. With these settings they are closed, after what
had connected by then is accepted; streams that wait for news end soon, and calls that outlast
``SHUTDOWN_SECONDS``; and calls whose clients come back for the answer are waited for. Other kinds
of workers are left as they are.
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
            _begin_to_end()

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


def worker_exit(server: Any, worker: Any) -> None:
    """Wait for what is left in a worker with threads, before its process ends (a hook)."""
    # One that could not begin has nothing to wait for, and its site may not be set up.
    if hasattr(worker, "tpool") and worker.booted:
        from ..running.shutdown import drain_on_thread  # noqa: PLC0415

        drain_on_thread()


def _begin_to_end() -> None:
    # Not before Django is set up: gunicorn reads its settings earlier.
    from ..running.shutdown import begin_on_thread  # noqa: PLC0415

    begin_on_thread()
