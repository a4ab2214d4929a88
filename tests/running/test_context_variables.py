"""Context variables: the request's are there wherever functions run, and a call's stay its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.local import Local
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

from django_mcp import Context, MCPServer, endpoint
from django_mcp.asgi import mount
from tests.support.caller import Caller
from tests.support.entrances import ASGIEntrance, Entrance, WSGIEntrance
from tests.support.messages import tool_call
from tests.support.sites import run, urlconf

pytestmark = pytest.mark.django_db(transaction=True)
server = MCPServer("variables", version="1")
local = Local()


def begin(who: str) -> None:
    """Do what the documentation of structlog has a middleware do; and the same with a local."""
    clear_contextvars()
    bind_contextvars(who=who)
    local.who = who


class Binds:
    """A middleware that does so, at the view."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        begin(request.headers["X-Who"])
        return self.get_response(request)


def binding(application: Any) -> Any:
    """Wrap an application, such as the mount, in one that does so."""

    async def bound(scope: Any, receive: Any, send: Any) -> None:
        begin(dict(scope["headers"])[b"x-who"].decode())
        await application(scope, receive, send)

    return bound


def look_and_leave() -> dict[str, str]:
    """Return what is set around a call, and leave something that nobody else is to find."""
    found = {**get_contextvars(), "local": local.who}
    bind_contextvars(left_by="a call")
    local.who = "a call"
    return found


@server.tool
def takes_request(request: HttpRequest) -> dict[str, str]:
    """Say what is set."""
    return look_and_leave()


@server.tool
def takes_neither() -> dict[str, str]:
    """Say what is set."""
    return look_and_leave()


@server.tool
def takes_context(ctx: Context) -> dict[str, str]:
    """Say what is set."""
    return look_and_leave()


@server.tool
async def runs_on_loop() -> dict[str, str]:
    """Say what is set."""
    return look_and_leave()


@server.tool
async def waits_on_loop(ctx: Context) -> dict[str, str]:
    """Say what is set, once others had their turn."""
    await asyncio.sleep(0)
    return look_and_leave()


def may(user: Any) -> bool:
    bind_contextvars(may="yes")
    return True


@server.tool(permission=may)
def needs_permission() -> dict[str, str]:
    """Say what is set."""
    return look_and_leave()


@server.tool(permission=may)
async def needs_permission_on_loop() -> dict[str, str]:
    """Say what is set."""
    await asyncio.sleep(0)
    return look_and_leave()


GUARDED = ["needs_permission", "needs_permission_on_loop"]
TOOLS = ["takes_request", "takes_neither", "takes_context", "runs_on_loop", "waits_on_loop"]


def expected(tool: str, who: str) -> dict[str, str]:
    """Return what a call is to find: what its own request and its own permission have set."""
    return {"who": who, "local": who, **({"may": "yes"} if tool in GUARDED else {})}


def threaded() -> Entrance:
    entrance = WSGIEntrance()
    # Django's client says that there is one thread.
    entrance.client.defaults["wsgi.multithread"] = True
    return entrance


WAYS: dict[str, Callable[[], Entrance]] = {
    "wsgi": threaded,
    "asgi": lambda: ASGIEntrance("asgi", get_asgi_application, run),
    "mount": lambda: ASGIEntrance("mount", lambda: binding(mount(get_asgi_application())), run),
}


@pytest.fixture(autouse=True)
def site(settings):
    settings.MIDDLEWARE = [f"{__name__}.Binds"]
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WSGI_STREAMS": 4, "WORKER_THREADS": 2}
    yield
    clear_contextvars()


@pytest.fixture(params=WAYS)
def caller(request):
    return Caller(WAYS[request.param]()).with_headers(X_Who="anna")


def found_in(message: Any) -> Any:
    return json.loads(message["result"]["content"][0]["text"])


@pytest.mark.parametrize("tool", [*TOOLS, *GUARDED])
def test_what_is_set_around_a_request_is_there_and_nothing_of_the_call_before(caller, tool):
    for who in ("anna", "bert", "anna"):
        answer = caller.with_headers(X_Who=who).tool(tool)
        assert found_in(answer.message) == expected(tool, who)


@pytest.mark.parametrize("first", [*TOOLS, *GUARDED])
def test_each_call_of_a_batch_begins_with_what_the_request_has_set(caller, first):
    member = caller.opened("2025-03-26")
    tools = [tool for each in [*TOOLS, *GUARDED] for tool in (first, each)]
    answer = member.post([tool_call(tool, number) for number, tool in enumerate(tools)])
    messages = answer.messages()
    messages = messages[0] if isinstance(messages[0], list) else messages
    found = {each["id"]: found_in(each) for each in messages}
    assert found == {number: expected(tool, "anna") for number, tool in enumerate(tools)}
