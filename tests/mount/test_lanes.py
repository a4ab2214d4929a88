"""Lanes: synchronous code of the mount runs on few threads, each with connections of its own."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Annotated, Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.asgi import get_asgi_application
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import Http404
from pydantic import BaseModel, BeforeValidator

from django_mcp import MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import Principal, public
from django_mcp.models import PendingRequest
from django_mcp.transport import gate as gate_module
from django_mcp.transport import lanes as lanes_module
from django_mcp.transport.lanes import GATE_LANES, Lanes, Lease, call_lanes, gate_lanes
from tests.asgi import call, post, run, urlconf

pytestmark = pytest.mark.django_db(transaction=True)
server = MCPServer("lanes", version="1")


class Gate:
    """Holds a synchronous tool until the test lets it go."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()
        self.let_go = threading.Event()
        self.kept: list[BaseDatabaseWrapper] = []
        self.running = Counter[str]()
        self.validating: list[str] = []


gate = Gate()


@server.tool
def thread() -> str:
    """Say on which thread this runs."""
    return threading.current_thread().name


def note_thread(value: Any) -> Any:
    """Say on which thread arguments are validated."""
    gate.validating.append(threading.current_thread().name)
    return value


class All(BaseModel):
    of: list[Condition]


class Some(BaseModel):
    of: list[Condition]


Condition = All | Some | Annotated[int, BeforeValidator(note_thread)]


@server.tool
async def match(condition: Condition) -> str:
    """Take what can be read in more ways the deeper it is."""
    return "matched"


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
def wait_for_a_person() -> None:
    """Wait as a question does, in a thread that gives up its lane meanwhile."""
    with lanes_module.idle():
        gate.entered.release()
        assert gate.opened.wait(20)


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
def keep_connection_and_wait() -> None:
    """Keep the lane's connection, and the lane for a while."""
    keep_connection()
    gate.kept.append(connections["default"])
    gate.entered.release()
    assert gate.let_go.wait(20)


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


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


async def waiting(lanes: Lanes, number: int) -> None:
    async with asyncio.timeout(20):
        while lanes.turns.waiting != number:
            await asyncio.sleep(0.01)


async def settled(lanes: Lanes) -> None:
    """Wait until all lanes are free again."""
    async with asyncio.timeout(20):
        while lanes.turns.running:
            await asyncio.sleep(0.01)


async def entered(times: int = 1) -> None:
    for _ in range(times):
        assert await asyncio.to_thread(gate.entered.acquire, timeout=20)


@pytest.mark.parametrize("tool", ["thread", "orm_thread"])
def test_code_that_may_block_runs_on_a_lane(tool):
    assert text_of(run(call(application(), tool))).startswith("mcp-lane-")


def test_what_may_take_long_to_validate_does_not_keep_the_loop_from_others():
    arguments = {"condition": {"of": [{"of": [1]}]}}
    assert text_of(run(call(application(), "match", arguments=arguments))) == "matched"
    assert gate.validating
    assert all(name.startswith("mcp-gate-") for name in gate.validating)


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


def test_so_many_wait_for_a_lane_and_the_next_is_told_at_once(settings):
    """Nothing of it is registered, and it is not kept waiting for what it will not get."""
    lanes = {"LANES": 1, "LANE_QUEUE": 2, "LANE_WAIT_SECONDS": 60}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **lanes}

    async def main() -> Any:
        served = application()
        calls = [asyncio.create_task(call(served, "wait", arguments={"number": 0}))]
        await entered()
        calls += [
            asyncio.create_task(call(served, "wait", arguments={"number": number}))
            for number in (1, 2)
        ]
        await waiting(call_lanes(), 2)
        refused = [await call(served, "thread"), await call(served, "orm_thread")]
        gate.opened.set()
        answers = [(await each).json()["result"]["structuredContent"] for each in calls]
        assert (await call(served, "thread")).status == 200
        return refused, answers

    refused, answers = run(main())
    assert answers == [0, 1, 2]
    for each in refused:
        assert (each.status, each.json()["id"], each.json()["error"]["code"]) == (503, 1, -32603)
        assert int(each.headers["retry-after"]) > 0
    assert not PendingRequest.objects.exists()


@server.tool
async def miss() -> None:
    """Find nothing."""
    raise Http404("No page.")


def test_what_an_asynchronous_tool_raises_is_told_though_no_lane_is_free(settings):
    """It needs none, so its answer is not that the server is busy."""
    lanes = {"LANES": 1, "LANE_QUEUE": 1, "LANE_WAIT_SECONDS": 60}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **lanes}

    async def main() -> Any:
        served = application()
        calls = [asyncio.create_task(call(served, "wait"))]
        await entered()
        calls.append(asyncio.create_task(call(served, "wait")))
        await waiting(call_lanes(), 1)
        answer = await call(served, "miss")
        gate.opened.set()
        await asyncio.gather(*calls)
        return answer.json()["result"]

    result = run(main())
    assert (result["isError"], result["content"][0]["text"]) == (True, "No page.")


async def anybody(request: Any) -> Principal:
    """Let everybody in, without a lane."""
    return Principal(AnonymousUser())


def everybody(request: Any) -> Principal:
    """Let everybody in, from a lane."""
    return Principal(AnonymousUser())


@pytest.mark.parametrize(
    ("auth", "caller"), [(anybody, "at 127.0.0.1"), (public, "at 127.0.0.1"), (everybody, "")]
)
def test_so_many_wait_for_a_lane_of_the_gate(settings, auth, caller):
    """Also where AUTH waits for it: a little of the body is read for the id."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LANE_QUEUE": 1, "AUTH": auth}

    async def main() -> Any:
        served = application()
        leases = [await gate_lanes().take(caller) for _ in range(GATE_LANES)]
        opening = asyncio.create_task(post(served, INITIALIZE))
        await waiting(gate_lanes(), 1)
        refused = await post(served, INITIALIZE | {"id": "more"})
        for lane in leases:
            gate_lanes().give_back(lane)
        return refused, (await opening).status

    refused, status = run(main())
    assert status == 200
    assert (refused.status, refused.json()["id"]) == (503, "more")
    assert int(refused.headers["retry-after"]) > 0


def named(request: Any) -> Principal:
    """Let everybody in, as whom a header names."""
    return Principal(AnonymousUser(), limited_as=request.headers.get("X-Caller", ""))


BY_ADDRESS = ({"client": ("192.0.2.1", 1)}, {"client": ("2001:db8::1", 1)})
BY_KEY = ({"headers": {"X-Caller": "anna"}}, {"headers": {"X-Caller": "otto"}})


@pytest.mark.parametrize(("one", "other"), [BY_ADDRESS, BY_KEY], ids=["by address", "by key"])
@pytest.mark.parametrize("tool", ["thread", "orm_thread"])
def test_nobody_waits_for_the_calls_of_another(settings, one, other, tool):
    """Those of one caller have taken all lanes, and more of them wait."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LANES": 4, "AUTH": named}

    async def main() -> Any:
        served = application()
        calls = [asyncio.create_task(call(served, "wait", **one)) for _ in range(18)]
        await entered(4)
        await waiting(call_lanes(), 14)
        answered = await call(served, tool, **other)
        assert call_lanes().turns.waiting == 14
        gate.opened.set()
        assert [(await each).status for each in calls] == [200] * 18
        await settled(call_lanes())
        return text_of(answered), len(call_lanes()._lanes)

    name, left = run(main())
    assert name.startswith("mcp-lane-")
    assert left == 4


def test_nobody_waits_for_the_large_bodies_of_another(settings, monkeypatch):
    """They are read on the lanes of the gate, which everybody needs for AUTH."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LANE_WAIT_SECONDS": 10, "AUTH": everybody}
    parse = gate_module._parse_large

    def hold(*given: Any) -> Any:
        gate.entered.release()
        assert gate.opened.wait(20)
        return parse(*given)

    monkeypatch.setattr(gate_module, "_parse_large", hold)

    async def main() -> Any:
        served = application()
        large = {"arguments": {"number": [0] * 2000}, "client": ("192.0.2.1", 1)}
        calls = [asyncio.create_task(call(served, "wait", **large)) for _ in range(18)]
        await entered(GATE_LANES)
        await waiting(gate_lanes(), 18 - GATE_LANES)
        answered = await call(served, "thread", client=("192.0.2.2", 1))
        gate.opened.set()
        assert [(await each).status for each in calls] == [200] * 18
        return answered

    assert run(main()).status == 200


def test_of_all_who_wait_each_gets_a_lane_before_one_gets_many(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LANES": 1}

    async def main() -> list[str]:
        served, ended = application(), []

        async def make(name: str) -> None:
            address = {"client": (f"192.0.2.{ord(name)}", 1)}
            await call(served, "wait", arguments={"number": 0}, **address)
            ended.append(name)

        calls = [asyncio.create_task(make("x"))]
        await entered()
        for number, name in enumerate("aaaabc", start=1):
            calls.append(asyncio.create_task(make(name)))
            await waiting(call_lanes(), number)
        gate.opened.set()
        await asyncio.gather(*calls)
        return ended

    assert "".join(run(main())) == "xabcaaa"


@pytest.mark.parametrize("idle", [0, 1, 2])
def test_functions_that_wait_for_people_leave_their_lanes_to_others_up_to_a_number(
    settings, monkeypatch, idle
):
    """Beyond it they keep them; all go on, and in the end there are as many lanes as before."""
    monkeypatch.setattr(lanes_module, "MAX_IDLE", idle)
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LANES": 2, "LANE_WAIT_SECONDS": 1}

    async def main() -> Any:
        served = application()
        people = [asyncio.create_task(call(served, "wait_for_a_person")) for _ in range(2)]
        await entered(2)
        other = await call(served, "thread")
        gate.opened.set()
        assert [(await each).status for each in people] == [200, 200]
        await settled(call_lanes())
        assert len(call_lanes()._lanes) == 2
        return other.status

    assert run(main()) == (503 if idle == 0 else 200)


def test_a_lane_that_is_needed_no_more_leaves_no_connection_behind():
    """Nor does one that keeps its connection from call to call."""

    async def main() -> None:
        served = application()
        people = [asyncio.create_task(call(served, "wait_for_a_person")) for _ in range(2)]
        await entered(2)
        others = [asyncio.create_task(call(served, "keep_connection_and_wait")) for _ in range(2)]
        await entered(2)
        gate.let_go.set()
        assert [(await each).status for each in others] == [200, 200]
        assert len(call_lanes()._lanes) == 4
        assert all(each.connection is not None for each in gate.kept)
        gate.opened.set()
        assert [(await each).status for each in people] == [200, 200]
        async with asyncio.timeout(20):
            while any(each.connection is not None for each in gate.kept):
                await asyncio.sleep(0.01)
        assert len(call_lanes()._lanes) == 2

    run(main())


def test_nobody_waits_for_a_lane_that_nobody_wants_any_more(settings):
    """Who gives up leaves the queue at once, and what it wanted done is not done."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LANES": 1, "LANE_WAIT_SECONDS": 600}
    ran = []

    async def use_orm() -> None:
        async with Lease(call_lanes()):
            await sync_to_async(ran.append)("given up")

    async def main() -> None:
        lanes = call_lanes()
        lane = await lanes.take()
        given_up = [asyncio.create_task(use_orm()) for _ in range(3)]
        await waiting(lanes, 3)
        for task in given_up:
            task.cancel()
        await asyncio.wait(given_up)
        await waiting(lanes, 0)
        assert all(task.cancelled() for task in given_up)
        lanes.give_back(lane)
        await settled(lanes)

    run(main())
    assert ran == []


def test_one_that_gives_up_leaves_the_lane_to_others_of_its_function(settings):
    """Two wait for the same lane; and a lane that comes as its wait is given up is not lost."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LANES": 1}
    complaints = []

    async def main() -> list[str]:
        asyncio.get_running_loop().set_exception_handler(lambda _, each: complaints.append(each))
        lanes, ran = call_lanes(), []
        lane = await lanes.take()
        async with Lease(lanes):
            first, second = (
                asyncio.create_task(sync_to_async(ran.append)(name)) for name in ("first", "second")
            )
            await waiting(lanes, 1)
            first.cancel()
            await asyncio.wait([first])
            lanes.give_back(lane)
            await second
        await settled(lanes)
        return ran

    assert run(main()) == ["second"]
    assert complaints == []


def test_a_lane_that_comes_as_its_wait_is_given_up_goes_to_the_next(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LANES": 1}

    async def use_orm() -> None:
        async with Lease(call_lanes()):
            await sync_to_async(threading.current_thread)()

    async def main() -> None:
        lanes = call_lanes()
        for turns in range(6):
            lane = await lanes.take()
            given_up = asyncio.create_task(use_orm())
            await waiting(lanes, 1)
            lanes.give_back(lane)
            for _ in range(turns):
                await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.wait([given_up])
            await settled(lanes)

    run(main())
