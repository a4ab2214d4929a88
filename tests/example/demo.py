"""`manage.py demo` in a process of its own, and people who use its admin."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from django.db import connection

ROOT = Path(__file__).parents[2]
SECONDS = 60


class Demo:
    """`manage.py demo` in a process of its own."""

    def __init__(self, directory: Path, database_url: str) -> None:
        self.database_url = database_url
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.site = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.log = directory / "log"
        self.environment = os.environ | {
            "PORT": self.site.rsplit(":", 1)[1],
            "DATABASE_URL": database_url,
            "DJANGO_DEBUG": "1",
            "PYTHONUNBUFFERED": "1",
        }
        # Whoever runs these tests may have chosen another password, settings or reloader state.
        for name in ("DEMO_PASSWORD", "DJANGO_SETTINGS_MODULE", "RUN_MAIN"):
            self.environment.pop(name, None)

    @property
    def endpoint(self) -> str:
        return f"{self.site}/mcp"

    @property
    def output(self) -> str:
        return self.log.read_text()

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "manage.py", "demo", *options],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # the reloader's child is ended with it
            )

    @contextmanager
    def serving(self, *options: str) -> Iterator[None]:
        process = self.start(*options)
        try:
            self.wait(process)
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=SECONDS)

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + SECONDS
        while True:
            assert process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            try:
                httpx.get(self.site, timeout=1)
            except httpx.TransportError:
                time.sleep(0.1)
            else:
                return


@contextmanager
def running_demo(directory: Path) -> Iterator[Demo]:
    """Serve the demo, on a database of its own, as long as the block lasts."""
    with own_database(directory) as url:
        demo = Demo(directory, url)
        # A file that is edited while the tests run would restart the server.
        with demo.serving("--noreload"):
            yield demo


@contextmanager
def own_database(directory: Path) -> Iterator[str]:
    """Give the address of an empty database, of the kind that the tests run on."""
    if connection.vendor == "sqlite":
        yield f"sqlite:///{directory / 'desk.sqlite3'}"
        return
    address, mark, query = os.environ["DATABASE_URL"].partition("?")
    name = f"demo_{uuid4().hex[:12]}"
    with connection._nodb_cursor() as cursor:  # as Django creates a database for tests
        cursor.execute(f"CREATE DATABASE {name}")
    try:
        yield f"{address.rpartition('/')[0]}/{name}{mark}{query}"
    finally:
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")


class Admin:
    """Somebody who is logged in to the demo's admin, with a browser."""

    def __init__(self, demo: Demo, browser: httpx.Client) -> None:
        self._site = f"{demo.site}/admin/"
        self._browser = browser

    def edit_ticket(self, key: int, **fields: Any) -> None:
        """Change a ticket in its form, and save it."""
        address = f"support/ticket/{key}/change/"
        filled = {**_fields(self._get(address)), **fields}
        # The rows of what belongs to the ticket are left out of the form, and stay as they are.
        counts = {f"{kind}-{count}_FORMS": "0" for kind in KINDS for count in ("TOTAL", "INITIAL")}
        self._post(address, {**filled, **counts})

    def act(self, action: str, *keys: int) -> None:
        """Choose tickets in the list, and an action."""
        self._get("support/ticket/")
        self._post("support/ticket/", {"action": action, "_selected_action": [*map(str, keys)]})

    def history(self, key: int) -> str:
        """Return the page with what has happened to a ticket."""
        return self._get(f"support/ticket/{key}/history/")

    def log_in(self, name: str, password: str) -> None:
        """Open the door."""
        self._get("login/")
        self._post("login/?next=/admin/", {"username": name, "password": password})

    def _get(self, address: str) -> str:
        response = self._browser.get(self._site + address)
        assert response.status_code == 200
        return response.text

    def _post(self, address: str, fields: dict[str, Any]) -> None:
        token = {"csrfmiddlewaretoken": self._browser.cookies["csrftoken"]}
        response = self._browser.post(self._site + address, data={**fields, **token})
        # What is not accepted is shown again, with its errors.
        assert response.status_code == 302, response.text


KINDS = ("comments", "refunds")


@contextmanager
def admin_of(demo: Demo) -> Iterator[Admin]:
    """Log in as the superuser."""
    with httpx.Client(timeout=SECONDS) as browser:
        admin = Admin(demo, browser)
        admin.log_in("admin", "demo")
        yield admin


def _fields(page: str) -> dict[str, str]:
    """Return what the ticket's form holds when it is opened."""
    form = _Form()
    form.feed(page)
    return form.fields


class _Form(HTMLParser):
    """Reads the fields of a page by their names, as a browser would send them."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._name = ""
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = given.get("name") or ""
        if tag in ("select", "textarea"):
            self._within, self._name = tag, name
            self.fields[name] = ""
        elif tag == "option" and "selected" in given:
            self.fields[self._name] = given.get("value") or ""
        elif tag == "input" and given.get("type") in ("text", "number", "hidden"):
            self.fields[name] = given.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == self._within:
            self._within = self._name = ""

    def handle_data(self, data: str) -> None:
        if self._within == "textarea":
            self.fields[self._name] += data
