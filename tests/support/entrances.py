"""The ways to the endpoint, all with the same face.

``wsgi`` is the view behind Django's test client, ``asgi`` the view behind Django's ASGI handler,
``mount`` the ASGI application of ``django_mcp.asgi``. The first two run in the test's own thread
and transaction; the mount runs synchronous code on threads of its own, which see what is committed.
:class:`ServerEntrance` is a server somewhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol

import httpx
from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import Client
from django.urls import set_script_prefix

from django_mcp.asgi import mount

from .answers import HTTPAnswer
from .asgi import HOST, request, scope_of

Headers = Sequence[tuple[str, str]]
Run = Callable[[Coroutine[Any, Any, HTTPAnswer]], HTTPAnswer]


class Entrance(Protocol):
    """A way to the endpoint."""

    name: str
    root_path: str

    def send(self, method: str, path: str, headers: Headers = (), *body: bytes) -> HTTPAnswer:
        """Make one request. Several pieces of body are sent in chunks, of no declared length."""


class WSGIEntrance:
    """The view, through Django's test client, which checks CSRF as a server would."""

    name = "wsgi"
    root_path = ""

    def __init__(self) -> None:
        self.client = Client(enforce_csrf_checks=True, raise_request_exception=False)

    def send(self, method: str, path: str, headers: Headers = (), *body: bytes) -> HTTPAnswer:
        """See :class:`Entrance`. Django reads no chunks under WSGI: it takes them for no body."""
        environ = _environ(headers) | {"SCRIPT_NAME": self.root_path}
        data = body[0] if len(body) == 1 else b""
        environ.setdefault("CONTENT_TYPE", "")
        environ.setdefault("HTTP_HOST", HOST)
        if len(body) <= 1:
            environ.setdefault("CONTENT_LENGTH", str(len(data)))
        # As WSGIHandler does, and the test client does not.
        set_script_prefix(self.root_path or "/")
        response = self.client.generic(method, path, data, **environ)
        given = {name.lower(): str(value) for name, value in response.headers.items()}
        return HTTPAnswer(response.status_code, given, response.getvalue())


class ASGIEntrance:
    """An ASGI application: Django's own handler, or the mount in front of it."""

    root_path = ""

    def __init__(self, name: str, build: Callable[[], Any], run: Run) -> None:
        self.name = name
        self._build = build
        self._run = run

    @cached_property
    def application(self) -> Any:
        """The application, built at the first request: middleware is what the settings then say."""
        return self._build()

    def send(self, method: str, path: str, headers: Headers = (), *body: bytes) -> HTTPAnswer:
        """See :class:`Entrance`."""
        names = {name.lower() for name, _ in headers}
        sent = list(headers)
        if "host" not in names:
            sent.append(("Host", HOST))
        if len(body) == 1 and "content-length" not in names:
            sent.append(("Content-Length", str(len(body[0]))))
        path, _, query = path.partition("?")
        scope = scope_of(
            self.root_path + path,
            method=method,
            headers=sent,
            query_string=query.encode(),
            root_path=self.root_path,
        )
        return self._run(request(self.application, scope, *body))


class ServerEntrance:
    """A server; a connection for each request."""

    root_path = ""

    def __init__(self, site: str, seconds: float = 20) -> None:
        """Send to the site at ``site``, for ``seconds`` at most."""
        self.name = site
        self._seconds = seconds

    def send(self, method: str, path: str, headers: Headers = (), *body: bytes) -> HTTPAnswer:
        """See :class:`Entrance`."""
        content = body[0] if len(body) == 1 else body
        with httpx.Client(timeout=self._seconds, trust_env=False) as http:
            response = http.request(
                method, self.name + path, headers=list(headers), content=content
            )
        return HTTPAnswer(response.status_code, dict(response.headers), response.content)


def open_entrance(name: str, run: Run | None = None) -> Entrance:
    """Return the entrance ``name``; ``run`` drives the loop of the mount."""
    if name == "wsgi":
        return WSGIEntrance()
    if name == "asgi":
        return ASGIEntrance(name, ASGIHandler, _in_this_thread)
    return ASGIEntrance(name, lambda: mount(ASGIHandler()), run or asyncio.run)


def _in_this_thread(coroutine: Coroutine[Any, Any, HTTPAnswer]) -> HTTPAnswer:
    # Under async_to_sync, what Django moves to "the" synchronous thread comes back to this one, so
    # the view works inside the test's transaction.
    async def wait() -> HTTPAnswer:
        return await coroutine

    with keeping_connections():
        return async_to_sync(wait)()


@contextmanager
def keeping_connections() -> Iterator[None]:
    """Keep a handler from closing the connection that has the test's transaction open."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in signals:
            signal.connect(close_old_connections)


def _environ(headers: Headers) -> dict[str, Any]:
    environ: dict[str, Any] = {}
    for name, value in headers:
        key = name.upper().replace("-", "_")
        key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
        environ[key] = f"{environ[key]},{value}" if key in environ else value
    return environ
