"""``CALL_CONTEXT``: what the site wants around its code on threads that no middleware has seen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.core.asgi import get_asgi_application
from django.http import HttpRequest

from django_mcp import MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import Principal
from django_mcp.protocol.errors import ErrorCode
from django_mcp.running import thread_lease, worker_threads
from tests.support.asgi import call
from tests.support.sites import run, urlconf

pytestmark = pytest.mark.django_db(transaction=True)
server = MCPServer("threads", version="1")
guarded = MCPServer("guarded", version="1")
local = threading.local()
variable: ContextVar[str] = ContextVar("variable", default="nobody")
happened: list[str] = []


def who() -> str:
    """Return for whom the present thread runs, as a thread-local of the site's says."""
    return getattr(local, "who", "nobody")


@contextmanager
def for_client(request: HttpRequest) -> Iterator[None]:
    """Say on the thread for whom it runs."""
    assert who() == "nobody"
    local.who = request.headers["X-Client"]
    token = variable.set(local.who)
    happened.append("enter")
    try:
        yield
    finally:
        happened.append("leave")
        variable.reset(token)
        del local.who


def auth(request: HttpRequest) -> Principal:
    happened.append(f"auth for {who()}")
    return Principal(AnonymousUser())


async def aauth(request: HttpRequest) -> Principal:
    happened.append(f"auth for {await sync_to_async(who)()}")
    return Principal(AnonymousUser())


def may(user: Any) -> bool:
    happened.append(f"permission for {who()}")
    return True


@guarded.tool(permission=may)
def whose() -> str:
    """Say for whom this runs."""
    return f"{who()} {variable.get()}"


@server.tool
async def awhose() -> list[str]:
    """Say for whom the ORM runs, twice on the same thread."""
    return [await sync_to_async(who)(), await sync_to_async(who)()]


@server.tool
async def wait_in_between() -> list[str]:
    """Give the thread back in between, as a question does."""
    before = await sync_to_async(who)()
    thread_lease.drop_lease()
    return [before, await sync_to_async(who)()]


@server.tool
def wait_for_a_person() -> list[str]:
    """Let the thread wait as a question does."""
    before = who()
    with worker_threads.idle():
        happened.append(f"waits for {who()}")
    return [before, who()]


@pytest.fixture(autouse=True)
def site(settings):
    happened.clear()
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=server), endpoint("guarded", server=guarded)
    )
    own = {"AUTH": auth, "CALL_CONTEXT": f"{__name__}.for_client", "WORKER_THREADS": 1}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **own}


def said(answer: Any) -> Any:
    """Return what a tool has said."""
    result = answer.json()["result"]
    return result.get("structuredContent", result["content"][0]["text"])


def called(tool: str) -> Any:
    """Call a tool at the mount; return what it says."""
    path = "/guarded" if tool == "whose" else "/mcp"
    return said(run(call(mount(get_asgi_application()), tool, path, headers={"X-Client": "anna"})))


def test_it_is_around_auth_permissions_and_the_function_each_on_its_thread():
    assert called("whose") == "anna anna"
    around = [["enter", f"{each} for anna", "leave"] for each in ("auth", "permission")]
    assert happened == [*around[0], *around[1], "enter", "leave"]


def test_it_is_around_the_orm_of_asynchronous_functions(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": aauth}
    assert called("awhose") == ["anna", "anna"]
    # Each thread leaves it in its own time.
    assert happened[:2] == ["enter", "auth for anna"]
    assert sorted(happened) == ["auth for anna", "enter", "enter", "leave", "leave"]


def test_whoever_gives_the_thread_back_meanwhile_enters_it_anew():
    assert called("wait_in_between") == ["anna", "anna"]
    assert happened[3:] == ["enter", "leave", "enter", "leave"]


def test_a_thread_that_waits_for_a_person_has_left_it():
    """Its connections are closed meanwhile, and with them what was set on them."""
    assert called("wait_for_a_person") == ["anna", "anna"]
    assert happened[3:] == ["enter", "leave", "waits for nobody", "enter", "leave"]


def test_the_next_caller_has_his_own():
    async def main() -> list[Any]:
        served = mount(get_asgi_application())
        callers = ("anna", "bert", "anna")
        return [
            said(await call(served, "whose", "/guarded", headers={"X-Client": each}))
            for each in callers
        ]

    assert run(main()) == ["anna anna", "bert bert", "anna anna"]


def test_a_callable_is_as_good_as_its_path(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "CALL_CONTEXT": for_client}
    assert called("whose") == "anna anna"


def test_one_that_cannot_be_entered_is_an_error_of_the_call(settings, caplog):
    @contextmanager
    def broken(request: HttpRequest) -> Iterator[None]:
        raise LookupError("no such tenant")
        yield

    own = {"AUTH": "django_mcp.auth.public", "CALL_CONTEXT": broken}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **own}
    answer = run(call(mount(get_asgi_application()), "awhose", headers={"X-Client": "anna"}))
    assert answer.json()["id"] is not None
    assert answer.json()["error"]["code"] == ErrorCode.INTERNAL_ERROR
    assert "no such tenant" in caplog.text
