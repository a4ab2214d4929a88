"""Where functions run: by what they take, at each way in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.asgi import get_asgi_application
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client

from django_mcp import Context, MCPServer, endpoint, native_threads
from django_mcp.asgi import mount
from django_mcp.auth import Principal, nonblocking
from django_mcp.running import user_code
from django_mcp.running.process_loop import ProcessLoop, process_loop
from django_mcp.server.errors import RegistrationError
from tests.support.asgi import call as call_asgi
from tests.support.forking import in_child, needs_fork
from tests.support.messages import HEADERS, encoded, modern
from tests.support.sites import run, urlconf

pytestmark = pytest.mark.django_db(transaction=True)
server = MCPServer("places", version="1")
guarded = MCPServer("guarded", version="1")
thread_of_request: ContextVar[int] = ContextVar("thread_of_request", default=0)
noted: list[str] = []
loops: list[asyncio.AbstractEventLoop] = []


def place() -> str:
    """Return what the present thread is."""
    if threading.get_ident() == thread_of_request.get():
        return "request's thread"
    name = threading.current_thread().name
    kinds = {"mcp-call": "worker thread", "mcp-admission": "worker thread", "mcp-loop": "loop"}
    return next((kind for start, kind in kinds.items() if name.startswith(start)), name)


class NotesThread:
    """A middleware that notes on which thread a request is handled, as those of sites do more."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        token = thread_of_request.set(threading.get_ident())
        try:
            return self.get_response(request)
        finally:
            thread_of_request.reset(token)


def auth(request: HttpRequest) -> Principal:
    noted.append(f"auth: {place()}")
    return Principal(AnonymousUser())


async def aauth(request: HttpRequest) -> Principal:
    await asyncio.sleep(0)
    noted.append("auth: asynchronous")
    return Principal(AnonymousUser())


def may(user: Any) -> bool:
    noted.append(f"permission: {place()}")
    return True


@server.tool
def takes_request(request: HttpRequest, number: int = 1) -> str:
    """Say where this runs."""
    assert request.headers["X-Given"] == "yes"
    return place()


@server.tool
def takes_neither() -> str:
    """Say where this runs."""
    return place()


@server.tool
def takes_context(ctx: Context) -> str:
    """Say where this runs."""
    return place()


class Held:
    """Holds a function until the test lets it go."""

    entered = threading.Event()
    opened = threading.Event()


held = Held()


@server.tool
def holds_request(request: HttpRequest) -> str:
    """Wait until the test says so."""
    held.entered.set()
    assert held.opened.wait(20)
    return place()


@server.tool
async def runs_on_loop(request: HttpRequest) -> str:
    """Say where this runs."""
    assert request.headers["X-Given"] == "yes"
    loops.append(asyncio.get_running_loop())
    await get_user_model().objects.acount()
    if threading.current_thread() is threading.main_thread():
        return "loop"
    return place()


@guarded.tool(permission=may)
def needs_permission() -> str:
    """Say where this runs."""
    return place()


def at_wsgi(tool: str, path: str = "/mcp", *, multithread: bool = True) -> Any:
    message, mirrored = modern("tools/call", name=tool, arguments={})
    headers = {**HEADERS, **mirrored, "X-Given": "yes"}
    response = Client().generic(
        "POST",
        path,
        encoded(message),
        content_type="application/json",
        headers={name: text for name, text in headers.items() if name != "Content-Type"},
        # Django's client says that there is one thread.
        **{"wsgi.multithread": multithread},
    )
    return b"".join(response) if response.streaming else response.content


def at_asgi(tool: str, path: str = "/mcp") -> Any:
    return run(call_asgi(get_asgi_application(), tool, path, headers={"X-Given": "yes"})).body


def at_mount(tool: str, path: str = "/mcp") -> Any:
    served = mount(get_asgi_application())
    return run(call_asgi(served, tool, path, headers={"X-Given": "yes"})).body


WAYS = {"wsgi": at_wsgi, "asgi": at_asgi, "mount": at_mount}
REQUEST, WORKER, LOOP = "request's thread", "worker thread", "loop"
TABLE = {
    "takes_request": {"wsgi": REQUEST, "asgi": REQUEST, "mount": WORKER},
    "takes_neither": {"wsgi": REQUEST, "asgi": WORKER, "mount": WORKER},
    "takes_context": {"wsgi": WORKER, "asgi": WORKER, "mount": WORKER},
    "runs_on_loop": {"wsgi": LOOP, "asgi": LOOP, "mount": LOOP},
}


@pytest.fixture(autouse=True)
def site(settings):
    noted.clear()
    loops.clear()
    settings.MIDDLEWARE = [f"{__name__}.NotesThread"]
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=server), endpoint("guarded", server=guarded)
    )
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": auth, "WSGI_STREAMS": 4}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tool", TABLE)
def test_where_a_function_runs_follows_from_what_it_takes(tool, way):
    assert f'"text":"{TABLE[tool][way]}"'.encode() in WAYS[way](tool)


@pytest.mark.parametrize("way", WAYS)
def test_what_precedes_a_call_runs_where_its_request_has_come_in(way):
    WAYS[way]("needs_permission", "/guarded")
    where = WORKER if way == "mount" else REQUEST
    assert noted == [f"auth: {where}", f"permission: {where}"]


@pytest.mark.parametrize("way", WAYS)
def test_an_asynchronous_auth_may_be_said_to_wait_for_nothing(settings, way):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": nonblocking(aauth)}
    assert f'"text":"{TABLE["takes_neither"][way]}"'.encode() in WAYS[way]("takes_neither")
    assert noted == ["auth: asynchronous"]


@pytest.mark.parametrize("tool", ["takes_context", "runs_on_loop", "takes_neither"])
def test_in_an_open_transaction_everything_runs_there(tool):
    """Or what is not committed, such as the data of a test, would not be seen."""
    with transaction.atomic():
        answer = at_wsgi(tool)
    # asgiref makes a thread for the loop of an asynchronous function.
    assert b"request's thread" in answer or tool == "runs_on_loop"
    assert all(each is not process_loop()._loop for each in loops)


def test_without_streams_nothing_needs_a_worker_thread_under_wsgi(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WSGI_STREAMS": 0}
    assert b"request's thread" in at_wsgi("takes_context")


def test_a_server_with_one_thread_collects_and_says_so(caplog):
    user_code._note_that_nothing_streams.cache_clear()
    for _ in range(2):
        assert b"request's thread" in at_wsgi("takes_context", multithread=False)
    assert [each.message for each in caplog.records if "WSGI_STREAMS" in each.message] == [
        "WSGI_STREAMS does nothing here: the server has one thread, or gevent or eventlet took "
        "the place of threads. Answers come in one piece"
    ]


@pytest.mark.parametrize("multithread", [True, False])
def test_where_threads_are_replaced_an_asynchronous_function_is_refused(
    monkeypatch, caplog, multithread
):
    """Its loop would count as that of all that the thread of the system runs meanwhile."""
    monkeypatch.setattr(native_threads, "has_threads", lambda: False)
    monkeypatch.setattr(user_code, "has_threads", lambda: False)
    # Django's client raises what is reported; other clients read "The tool failed."
    with pytest.raises(RuntimeError, match="do not run under gevent or eventlet"):
        at_wsgi("runs_on_loop", multithread=multithread)
    assert "tools/call 'runs_on_loop' failed (reference " in caplog.text
    assert not loops
    assert b"request's thread" in at_wsgi("takes_neither", multithread=multithread)


def test_functions_that_take_the_request_under_asgi_have_the_turns_of_worker_threads(settings):
    """Django gives each request a thread, and each may open a connection: so few run at once."""
    limits = {"WORKER_THREADS": 1, "THREAD_QUEUE": 0}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **limits}
    held.entered.clear()
    held.opened.clear()

    async def main() -> tuple[int, int, int]:
        served = get_asgi_application()
        first = asyncio.create_task(call_asgi(served, "holds_request"))
        assert await asyncio.to_thread(held.entered.wait, 20)
        second = await call_asgi(served, "holds_request")
        held.opened.set()
        answer = await first
        third = await call_asgi(served, "holds_request")
        return answer.status, second.status, third.status

    assert run(main()) == (200, 503, 200)


def test_asynchronous_functions_share_the_loop_of_the_process_under_wsgi():
    for _ in range(2):
        at_wsgi("runs_on_loop")
    assert loops == [process_loop()._loop] * 2


@needs_fork
def test_a_fork_has_a_loop_of_its_own():
    async def answer() -> int:
        return 42

    assert process_loop().run(answer) == 42
    assert in_child(lambda: process_loop().run(answer) == 42) == 0


def test_the_thread_that_waits_gets_what_is_raised():
    async def fail(error: BaseException) -> None:
        raise error

    loop = ProcessLoop()
    for error in (LookupError("gone"), SystemExit(3), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            loop.run(fail, error)
    loop.stop()


def test_who_takes_the_request_takes_no_context():
    with pytest.raises(RegistrationError, match=r"a Context and an HttpRequest\. Take the Context"):

        @MCPServer("refuses").tool
        def both(ctx: Context, request: HttpRequest) -> None: ...

    assert server.find_tool("takes_request").signature.names == ("number",)  # type: ignore[union-attr]
