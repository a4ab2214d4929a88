"""What the browser visits: the example project in a process of its own, and pages of elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.servers import CHECKOUT, HOST, RunningServer, free_port, wait_until_ready

PAGES = Path(__file__).resolve().parent / "pages"
PREPARE_SECONDS = 60
STOP_SECONDS = 5
# What the example's settings would read; the site here is always the same.
READ_BY_THE_EXAMPLE = ("DJANGO_", "DATABASE_", "REDIS_", "DEMO_")


class Site(RunningServer):
    """The example project, as it is served."""

    def at(self, path: str) -> str:
        """Return the address of a path."""
        return f"{self.origin}{path}"


@contextmanager
def running_site(directory: Path, *, allowed_origin: str) -> Iterator[Site]:
    """Serve the example project, seeded, on a new database in the directory."""
    environment = _environment(directory, allowed_origin)
    _run("manage.py", "prepare_site", environment=environment)
    port = free_port()
    log = directory / "server.log"
    serve = ["manage.py", "runserver", "--noreload", "--nostatic", f"{HOST}:{port}"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *serve],
            cwd=CHECKOUT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        site = Site(process, port, log)
        wait_until_ready(site)
        yield site
    finally:
        _stop(process)


@contextmanager
def serving_pages() -> Iterator[str]:
    """Serve the pages of this directory from another origin, which the block is given."""
    handler = partial(QuietHandler, directory=PAGES)
    with ThreadingHTTPServer((HOST, 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}"
        finally:
            server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Do not."""


def _environment(directory: Path, allowed_origin: str) -> dict[str, str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(READ_BY_THE_EXAMPLE)
    }
    return inherited | {
        "DJANGO_SETTINGS_MODULE": "tests.browser.site.settings",
        "DATABASE_URL": f"sqlite:///{directory / 'db.sqlite3'}",
        "ALLOWED_ORIGIN": allowed_origin,
    }


def _run(*arguments: str, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PREPARE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)
