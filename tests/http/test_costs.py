"""What a quiet call costs, in what can be counted on any machine. Somebody who adds a query, a hop
to a thread or a second look at a message is told so here.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.core.asgi import get_asgi_application
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.test.utils import CaptureQueriesContext

from django_mcp import Context, MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import public
from django_mcp.models import PendingRequest
from django_mcp.protocol import messages
from django_mcp.running import running_call
from django_mcp.running.threads import DaemonThread
from django_mcp.store.delivery import stream_writer
from django_mcp.store.in_flight.running_requests import RunningRequests
from django_mcp.store.ledger import ledger
from tests.support.asgi import post
from tests.support.caller import Caller
from tests.support.entrances import open_entrance
from tests.support.lasting import last
from tests.support.messages import INITIALIZED, META_LOG_LEVEL, modern, opening, request, tool_call
from tests.support.sites import run, urlconf
from tests.support.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)
server = MCPServer("costs", version="1", auth=public)

ARGUMENTS = {"a": 1, "b": 2}
EAGER = sys.version_info >= (3, 12)
"""Whether a task can run before the loop has its turn."""


@server.tool
def add(a: int, b: int) -> int:
    """Add on a thread."""
    return a + b


@server.tool
async def aadd(a: int, b: int) -> int:
    """Add on the loop."""
    return a + b


@server.tool
async def atell(ctx: Context, a: int, b: int) -> int:
    """Say what is added, and add."""
    await ctx.alog("info", [a, b])
    return a + b


@server.tool
def tell_and_last(ctx: Context, a: int, b: int) -> int:
    """Say what is added, and add once that is a row."""
    ctx.log("info", [a, b])
    last(ctx)
    return a + b


@pytest.fixture(autouse=True)
def _site(settings):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))


@pytest.fixture
def costs(monkeypatch) -> Counter[str]:
    """Count what the package does, but for what the ledger does for all calls together."""
    counts: Counter[str] = Counter()

    def count(owner: Any, name: str, what: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            # What a driver says when it opens a connection is not the call's.
            is_ours = what != "statements" or "django_mcp" in str(args[1])
            if is_ours and threading.current_thread().name != "mcp-ledger":
                counts[what] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    count(CursorWrapper, "execute", "statements")
    count(BaseDatabaseWrapper, "__init__", "connections")
    count(DaemonThread, "post", "hops")
    count(RunningRequests, "add", "entries")
    count(running_call, "start", "tasks")
    count(asyncio, "ensure_future", "tasks")
    count(messages, "_load", "parsed")
    count(messages, "encode", "encoded")
    return counts


async def send(application: Any, *message: Any, **more: Any) -> Any:
    """Make a request as a server does: in a task, to whose context nobody else adds anything."""
    return await asyncio.create_task(post(application, *message, **more))


async def session(application: Any, revision: str = "2025-11-25") -> dict[str, str]:
    opened = await send(application, request("initialize", **opening(revision)))
    headers = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
    assert (await send(application, INITIALIZED, headers=headers)).status == 202
    return headers


async def calling(application: Any, tool: str, *, in_session: bool) -> tuple[Any, dict[str, str]]:
    """Return the call of a tool, and its headers."""
    if in_session:
        return tool_call(tool, **ARGUMENTS), await session(application)
    wants_logs = {META_LOG_LEVEL: "info"} if "tell" in tool else {}
    return modern("tools/call", name=tool, arguments=ARGUMENTS, meta=wants_logs)


def cost_of(costs: Counter[str], tool: str, *, in_session: bool) -> dict[str, int]:
    """Return what a call costs when it is not the first one."""

    async def main() -> dict[str, int]:
        application = mount(get_asgi_application())
        message, headers = await calling(application, tool, in_session=in_session)
        await send(application, message, headers=headers)
        costs.clear()
        answer = await send(application, message, headers=headers)
        assert answer.messages()[-1]["result"]["content"][0]["text"] == "3"
        return dict(costs)

    return run(main())


@pytest.mark.skipif(not EAGER, reason="Python 3.12 has tasks that run at once")
def test_an_asynchronous_call_without_a_session_costs_no_thread_no_statement_and_no_entry(costs):
    assert cost_of(costs, "aadd", in_session=False) == {"tasks": 1, "parsed": 1, "encoded": 1}


@pytest.mark.skipif(not EAGER, reason="Python 3.12 has tasks that run at once")
def test_an_asynchronous_call_in_a_session_costs_the_look_at_the_session(costs):
    assert cost_of(costs, "aadd", in_session=True) == {
        "statements": 1,
        "hops": 1,
        "tasks": 1,
        "parsed": 1,
        "encoded": 1,
    }


@pytest.mark.skipif(not EAGER, reason="Python 3.12 has tasks that run at once")
def test_an_asynchronous_call_in_a_session_that_is_remembered_costs_no_more(costs, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SESSION_CACHE_SECONDS": 10}
    assert cost_of(costs, "aadd", in_session=True) == {"tasks": 1, "parsed": 1, "encoded": 1}


@pytest.mark.skipif(not EAGER, reason="Python 3.12 has tasks that run at once")
def test_a_call_that_speaks_and_ends_with_that_costs_no_more(costs, monkeypatch):
    # So that no machine is too slow for it.
    monkeypatch.setattr(stream_writer, "FIRST_WRITE_DELAY_SECONDS", 60)
    quiet = cost_of(costs, "aadd", in_session=True)
    assert cost_of(costs, "atell", in_session=True) == quiet
    assert not PendingRequest.objects.exists()


def test_a_synchronous_call_in_a_session_that_is_remembered_costs_its_thread(costs, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SESSION_CACHE_SECONDS": 10}
    cost = cost_of(costs, "add", in_session=True)
    assert cost["hops"] == 1
    assert "statements" not in cost


@pytest.mark.skipif(not EAGER, reason="Python 3.12 has tasks that run at once")
def test_a_session_that_is_remembered_elsewhere_costs_the_hop_to_ask_there(costs, settings):
    backend = "django.core.cache.backends.locmem.LocMemCache"
    settings.CACHES = {"shared": {"BACKEND": backend, "LOCATION": "costs"}}
    shared = {"SESSION_CACHE_SECONDS": 10, "SESSION_CACHE": "shared"}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **shared}
    cost = cost_of(costs, "aadd", in_session=True)
    assert cost == {"hops": 1, "tasks": 1, "parsed": 1, "encoded": 1}


@pytest.mark.parametrize(("seconds", "statements"), [(0, 1), (10, 0)])
def test_through_the_view_a_session_costs_one_statement_unless_it_is_remembered(
    settings, seconds, statements
):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SESSION_CACHE_SECONDS": seconds}
    caller = Caller(open_entrance("wsgi")).opened()
    caller.tool("add", **ARGUMENTS)
    with CaptureQueriesContext(connection) as queries:
        answer = caller.tool("add", **ARGUMENTS)
    assert answer.result["content"][0]["text"] == "3"
    assert len(queries) == statements


@pytest.mark.parametrize(("in_session", "looks"), [(False, {}), (True, {"statements": 1})])
def test_a_synchronous_call_costs_one_thread_more(costs, in_session, looks):
    assert cost_of(costs, "add", in_session=in_session) == {
        **looks,
        "hops": 1 + len(looks),
        "entries": 1,
        "tasks": 1,
        "parsed": 1,
        "encoded": 1,
    }


@pytest.mark.skipif(not EAGER, reason="Python 3.12 has tasks that run at once")
def test_a_list_is_made_and_encoded_once(costs):
    async def main() -> tuple[dict[str, int], Any, Any]:
        application = mount(get_asgi_application())
        message, headers = modern("tools/list")
        first = await post(application, message, headers=headers)
        costs.clear()
        again = await post(application, {**message, "id": "another"}, headers=headers)
        return dict(costs), first.json(), again.json()

    cost, first, again = run(main())
    assert cost == {"parsed": 1}
    assert again == {**first, "id": "another"}
    assert [tool["name"] for tool in first["result"]["tools"]] == [
        "aadd",
        "add",
        "atell",
        "tell_and_last",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["add", "aadd", "atell", "tell_and_last"])
@pytest.mark.parametrize("in_session", [False, True])
def test_a_call_leaves_nothing_for_the_garbage_collector(tool, in_session):
    async def main() -> list[str]:
        application = mount(get_asgi_application())
        message, headers = await calling(application, tool, in_session=in_session)
        return await left_behind(lambda: post(application, message, headers=headers))

    assert run(main()) == []


def test_a_batch_leaves_nothing_for_the_garbage_collector():
    async def main() -> list[str]:
        application = mount(get_asgi_application())
        message = tool_call("aadd", **ARGUMENTS)
        headers = await session(application, "2025-03-26")
        return await left_behind(lambda: post(application, [message], headers=headers))

    assert run(main()) == []


def test_a_call_of_the_view_leaves_nothing_for_the_garbage_collector():
    caller = Caller(open_entrance("wsgi"))

    async def call() -> Any:
        return await asyncio.to_thread(caller.tool, "add", **ARGUMENTS)

    assert run(left_behind(call)) == []


async def left_behind(call: Callable[[], Awaitable[Any]]) -> list[str]:
    """Return what of ours, after calls, only the garbage collector can find."""
    await call()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            await call()
        await until(lambda: ledger().is_writing, False)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = [type(each) for each in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    return [kind.__name__ for kind in kinds if kind.__module__.startswith("django_mcp")]
