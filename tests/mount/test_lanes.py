"""Lanes: synchronous code of the mount runs on few threads, each with connections of its own."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.core.asgi import get_asgi_application
from django.db import connection

from django_mcp import MCPServer, endpoint
from django_mcp.asgi import mount
from tests.asgi import call, run, urlconf

pytestmark = pytest.mark.django_db(transaction=True)
server = MCPServer("lanes", version="1")


class Gate:
    """Holds a synchronous tool until the test lets it go."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()
        self.running = Counter[str]()


gate = Gate()


@server.tool
def thread() -> str:
    """Say on which thread this runs."""
    return threading.current_thread().name


@server.tool
async def orm_thread() -> str:
    """Use the ORM, and say on which thread it ran."""
    await get_user_model().objects.acount()
    return (await sync_to_async(threading.current_thread)()).name


@server.tool
def wait(number: int = 0) -> int:
    """Wait until the test says so."""
    name = threading.current_thread().name
    gate.running[name] += 1
    assert gate.running[name] == 1, "two calls at once on one lane"
    gate.entered.release()
    assert gate.opened.wait(20)
    gate.running[name] -= 1
    return number


@server.tool
def count_users() -> int:
    """Ask the database something."""
    return get_user_model().objects.count()


@server.tool
def keep_connection() -> None:
    """Let this lane keep its connection between calls, as CONN_MAX_AGE does."""
    connection.settings_dict = {**connection.settings_dict, "CONN_MAX_AGE": None}
    connection.close()
    connection.ensure_connection()


@server.tool
def sever() -> str:
    """Close the connection behind Django's back, as a server that goes away does."""
    connection.ensure_connection()
    connection.connection.close()
    return "severed"


@pytest.fixture(autouse=True)
def site(settings):
    global gate
    gate = Gate()
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LANES": 2, "LANE_WAIT_SECONDS": 20}


def application() -> Any:
    return mount(get_asgi_application())


def text_of(response: Any) -> str:
    return response.json()["result"]["content"][0]["text"]


async def entered(times: int = 1) -> None:
    for _ in range(times):
        assert await asyncio.to_thread(gate.entered.acquire, timeout=20)


@pytest.mark.parametrize("tool", ["thread", "orm_thread"])
def test_code_that_may_block_runs_on_a_lane(tool):
    assert text_of(run(call(application(), tool))).startswith("mcp-lane-")


def test_many_calls_share_few_threads_and_none_is_mixed_up():
    async def main() -> list[int]:
        served = application()
        calls = [
            asyncio.create_task(call(served, "wait", arguments={"number": number}))
            for number in range(40)
        ]
        await entered(2)
        threads = [t for t in threading.enumerate() if t.name.startswith("mcp-lane-")]
        assert len(threads) == 2
        gate.opened.set()
        return [(await each).json()["result"]["structuredContent"] for each in calls]

    assert run(main()) == list(range(40))


def test_a_lane_is_not_lent_again_while_its_thread_is_busy():
    async def main() -> str:
        served = application()
        given_up = asyncio.create_task(call(served, "wait"))
        await entered()
        given_up.cancel()
        await asyncio.wait([given_up])
        # The thread still runs. Whoever comes next gets the other lane and need not wait for it.
        following = text_of(await call(served, "thread"))
        gate.opened.set()
        return following

    assert run(main()).startswith("mcp-lane-")


def test_when_all_lanes_stay_busy_the_answer_says_so_and_keeps_its_id(settings):
    lanes = {"LANES": 1, "LANE_WAIT_SECONDS": 1, "STREAM_AFTER_SECONDS": 60}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **lanes}

    async def main() -> Any:
        served = application()
        busy = asyncio.create_task(call(served, "wait"))
        await entered()
        refused = await call(served, "thread")
        gate.opened.set()
        assert (await busy).status == 200
        assert (await call(served, "thread")).status == 200
        return refused

    refused = run(main())
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) > 0


def test_one_lost_connection_does_not_break_a_lane_for_good(settings):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no server that could go away")
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LANES": 1}

    async def main() -> list[str]:
        served = application()
        await call(served, "keep_connection")
        await call(served, "sever")
        # The first call after the loss may meet it; no later one may.
        await call(served, "count_users")
        return [text_of(await call(served, "count_users")) for _ in range(3)]

    assert run(main()) == ["0", "0", "0"]
