"""The client without ``await``: in threads, after a fork, in tests, and not on a loop."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest
from asgiref.sync import SyncToAsync, ThreadSensitiveContext, async_to_sync, sync_to_async
from django.contrib.auth.models import User

from django_mcp.client import (
    CallTimedOut,
    Change,
    Client,
    ClientClosed,
    ConnectionFailed,
    RemoteError,
    SyncClient,
)
from django_mcp.client.sync import ClientOptions
from django_mcp.client.user_functions import BackgroundTasks, WaitingThread
from tests.support.forking import in_child, needs_fork
from tests.support.servers import RunningServer

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("client-library")]

T = TypeVar("T")

THREAD = "django-mcp-client"
UNCLOSED = "ignore" if sys.version_info < (3, 12) else "error"


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def client(request: pytest.FixtureRequest, library: list[RunningServer]) -> SyncClient:
    return SyncClient(library[0].url, revision=request.param, timeout=30)


def words(result: Any) -> str:
    return str(result.content[0].text)


def test_both_faces_have_the_same_methods() -> None:
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(SyncClient) == public(Client)
    for name in public(Client):
        ours, theirs = getattr(SyncClient, name), getattr(Client, name)
        if inspect.isfunction(theirs) and name != "listen":
            assert inspect.signature(ours) == inspect.signature(theirs), name


def test_both_faces_have_the_same_options() -> None:
    parameters = set(inspect.signature(Client).parameters) - {"url"}
    assert parameters == set(ClientOptions.__annotations__)


def test_everything_works_without_await(client: SyncClient) -> None:
    progress: list[float] = []
    with client:
        assert "bind" in {tool.name for tool in client.list_tools()}
        assert client.revision in ("2025-11-25", "2026-07-28")
        client.ping()
        client.set_log_level("error")
        assert [each.name for each in client.list_resources()] == ["catalogue"]
        assert client.read_resource("book://emma").contents[0].text == "emma"  # type: ignore[union-attr]
        assert [prompt.name for prompt in client.list_prompts()] == ["regret", "review"]
        assert client.get_prompt("review", {"title": "Emma"}).messages
        result = client.call_tool(
            "bind",
            {"title": "Emma", "sheets": 2},
            on_progress=lambda done, total, message: progress.append(done),
        )
        assert words(result) == "bound Emma"
        with pytest.raises(RemoteError):
            client.get_prompt("nothing")
    assert progress == [1, 2]
    assert THREAD not in {thread.name for thread in threading.enumerate()}


def test_changes_are_iterated(client: SyncClient) -> None:
    with client, client.listen(tools=True) as changes:
        client.call_tool("rearrange", {"what": "tools"})
        assert next(iter(changes)) == Change("tools")
        with pytest.raises(CallTimedOut):
            changes.next(timeout=0.05)


def test_functions_run_in_the_thread_that_waits(library: list[RunningServer]) -> None:
    """Each in that of its own call."""

    def fill_in(form: Any) -> dict[str, Any]:
        return {"value": threading.current_thread().name}

    def sign(number: int) -> tuple[str, str]:
        result = client.call_tool("sign", {"title": str(number)})
        return words(result), f"{number}: {threading.current_thread().name}"

    for revision in ("2025-11-25", "2026-07-28"):
        client = SyncClient(library[0].url, revision=revision, on_elicit=fill_in)
        with client, ThreadPoolExecutor(4) as pool:
            assert all(said == expected for said, expected in pool.map(sign, range(8)))


def in_a_view(view: Callable[[], T]) -> T:
    """Run a function as Django runs an ordinary view under ASGI."""

    async def handle() -> T:
        async with ThreadSensitiveContext():
            return await sync_to_async(view)()

    return asyncio.run(handle())


def in_a_view_of_a_test(view: Callable[[], T]) -> T:
    """Run it as Django's ``AsyncClient`` does: on the thread of all such."""
    return asyncio.run(sync_to_async(view)())


def under_wsgi(view: Callable[[], T]) -> T:
    """Run it in the thread of a request."""
    return view()


def behind_asynchronous_middleware(view: Callable[[], T]) -> T:
    """Run it as Django does under WSGI: in the thread that waits for the middleware's loop."""
    return async_to_sync(sync_to_async(view))()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    "serve", [in_a_view, in_a_view_of_a_test, under_wsgi, behind_asynchronous_middleware]
)
def test_what_a_coroutine_function_hands_to_a_thread_runs_in_the_one_that_waits(
    library: list[RunningServer], serve: Callable[[Callable[[], str]], str], revision: str
) -> None:
    """As the ORM's asynchronous methods do. The thread of the request is that one."""

    async def fill_in(form: Any) -> dict[str, Any]:
        async with asyncio.timeout(10):
            return {"value": await sync_to_async(lambda: threading.current_thread().name)()}

    def view() -> str:
        own = _loop_of_the_site()
        with SyncClient(library[0].url, revision=revision, on_elicit=fill_in) as client:
            said = words(client.call_tool("sign", {"title": "Emma"}))
        assert _loop_of_the_site() is own
        return said.replace(threading.current_thread().name, "this thread")

    assert serve(view) == "Emma: this thread"


def test_what_interrupts_the_thread_that_waits_ends_the_call(library: list[RunningServer]) -> None:
    """And not the client's loop."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    async def fill_in(form: Any) -> None:
        await sync_to_async(interrupt)()

    with SyncClient(library[0].url, on_elicit=fill_in) as client:
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("sign", {"title": "Emma"})
        client.ping()


async def test_what_outlasts_a_call_does_not_wait_for_its_thread() -> None:
    ended = asyncio.Event()

    async def report() -> threading.Thread:
        await ended.wait()
        return await sync_to_async(threading.current_thread)()

    async def call() -> asyncio.Task[threading.Thread]:
        return BackgroundTasks().start(report())

    reporting = await asyncio.create_task(WaitingThread().serve(call))
    ended.set()
    assert await reporting is not threading.current_thread()


def _loop_of_the_site() -> object:
    """Return the loop on which asynchronous code of a view runs, if there is one."""
    return getattr(SyncToAsync.threadlocal, "main_event_loop", None)


@pytest.mark.slow
@pytest.mark.django_db
def test_functions_see_the_transaction_of_a_test(library: list[RunningServer]) -> None:
    User.objects.create_user("Ada")

    def fill_in(form: Any) -> dict[str, Any]:
        return {"value": User.objects.get().username}

    with SyncClient(library[0].url, on_elicit=fill_in) as client:
        assert words(client.call_tool("sign", {"title": "Emma"})) == "Emma: Ada"


def test_a_function_that_raises_ends_no_thread(library: list[RunningServer]) -> None:
    def fail(form: Any) -> None:
        raise LookupError("no card")

    with SyncClient(library[0].url, on_elicit=fail, revision="2026-07-28") as client:
        with pytest.raises(LookupError):
            client.call_tool("sign", {"title": "Emma"})
        client.ping()


async def test_it_refuses_to_block_a_loop() -> None:
    client = SyncClient("http://127.0.0.1:9/mcp")
    with pytest.raises(RuntimeError, match="use Client"):
        client.open()


def test_what_is_closed_says_so(client: SyncClient) -> None:
    with pytest.raises(ClientClosed):
        client.list_tools()
    with client:
        client.ping()
    with pytest.raises(ClientClosed):
        client.list_tools()
    assert "closed" in repr(client)


def test_a_server_that_is_not_there_leaves_no_thread() -> None:
    with pytest.raises(ConnectionFailed):
        SyncClient("http://127.0.0.1:9/mcp").open()
    assert THREAD not in {thread.name for thread in threading.enumerate()}


def test_closing_ends_the_calls_of_other_threads(library: list[RunningServer]) -> None:
    begun = threading.Event()

    def doze() -> None:
        with pytest.raises(ClientClosed):
            client.call_tool("doze", {"name": "sync"}, on_progress=lambda *each: begun.set())

    with ThreadPoolExecutor(1) as pool:
        client = SyncClient(library[0].url)
        client.open()
        dozing = pool.submit(doze)
        assert begun.wait(10)
        client.close()
        dozing.result(10)


def test_closing_ends_the_iterators_of_other_threads(client: SyncClient) -> None:
    """Those that wait for a change, and those that are busy with the last one."""
    listening, told, closed = (threading.Event() for _ in range(3))

    def wait() -> list[Change]:
        with client.listen(prompts=True) as changes:
            listening.set()
            return list(changes)

    def work() -> list[Change]:
        heard = []
        with client.listen(tools=True) as changes:
            client.call_tool("rearrange", {"what": "tools"})
            for change in changes:
                heard.append(change)
                told.set()
                assert closed.wait(20)
        return heard

    with ThreadPoolExecutor(2) as pool:
        client.open()
        waiting, working = pool.submit(wait), pool.submit(work)
        assert listening.wait(20)
        assert told.wait(20)
        client.close()
        closed.set()
        assert waiting.result(20) == []
        assert working.result(20) == [Change("tools")]
    assert THREAD not in {thread.name for thread in threading.enumerate()}


# On Python 3.11 a connection whose call is cancelled just as it is made is closed by the collector.
@pytest.mark.filterwarnings(f"{UNCLOSED}::pytest.PytestUnraisableExceptionWarning")
def test_closing_meanwhile_leaves_nobody_waiting(library: list[RunningServer]) -> None:
    """A call that comes as the loop ends is refused, not forgotten."""
    client, outcomes = SyncClient(library[0].url, revision="2026-07-28"), []

    def ping_until_closed() -> None:
        try:
            while True:
                client.ping()
        except ClientClosed as error:
            outcomes.append(error)

    for _ in range(5):
        client.open()
        threads = [threading.Thread(target=ping_until_closed, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        client.close()
        for thread in threads:
            thread.join(20)
        assert not any(thread.is_alive() for thread in threads)
    assert len(outcomes) == 20
    outcomes.clear()
    gc.collect()  # a connection that nobody has closed is told of, which fails the test


@needs_fork
def test_a_child_process_opens_its_own(client: SyncClient) -> None:
    """As a pre-forking server or Celery makes them, with a client that the parent has opened."""
    with client:
        client.ping()
        assert in_child(lambda: client.list_tools() != []) == 0
        assert in_child(client.close) == 0
        client.ping()
