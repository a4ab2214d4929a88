"""What the browser visits: the example project in a process of its own, and pages of elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.support.servers import CHECKOUT, HOST, RunningServer, free_port, wait_until_ready

from .app_policy import policy_of

PAGES = Path(__file__).resolve().parent / "pages"
OFFICIAL_APP = "static/official/app.js"
"""The script of an app by the official SDK, where one has been built."""
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
def running_site(directory: Path, *, allowed_origin: str, name: str = "") -> Iterator[Site]:
    """Serve the example project, seeded, on a new database in the directory.

    Static files of the tests are below ``static`` in it; they may be put there later. The site
    takes itself for that of a name, if there is one, and else for what it is.
    """
    (directory / OFFICIAL_APP).parent.mkdir(parents=True)
    (directory / OFFICIAL_APP).touch()
    port = free_port()
    environment = _environment(directory, allowed_origin)
    environment["DJANGO_SITE"] = name or f"http://{HOST}:{port}"
    _run("manage.py", "prepare_site", environment=environment)
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
def serving_pages(directory: Path = PAGES) -> Iterator[str]:
    """Serve pages from another origin, which the block is given."""
    handler = partial(QuietHandler, directory=directory)
    with ThreadingHTTPServer((HOST, 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}"
        finally:
            server.shutdown()


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and logs nothing. The frame for apps has the policy that its URL asks for."""

    def end_headers(self) -> None:
        """Add the policy, which what the frame shows inherits."""
        parts = urlsplit(self.path)
        if parts.path == "/sandbox.html":
            wanted = parse_qs(parts.query).get("csp", ["{}"])[0]
            self.send_header("Content-Security-Policy", policy_of(json.loads(wanted)))
        super().end_headers()

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
        "STATIC_FILES": str(directory / "static"),
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
