"""How many connections are open, and what becomes of those that are not read."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.asgi import get_asgi_application

from django_mcp import endpoint
from django_mcp.asgi import mount
from django_mcp.http.connection_limits import Connections, open_connections
from django_mcp.models import PendingRequest, Stream
from django_mcp.protocol.errors import MCPError
from django_mcp.running import send_queue
from django_mcp.store.delivery import outbox
from django_mcp.store.ledger import ledger
from tests.support.asgi import Connection
from tests.support.client import Client, StatelessClient
from tests.support.messages import META_LOG_LEVEL, modern
from tests.support.sites import urlconf
from tests.support.streams import BOUND
from tests.support.waiting import in_thread, until

from . import changes, site
from .changes import by_header, listening

LISTEN, CALL = "subscriptions/listen", "tools/call"
WORD = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":%d}}'


@pytest.fixture(autouse=True)
def _all_leave():
    yield
    assert len(open_connections) == 0


@pytest.fixture
def users(settings: Any) -> None:
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": by_header}
    for name in ("anna", "otto"):
        get_user_model().objects.create(username=name)


def limit(settings: Any, **limits: Any) -> None:
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **limits}


async def refusal(connection: Connection) -> tuple[int, Any, bool]:
    """Return status, id and whether it says when to come again."""
    assert not connection.is_stream
    answer = await connection.json()
    assert answer["error"]["code"] in (-32600, -32603)
    return connection.status, answer["id"], int(connection.headers["retry-after"]) > 0


async def at_rest() -> None:
    async with asyncio.timeout(BOUND):
        while len(open_connections):
            await asyncio.sleep(0.01)


# How many there may be


def test_nothing_is_kept_of_callers_that_have_left():
    connections = Connections()
    for waits in (True, False):
        connections.enter("anna", stays_open=waits).leave()
    assert len(connections) == 0
    assert connections._calls.each == connections._everything.each == {}


def test_who_has_left_counts_no_longer_for_who_enters(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MAX_STREAMS_PER_USER": 1}
    connections = Connections()
    for waits in (True, False):
        for _ in range(2):
            connections.enter("anna", stays_open=waits).leave()
            connections.check("anna", stays_open=waits)
        connections.enter("anna", stays_open=waits).leave()
        connections.enter("anna", stays_open=waits)
        with pytest.raises(MCPError):
            connections.enter("anna", stays_open=waits)


@pytest.mark.parametrize("client", ["", "app"])
def test_each_user_and_client_may_have_so_many(application, on_loop, settings, users, client):
    limit(settings, MAX_STREAMS_PER_USER=2)
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=changes.server))
    who = {"X_User": "anna", "X_Client": client}

    async def main():
        async with AsyncExitStack() as stack:
            # Of both kinds together: a session's own, and one of the modern era.
            member = await Client(application, **who).open()
            await stack.enter_async_context(member.listen())
            stream = await stack.enter_async_context(listening(application, {}, **who))
            await stream.message()
            async with listening(application, {}, id="more", **who) as one:
                refused = [await refusal(one)]
            another = await Client(application, **who).open()
            async with another.listen() as two:
                refused.append(await refusal(two))
            for others in ({"X_User": "otto"}, {"X_User": "anna", "X_Client": "another"}):
                async with listening(application, {}, **others) as stream:
                    assert stream.is_stream
        await at_rest()
        async with listening(application, {}, **who) as stream:
            assert stream.is_stream
        return refused

    assert on_loop(main()) == [(429, "more", True), (429, None, True)]
    running = PendingRequest.objects.filter(method=LISTEN, request_id='"more"')
    assert not running.exists()


def test_of_callers_of_whom_nothing_is_known_there_may_be_so_many_in_all(
    application, on_loop, settings
):
    limit(settings, MAX_STREAMS_PER_USER=1, MAX_STREAMS=3)

    async def main():
        async with AsyncExitStack() as stack:
            for _ in range(2):
                stream = await stack.enter_async_context(listening(application, {}))
                await stream.message()
            member = await Client(application).open()
            await stack.enter_async_context(member.listen())
            async with listening(application, {}, id=7) as refused:
                found = [await refusal(refused)]
            another = await Client(application).open()
            async with another.listen() as refused:
                found.append(await refusal(refused))
            # Who waits for news keeps nobody from working.
            async with another.call("steps") as call:
                assert (await call.messages())[-1]["result"]
        return found

    assert on_loop(main()) == [(503, 7, True), (503, None, True)]
    assert Stream.objects.filter(own=True).count() == 1


def test_the_newer_of_two_streams_of_a_session_takes_the_place_of_the_older(
    application, on_loop, settings
):
    """Over a cap an older one is closed, which had fallen silent."""
    limit(settings, MAX_STREAMS=1)

    async def main():
        member = await Client(application).open()
        async with member.listen() as older:
            await older.event()
            async with member.listen() as newer:
                await newer.event()
                assert await older.message() is None
                stream = await in_thread(lambda: Stream.objects.get(own=True).pk)
                await in_thread(outbox.write_notifications, stream, [WORD % 0])
                ledger().look_now()
                return await newer.message(), older.text

    message, older = on_loop(main())
    assert message["params"]["data"] == 0
    assert "retry: 1000" in older.rpartition("id:")[2]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_calls_have_a_cap_of_their_own(application, on_loop, settings, era):
    limit(settings, MAX_STREAMS=2)

    async def main():
        member = await Client(application).open()

        def call(id: Any) -> Any:
            if era == "legacy":
                return member.call("await_", id=id)
            return StatelessClient(application).call("await_", id=id)

        async def answered(id: Any) -> Any:
            async with call(id) as made:
                return (await made.messages())[-1]

        running = [asyncio.create_task(answered(number)) for number in range(2)]
        for _ in running:
            await site.gates.reached()
        async with call("more") as third:
            refused = await refusal(third)
        for _ in running:
            site.gates.open()
        return refused, [(await each)["id"] for each in running]

    assert on_loop(main()) == ((503, "more", True), [0, 1])
    assert not PendingRequest.objects.filter(request_id='"more"').exists()


def test_a_call_that_runs_counts_when_its_connection_has_gone(application, on_loop, settings):
    limit(settings, MAX_STREAMS=1)

    async def main():
        member = await Client(application).open()
        async with member.call("speak_and_wait") as call:
            await call.message()
        async with member.call("echo") as other:
            refused = await refusal(other)
        site.gates.open()
        await at_rest()
        async with member.call("echo") as other:
            return refused[0], other.status

    assert on_loop(main()) == (503, 200)


@pytest.mark.parametrize(("came", "status"), [("to the end", 204), ("unknown", 400)])
def test_what_comes_to_nothing_does_not_count(application, on_loop, came, status):
    async def main():
        member = await Client(application).open()
        async with member.call("steps") as call:
            await call.messages()
        await until(lambda: Stream.objects.exclude(closed=None).count(), 1)
        place = call.last_id if came == "to the end" else "unknown"
        async with member.listen(place) as reply:
            return reply.status

    assert on_loop(main()) == status


# Those on which nothing comes


@pytest.mark.parametrize(("kind", "each"), [("own", 1), ("listen", 2)])
def test_an_idle_stream_is_no_task_but_the_servers_own(on_loop, kind, each):
    """One that listens is a call as well, which has a task of its own."""
    application, number = mount(get_asgi_application()), 5

    async def open_one(stack: AsyncExitStack) -> None:
        if kind == "own":
            member = await Client(application).open()
            stream = await stack.enter_async_context(member.listen())
            await stream.event()
        else:
            stream = await stack.enter_async_context(listening(application, {}))
            await stream.message()

    async def main():
        async with AsyncExitStack() as stack:
            # The first of all starts what a process has once.
            await open_one(stack)
            before = asyncio.all_tasks()
            for _ in range(number):
                await open_one(stack)
            # What has sent the first event is done in a moment.
            with suppress(TimeoutError):
                async with asyncio.timeout(BOUND):
                    while len(asyncio.all_tasks() - before) > each * number:
                        await asyncio.sleep(0.01)
            return len(asyncio.all_tasks() - before)

    assert on_loop(main()) == each * number


# Those that are not read


class Stalled:
    """A client that reads so many pieces of the body, and then no more."""

    def __init__(self, pieces: int) -> None:
        self.left = pieces
        self.read: list[bytes] = []
        self.reads = asyncio.Event()
        self.stalls = asyncio.Event()

    async def send(self, event: dict[str, Any]) -> None:
        if event["type"] == "http.response.body":
            if not self.left:
                self.stalls.set()
                await self.reads.wait()
            self.left -= 1
            self.read.append(event.get("body", b""))


@asynccontextmanager
async def stalling(application: Any, connection: Any, pieces: int = 1) -> Any:
    """Make a request whose answer is not read to its end; give the client and the server's task."""
    client = Stalled(pieces)

    async def stalled(scope: Any, receive: Any, send: Any) -> None:
        await application(scope, receive, client.send)

    request = connection(stalled)
    task = request._task
    try:
        yield client, task
    finally:
        client.reads.set()
        with suppress(asyncio.CancelledError):
            await request.close()


def posting(member: Client, tool: str, **arguments: Any) -> Any:
    """Return what makes a call at an application of a test's own."""

    def make(application: Any) -> Connection:
        message = {"jsonrpc": "2.0", "id": "slow", "method": CALL}
        params = {"name": tool, "arguments": arguments}
        return member.connection(application, "POST", {**message, "params": params})

    return make


async def given_up(task: asyncio.Task[Any]) -> None:
    async with asyncio.timeout(BOUND):
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])


def test_a_client_that_does_not_read_loses_its_connection_and_comes_back_for_the_rest(
    application, on_loop, settings, caplog, valid_wire
):
    limit(settings, WRITE_TIMEOUT_SECONDS=0.2)

    async def main():
        member = await Client(application).open()
        # What Django leaves half sent has not been looked at by then.
        valid_wire.was_sent_elsewhere(member.session_id, {"id": "slow", "method": CALL})
        async with stalling(application, posting(member, "steps", count=50)) as (client, task):
            await given_up(task)
            await at_rest()
            assert not ledger().readers
        (primed,) = client.read
        place = primed.decode().split("id: ")[1].split("\n")[0]
        async with member.listen(place) as resumed:
            return await resumed.messages()

    *said, last = on_loop(main())
    assert [each["params"]["data"] for each in said] == [str(number) for number in range(50)]
    assert last["id"] == "slow"
    assert "has not read for too long" in caplog.text


def test_a_modern_call_ends_when_its_client_does_not_read(application, on_loop, settings):
    """2026-07-28: a connection that goes is the cancellation."""
    limit(settings, WRITE_TIMEOUT_SECONDS=0.2)

    def make(application: Any) -> Connection:
        meta = {META_LOG_LEVEL: "info"}
        message, headers = modern(CALL, "slow", meta=meta, name="speak_and_wait", arguments={})
        return Client(application).connection(application, "POST", message, **headers)

    async def main():
        async with stalling(application, make, pieces=0) as (client, task):
            await client.stalls.wait()
            await given_up(task)
        site.gates.open()
        await at_rest()
        await until(lambda: list(site.gates.left), [""])

    on_loop(main())


@pytest.mark.parametrize("kind", ["own", "listen"])
def test_streams_that_wait_for_news_end_as_well(application, on_loop, settings, kind):
    limit(settings, WRITE_TIMEOUT_SECONDS=0.2)

    def listen(application: Any) -> Connection:
        message, headers = modern(LISTEN, "slow", notifications={})
        return Client(application).connection(application, "POST", message, **headers)

    async def main():
        member = await Client(application).open()

        def own(application: Any) -> Connection:
            return member.connection(application, "GET", None)

        make = own if kind == "own" else listen
        async with stalling(application, make, pieces=0) as (client, task):
            await client.stalls.wait()
            assert len(open_connections) == 1
            await given_up(task)
            await at_rest()
        running = PendingRequest.objects.filter(state="running")
        await until(running.count, 0)

    on_loop(main())


def test_a_client_that_does_not_read_fills_no_memory_and_holds_up_nobody(
    application, on_loop, monkeypatch, settings
):
    """What it has no room for stays in its rows until it reads on."""
    monkeypatch.setattr(send_queue, "HELD_MESSAGES", 10)
    limit(settings, WRITE_TIMEOUT_SECONDS=BOUND, WORKER_THREADS=1, QUEUE_MESSAGES=2000)

    async def main():
        member, other = [await Client(application).open() for _ in range(2)]

        def own(application: Any) -> Connection:
            return member.connection(application, "GET", None)

        async with stalling(application, own, pieces=2) as (client, _):
            await until(Stream.objects.filter(own=True).count, 1)
            stream = await in_thread(lambda: Stream.objects.get(own=True).pk)
            for number in range(0, 1000, 100):
                bodies = [WORD % each for each in range(number, number + 100)]
                await in_thread(outbox.write_notifications, stream, bodies)
                ledger().look_now()
                # Somebody else, of the same process, with the same worker thread: not held up.
                async with other.call("steps") as call:
                    assert (await call.messages())[-1]["result"]
            await client.stalls.wait()
            (reader,) = ledger().readers.all()
            taken = reader.cursor
            client.reads.set()
            client.left = 10_000
            async with asyncio.timeout(BOUND):
                while not client.read[-1].endswith(b'"data":999}}\n\n'):
                    await asyncio.sleep(0.01)
        return taken, b"".join(client.read).count(b"notifications/message")

    taken, read = on_loop(main())
    assert taken <= 10 + 100
    assert read == 1000


def test_a_stream_that_is_to_make_room_while_it_is_opened_ends_as_soon_as_it_is(settings):
    limit(settings, MAX_STREAMS=1)
    connections, ended = Connections(), []
    older = connections.enter("", stays_open=True, session="one")
    newer = connections.enter("", stays_open=True, session="one")
    older.end_by(lambda: ended.append("older"))
    newer.end_by(lambda: ended.append("newer"))
    assert ended == ["older"]
