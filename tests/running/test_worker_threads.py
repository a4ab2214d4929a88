"""Worker threads: synchronous code of the mount runs on few, each with connections of its own."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Annotated, Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.asgi import get_asgi_application
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import Http404
from django.utils import translation
from pydantic import BaseModel, BeforeValidator

from django_mcp import MCPServer, endpoint
from django_mcp.asgi import mount
from django_mcp.auth import Principal, public
from django_mcp.http import admission as gate_module
from django_mcp.models import PendingRequest
from django_mcp.protocol.errors import Unavailable
from django_mcp.running import worker_threads
from django_mcp.running.thread_lease import Lease
from django_mcp.running.worker_threads import ADMISSION_THREADS, WorkerThreads, pools
from tests.support.asgi import call, post
from tests.support.sites import run, urlconf

pytestmark = pytest.mark.django_db(transaction=True)
server = MCPServer("threads", version="1")


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
    assert gate.running[name] == 1, "two calls at once on one thread"
    gate.entered.release()
    assert gate.opened.wait(20)
    gate.running[name] -= 1
    return number


@server.tool
def wait_for_a_person() -> None:
    """Wait as a question does, in a thread that lets another run meanwhile."""
    with worker_threads.idle():
        gate.entered.release()
        assert gate.opened.wait(20)


@server.tool
def count_users() -> int:
    """Ask the database something."""
    return get_user_model().objects.count()


@server.tool
def keep_connection() -> None:
    """Let this thread keep its connection between calls, as CONN_MAX_AGE does."""
    connection.settings_dict = {**connection.settings_dict, "CONN_MAX_AGE": None}
    connection.close()
    connection.ensure_connection()


@server.tool
def keep_connection_and_wait() -> None:
    """Keep the connection of the thread, and the thread for a while."""
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
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WORKER_THREADS": 2, "THREAD_WAIT_SECONDS": 20}


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


async def waiting(threads: WorkerThreads, number: int) -> None:
    async with asyncio.timeout(20):
        while threads.turns.waiting != number:
            await asyncio.sleep(0.01)


async def settled(threads: WorkerThreads) -> None:
    """Wait until all threads are free again."""
    async with asyncio.timeout(20):
        while threads.turns.running:
            await asyncio.sleep(0.01)


async def entered(times: int = 1) -> None:
    for _ in range(times):
        assert await asyncio.to_thread(gate.entered.acquire, timeout=20)


@pytest.mark.parametrize("tool", ["thread", "orm_thread"])
def test_code_that_may_block_runs_on_a_thread(tool):
    assert text_of(run(call(application(), tool))).startswith("mcp-call-")


def test_what_may_take_long_to_validate_does_not_keep_the_loop_from_others(settings):
    costly = MCPServer("costly")
    costly.tool(match)
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=costly))
    arguments = {"condition": {"of": [{"of": [1]}]}}
    assert text_of(run(call(application(), "match", arguments=arguments))) == "matched"
    assert gate.validating
    assert all(name.startswith("mcp-admission-") for name in gate.validating)


tenant: ContextVar[str] = ContextVar("tenant", default="none")


def auth_of_a_tenant(request: Any) -> Principal:
    """Set what the calls of this request are to find."""
    tenant.set(request.headers["X-Tenant"])
    translation.activate("de")
    return Principal(AnonymousUser())


async def aauth_of_a_tenant(request: Any) -> Principal:
    return auth_of_a_tenant(request)


@server.tool
def surroundings() -> str:
    """Say what was set before."""
    return f"{tenant.get()} {translation.get_language()}"


@server.tool
async def asurroundings() -> str:
    """Say the same, from a thread of the ORM."""
    return await sync_to_async(surroundings)()


@pytest.mark.parametrize("tool", ["surroundings", "asurroundings"])
@pytest.mark.parametrize("auth", [auth_of_a_tenant, aauth_of_a_tenant])
def test_what_auth_has_set_is_there_in_the_call_and_in_no_other(settings, auth, tool):
    """Context variables, and the language, which Django keeps for each thread."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": auth}

    async def main() -> list[str]:
        served, names = application(), [f"tenant-{number}" for number in range(4)]
        calls = (call(served, tool, headers={"X-Tenant": name}) for name in names)
        answers = [text_of(each) for each in await asyncio.gather(*calls)]
        assert answers == [f"{name} de" for name in names]
        return [tenant.get(), translation.get_language()]

    assert run(main()) == ["none", translation.get_language()] != ["none", "de"]


def test_many_calls_share_few_threads_and_none_is_mixed_up():
    async def main() -> list[int]:
        served = application()
        calls = [
            asyncio.create_task(call(served, "wait", arguments={"number": number}))
            for number in range(40)
        ]
        await entered(2)
        threads = [t for t in threading.enumerate() if t.name.startswith("mcp-call-")]
        assert len(threads) == 2
        gate.opened.set()
        return [(await each).json()["result"]["structuredContent"] for each in calls]

    assert run(main()) == list(range(40))


def test_a_function_may_raise_what_no_future_takes():
    async def main() -> BaseException | None:
        with pytest.raises(RuntimeError, match="StopIteration") as caught:
            await pools().calls.run(next, iter(()))
        return caught.value.__cause__

    assert isinstance(run(main()), StopIteration)


def test_a_thread_is_not_given_out_again_while_it_is_busy():
    async def main() -> str:
        served = application()
        given_up = asyncio.create_task(call(served, "wait"))
        await entered()
        given_up.cancel()
        await asyncio.wait([given_up])
        # The thread still runs. Whoever comes next gets the other thread and need not wait for it.
        following = text_of(await call(served, "thread"))
        gate.opened.set()
        return following

    assert run(main()).startswith("mcp-call-")


def test_when_all_threads_stay_busy_the_answer_says_so_and_keeps_its_id(settings):
    limits = {"WORKER_THREADS": 1, "THREAD_WAIT_SECONDS": 1, "STREAM_AFTER_SECONDS": 60}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **limits}

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


def test_one_lost_connection_does_not_break_a_thread_for_good(settings):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no server that could go away")
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WORKER_THREADS": 1}

    async def main() -> list[str]:
        served = application()
        await call(served, "keep_connection")
        await call(served, "sever")
        # The first call after the loss may meet it; no later one may.
        await call(served, "count_users")
        return [text_of(await call(served, "count_users")) for _ in range(3)]

    assert run(main()) == ["0", "0", "0"]


def test_so_many_wait_for_a_thread_and_the_next_is_told_at_once(settings):
    """Nothing of it is registered, and it is not kept waiting for what it will not get."""
    limits = {"WORKER_THREADS": 1, "THREAD_QUEUE": 2, "THREAD_WAIT_SECONDS": 60}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **limits}

    async def main() -> Any:
        served = application()
        calls = [asyncio.create_task(call(served, "wait", arguments={"number": 0}))]
        await entered()
        calls += [
            asyncio.create_task(call(served, "wait", arguments={"number": number}))
            for number in (1, 2)
        ]
        await waiting(pools().calls, 2)
        refused = [await call(served, "thread"), await call(served, "orm_thread")]
        gate.opened.set()
        answers = [(await each).json()["result"]["structuredContent"] for each in calls]
        assert (await call(served, "thread")).status == 200
        return refused, answers

    (refused, begun), answers = run(main())
    assert answers == [0, 1, 2]
    found = refused.json()
    assert (refused.status, found["id"], found["error"]["code"]) == (503, 1, -32603)
    assert int(refused.headers["retry-after"]) > 0
    # A 503 would say that nothing has run. An asynchronous function has, up to its first query.
    assert (begun.status, begun.json()["id"]) == (200, 1)
    assert begun.json()["result"]["isError"]
    assert not PendingRequest.objects.exists()


@server.tool
async def miss() -> None:
    """Find nothing."""
    raise Http404("No page.")


def test_what_an_asynchronous_tool_raises_is_told_though_no_thread_is_free(settings):
    """It needs none, so its answer is not that the server is busy."""
    limits = {"WORKER_THREADS": 1, "THREAD_QUEUE": 1, "THREAD_WAIT_SECONDS": 60}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **limits}

    async def main() -> Any:
        served = application()
        calls = [asyncio.create_task(call(served, "wait"))]
        await entered()
        calls.append(asyncio.create_task(call(served, "wait")))
        await waiting(pools().calls, 1)
        answer = await call(served, "miss")
        gate.opened.set()
        await asyncio.gather(*calls)
        return answer.json()["result"]

    result = run(main())
    assert (result["isError"], result["content"][0]["text"]) == (True, "No page.")


async def anybody(request: Any) -> Principal:
    """Let everybody in, without a thread."""
    return Principal(AnonymousUser())


def everybody(request: Any) -> Principal:
    """Let everybody in, from a thread."""
    return Principal(AnonymousUser())


@pytest.mark.parametrize(
    ("auth", "caller"), [(anybody, "at 127.0.0.1"), (public, "at 127.0.0.1"), (everybody, "")]
)
def test_so_many_wait_for_a_thread_for_admission(settings, auth, caller):
    """Also where AUTH waits for it: a little of the body is read for the id."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "THREAD_QUEUE": 1, "AUTH": auth}

    async def main() -> Any:
        served = application()
        leases = [await pools().admission.take(caller) for _ in range(ADMISSION_THREADS)]
        opening = asyncio.create_task(post(served, INITIALIZE))
        await waiting(pools().admission, 1)
        refused = await post(served, INITIALIZE | {"id": "more"})
        for thread in leases:
            pools().admission.give_back(thread)
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
    """Those of one caller have taken all threads, and more of them wait."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WORKER_THREADS": 4, "AUTH": named}

    async def main() -> Any:
        served = application()
        calls = [asyncio.create_task(call(served, "wait", **one)) for _ in range(18)]
        await entered(4)
        await waiting(pools().calls, 14)
        answered = await call(served, tool, **other)
        assert pools().calls.turns.waiting == 14
        gate.opened.set()
        assert [(await each).status for each in calls] == [200] * 18
        await settled(pools().calls)
        return text_of(answered), len(pools().calls._threads)

    name, left = run(main())
    assert name.startswith("mcp-call-")
    assert left == 4


def test_nobody_waits_for_the_large_bodies_of_another(settings, monkeypatch):
    """They are read on the threads for admission, which everybody needs for AUTH."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "THREAD_WAIT_SECONDS": 10, "AUTH": everybody}
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
        await entered(ADMISSION_THREADS)
        await waiting(pools().admission, 18 - ADMISSION_THREADS)
        answered = await call(served, "thread", client=("192.0.2.2", 1))
        gate.opened.set()
        assert [(await each).status for each in calls] == [200] * 18
        return answered

    assert run(main()).status == 200


def test_of_all_who_wait_each_gets_a_thread_before_one_gets_many(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WORKER_THREADS": 1}

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
            await waiting(pools().calls, number)
        gate.opened.set()
        await asyncio.gather(*calls)
        return ended

    assert "".join(run(main())) == "xabcaaa"


@pytest.mark.parametrize("idle", [0, 1, 2])
def test_functions_that_wait_for_people_leave_their_threads_to_others_up_to_a_number(
    settings, monkeypatch, idle
):
    """Beyond it they keep them; all go on, and in the end there are as many threads as before."""
    monkeypatch.setattr(worker_threads, "MAX_IDLE_THREADS", idle)
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WORKER_THREADS": 2, "THREAD_WAIT_SECONDS": 1}

    async def main() -> Any:
        served = application()
        people = [asyncio.create_task(call(served, "wait_for_a_person")) for _ in range(2)]
        await entered(2)
        other = await call(served, "thread")
        gate.opened.set()
        assert [(await each).status for each in people] == [200, 200]
        await settled(pools().calls)
        assert len(pools().calls._threads) == 2
        return other.status

    assert run(main()) == (503 if idle == 0 else 200)


def test_a_thread_that_is_needed_no_more_ends_and_leaves_no_connection_behind():
    """Nor does one that keeps its connection from call to call."""

    def running() -> int:
        return sum(each.name.startswith("mcp-call-") for each in threading.enumerate())

    async def main() -> None:
        served = application()
        people = [asyncio.create_task(call(served, "wait_for_a_person")) for _ in range(2)]
        await entered(2)
        others = [asyncio.create_task(call(served, "keep_connection_and_wait")) for _ in range(2)]
        await entered(2)
        gate.let_go.set()
        assert [(await each).status for each in others] == [200, 200]
        assert len(pools().calls._threads) == 4
        assert all(each.connection is not None for each in gate.kept)
        gate.opened.set()
        assert [(await each).status for each in people] == [200, 200]
        async with asyncio.timeout(20):
            while any(each.connection is not None for each in gate.kept) or running() != 2:
                await asyncio.sleep(0.01)
        assert len(pools().calls._threads) == 2

    run(main())


def test_a_connection_that_has_grown_old_while_its_thread_was_free_is_not_used():
    async def main() -> bool:
        threads, used = WorkerThreads(1, "aging"), []

        def use() -> bool:
            used.append(connections["default"])
            was_open = used[-1].connection is not None
            keep_connection()
            return was_open

        was_open = []
        for _ in range(2):
            thread = await threads.take()
            was_open.append(await asyncio.wrap_future(thread.submit(use)))
            threads.give_back(thread)
            await settled(threads)
            used[-1].close_at = 0.0
        await threads.close()
        return was_open

    assert run(main()) == [False, False]


def test_nobody_waits_for_a_thread_that_nobody_wants_any_more(settings):
    """Who gives up leaves the queue at once, and what it wanted done is not done."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WORKER_THREADS": 1, "THREAD_WAIT_SECONDS": 600}
    ran = []

    async def use_orm() -> None:
        async with Lease(pools().calls):
            await sync_to_async(ran.append)("given up")

    async def main() -> None:
        threads = pools().calls
        thread = await threads.take()
        given_up = [asyncio.create_task(use_orm()) for _ in range(3)]
        await waiting(threads, 3)
        for task in given_up:
            task.cancel()
        await asyncio.wait(given_up)
        await waiting(threads, 0)
        assert all(task.cancelled() for task in given_up)
        threads.give_back(thread)
        await settled(threads)

    run(main())
    assert ran == []


def test_one_that_gives_up_leaves_the_thread_to_others_of_its_function(settings):
    """Two wait for the same thread; and a thread that comes as its wait is given up is not lost."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WORKER_THREADS": 1}
    complaints = []

    async def main() -> list[str]:
        asyncio.get_running_loop().set_exception_handler(lambda _, each: complaints.append(each))
        threads, ran = pools().calls, []
        thread = await threads.take()
        async with Lease(threads):
            first, second = (
                asyncio.create_task(sync_to_async(ran.append)(name)) for name in ("first", "second")
            )
            await waiting(threads, 1)
            first.cancel()
            await asyncio.wait([first])
            threads.give_back(thread)
            await second
        await settled(threads)
        return ran

    assert run(main()) == ["second"]
    assert complaints == []


def test_a_thread_that_comes_as_its_wait_is_given_up_goes_to_the_next(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WORKER_THREADS": 1}

    async def use_orm() -> None:
        async with Lease(pools().calls):
            await sync_to_async(threading.current_thread)()

    async def main() -> None:
        threads = pools().calls
        for turns in range(6):
            thread = await threads.take()
            given_up = asyncio.create_task(use_orm())
            await waiting(threads, 1)
            threads.give_back(thread)
            for _ in range(turns):
                await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.wait([given_up])
            await settled(threads)

    run(main())


@pytest.mark.parametrize("way", ["call", "orm of an asynchronous function"])
def test_a_thread_that_cannot_be_started_is_not_waited_for_for_ever(monkeypatch, way):
    """The system may have no more; the turn is others' as soon as it has."""

    def start(self: threading.Thread) -> None:
        if self.name.startswith("mcp-few"):
            raise RuntimeError("can't start new thread")
        original(self)

    original = threading.Thread.start

    async def run_one(threads: WorkerThreads) -> int:
        if way == "call":
            return await threads.run(lambda: 1)
        async with Lease(threads):
            return await sync_to_async(lambda: 1)()

    async def main() -> None:
        threads = WorkerThreads(1, "few")
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            for _ in range(3):
                with pytest.raises(Unavailable):
                    async with asyncio.timeout(20):
                        await run_one(threads)
        assert await run_one(threads) == 1
        await threads.close()

    run(main())


def test_a_function_may_ask_several_people_at_once():
    """Another runs in its place until all have answered, and not one for each question."""

    async def main() -> None:
        threads = WorkerThreads(2, "asking")
        thread = await threads.take()
        with ExitStack() as first:
            first.enter_context(threads.idle(thread))
            with threads.idle(thread):
                await asyncio.sleep(0)
                assert threads.turns.running == 0
            await asyncio.sleep(0)
            assert threads.turns.running == 0
        await asyncio.sleep(0)
        assert threads.turns.running == 1
        threads.give_back(thread)
        await asyncio.sleep(0)
        assert (threads.turns.running, threads._lent) == (0, 0)
        await threads.close()

    run(main())
