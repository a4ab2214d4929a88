"""Counts the calls of Python functions that one quiet ``tools/call`` makes, in each of its cases.

For a process of its own, since others leave things behind that are called as well; it writes one
object of JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from io import BytesIO
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponse
from django.test.utils import override_settings, setup_databases
from django.urls import path

from django_mcp import MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import public
from django_mcp.store.access import rate_counters
from tests.support.asgi import HEADERS, HOST, headers_of, scope_of
from tests.support.messages import INITIALIZED, encoded, modern, opening, request
from tests.support.sites import run, urlconf

server = MCPServer("calls", version="1", auth=public)
Headers = dict[str, str]
JSON = "application/json"
ANSWER = b'"text":"3"'
WARM_UP, ROUNDS = 10, 60


@server.tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@server.tool
async def aadd(a: int, b: int) -> int:
    """Add on a loop."""
    return a + b


def bare(request: HttpRequest) -> HttpResponse:
    """Answer, as a view that does nothing else."""
    return HttpResponse(b"{}", content_type=JSON)


class Counter:
    """Counts the calls of Python functions in all threads, but for those of this file."""

    def __init__(self) -> None:
        self.calls = 0

    def _count(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename != __file__:
            self.calls += 1

    def __enter__(self) -> Counter:
        self.calls = 0
        threading.setprofile_all_threads(self._count)
        return self

    def __exit__(self, *error: object) -> None:
        threading.setprofile_all_threads(None)


def fewest(counts: Sequence[int]) -> int:
    """The calls of a request that nothing came between, such as a tick of the bookkeeping."""
    rate_counters.forget()  # so that none is refused
    return min(counts[WARM_UP:])


def calling(tool: str, session: str) -> tuple[bytes, Headers]:
    """Return the body and headers of a call, in the modern era if there is no session."""
    params = {"name": tool, "arguments": {"a": 1, "b": 2}}
    if not session:
        message, headers = modern("tools/call", **params)
        return encoded(message), headers
    return encoded(request("tools/call", **params)), {"Mcp-Session-Id": session}


INITIALIZE = encoded(request("initialize", 0, **opening("2025-11-25")))
READY = encoded(INITIALIZED)


class View:
    """The site under WSGI, called as a server calls it."""

    def __init__(self) -> None:
        self.application = WSGIHandler()

    def post(self, path: str, body: bytes, headers: Headers) -> tuple[Headers, bytes]:
        environ = {
            "REQUEST_METHOD": "POST",
            "SCRIPT_NAME": "",
            "PATH_INFO": path,
            "QUERY_STRING": "",
            "SERVER_NAME": HOST,
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_HOST": HOST,
            "HTTP_ACCEPT": HEADERS["Accept"],
            "CONTENT_TYPE": JSON,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
            **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()},
        }
        began: list[Any] = []
        response = self.application(environ, lambda *started: began.extend(started))
        content = b"".join(response)
        response.close()
        return {name.lower(): value for name, value in began[1]}, content

    def session(self) -> str:
        opened, _ = self.post("/mcp", INITIALIZE, {})
        key = opened["mcp-session-id"]
        self.post("/mcp", READY, {"Mcp-Session-Id": key})
        return key

    def calls(self, path: str, body: bytes, headers: Headers, expected: bytes) -> int:
        def count() -> int:
            with Counter() as counter:
                _, answer = self.post(path, body, headers)
            assert expected in answer, answer
            return counter.calls

        return fewest([count() for _ in range(WARM_UP + ROUNDS)])


class Mount:
    """The mount, each request in a task of its own, as a server has it."""

    def __init__(self) -> None:
        self.application = mount(get_asgi_application())

    async def post(
        self, body: bytes, headers: Headers, counter: Any = None
    ) -> tuple[Headers, bytes]:
        given = {**HEADERS, "Content-Length": str(len(body)), **headers}
        scope = scope_of("/mcp", headers=given.items())
        waiting: list[dict[str, Any]] = [{"type": "http.request", "body": body}]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not waiting:
                await asyncio.Event().wait()
            return waiting.pop()

        async def send(event: dict[str, Any]) -> None:
            sent.append(event)

        with counter or nullcontext():
            await asyncio.create_task(self.application(scope, receive, send))
        return headers_of(sent[0]), b"".join(event["body"] for event in sent[1:])

    async def session(self) -> str:
        opened, _ = await self.post(INITIALIZE, {})
        key = opened["mcp-session-id"]
        await self.post(READY, {"Mcp-Session-Id": key})
        return key

    async def calls(self, body: bytes, headers: Headers) -> int:
        async def count() -> int:
            counter = Counter()
            _, answer = await self.post(body, headers, counter)
            assert ANSWER in answer, answer
            return counter.calls

        return fewest([await count() for _ in range(WARM_UP + ROUNDS)])


def _count_at_the_view(tool: str, *, in_session: bool) -> int:
    view = View()
    call = calling(tool, view.session() if in_session else "")
    return view.calls("/mcp", *call, ANSWER) - view.calls("/bare", *call, b"{}")


def _count_at_the_mount(tool: str, *, in_session: bool) -> int:
    async def count() -> int:
        application = Mount()
        session = await application.session() if in_session else ""
        return await application.calls(*calling(tool, session))

    return run(count())


def main() -> None:
    """Count all cases."""
    settings.ROOT_URLCONF = urlconf(path("bare", bare), endpoint("mcp", server=server))
    settings.MIDDLEWARE = []
    # Or each request would open a connection.
    settings.DATABASES["default"]["CONN_MAX_AGE"] = None
    setup_databases(0, interactive=False)
    gc.disable()  # it calls finalizers whenever it likes
    found = {}
    for place, count in (("view", _count_at_the_view), ("mount", _count_at_the_mount)):
        for tool, kind in (("add", ""), ("aadd", ", async tool")):
            found[f"{place}, modern{kind}"] = count(tool, in_session=False)
            found[f"{place}, session by its row{kind}"] = count(tool, in_session=True)
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "SESSION_CACHE_SECONDS": 10}):
        found["view, session remembered"] = _count_at_the_view("add", in_session=True)
    print(json.dumps(found))
