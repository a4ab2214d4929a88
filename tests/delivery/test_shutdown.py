"""The end of a process as far as one process can tell: see ``tests/workers/test_shutdown.py``."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from django_mcp.models import Session
from django_mcp.running import shutdown
from django_mcp.running.known_servers import Server
from django_mcp.running.send_queue import SendQueue
from django_mcp.running.shutdown import Shutdown
from django_mcp.signals import call_finished
from django_mcp.store.ledger import ledger
from tests.support.asgi import HEADERS, Connection, scope_of
from tests.support.client import Client, StatelessClient
from tests.support.streams import BOUND
from tests.support.waiting import in_thread, until

from . import site

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NO_TIME, LONG = 0, 600
"""Seconds that calls have."""
LOOP: Any = None
"""Of a queue that nothing is put into."""


@pytest.fixture(autouse=True)
def _goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutdown, "_is_closing", shutdown.is_closing())


class Signals:
    """The signals of a server of which nothing is known."""

    def __init__(self) -> None:
        self.passed_on: list[int] = []

    def handler_before(self, number: int) -> None:
        """Nothing is known of it."""

    def pass_on(self, number: int) -> None:
        """Note that the server is told."""
        self.passed_on.append(number)


def asked(signals: Signals) -> Shutdown:
    """Return the shutdown that is told of these signals."""
    found = Shutdown()
    found._signals = signals  # type: ignore[assignment]
    return found


def limit(settings: Any, seconds: float) -> None:
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SHUTDOWN_SECONDS": seconds}


async def said(connection: Connection) -> Any:
    """Return the last that is said on a connection."""
    return (await connection.messages())[-1] if connection.is_stream else await connection.json()


async def answer(request: Any) -> Any:
    async with request as connection:
        return await said(connection)


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_an_answer_is_the_last_on_its_connection_once_the_process_is_to_end(
    application, on_loop, version
):
    """HTTP/2 has no such header."""

    async def main():
        client = await Client(application).open()

        async def connection():
            headers = [*HEADERS.items(), ("Mcp-Session-Id", client.session_id)]
            scope = scope_of("/mcp", headers=headers, http_version=version)
            ping = Connection(application, scope, json.dumps(PING).encode())
            try:
                await ping.start()
                return ping.headers.get("connection")
            finally:
                await ping.close()

        before = await connection()
        await Shutdown().drain()
        return before, await connection()

    assert on_loop(main()) == (None, "close" if version == "1.1" else None)


@pytest.mark.parametrize("tool", ["await_", "speak_and_wait"])
def test_a_call_that_takes_too_long_ends_with_an_error_of_its_id(
    application, on_loop, settings, tool
):
    limit(settings, NO_TIME)

    async def main():
        client = await Client(application).open()
        calling = asyncio.create_task(answer(client.call(tool, id="mine")))
        await site.gates.reached()
        await Shutdown().drain()
        error = await calling
        site.gates.open()
        return error

    error = on_loop(main())
    assert (error["id"], error["error"]["code"]) == ("mine", -32603)
    assert "unknown" in error["error"]["message"]


def test_a_call_may_end_before_the_process_does(application, on_loop, settings):
    limit(settings, LONG)

    async def main():
        client = await Client(application).open()
        calling = asyncio.create_task(answer(client.call("await_", id=1)))
        await site.gates.reached()
        draining = asyncio.create_task(Shutdown().drain())
        await until(shutdown.is_closing, True)
        done, _ = await asyncio.wait([draining, calling], timeout=0.3)
        assert not done
        site.gates.open()
        await asyncio.wait_for(draining, BOUND)
        assert not ledger().requests
        return await calling

    assert on_loop(main())["result"]["content"][0]["text"] == "waited"


def test_what_one_lifespan_ends_is_not_what_the_next_one_begins(application, on_loop, settings):
    """Adapters of serverless platforms begin and end one with each request, on one loop."""
    limit(settings, NO_TIME)

    async def main():
        shutdown.start()
        await shutdown.drain()
        shutdown.start()
        client = await Client(application).open()
        calling = asyncio.create_task(answer(client.call("await_", id=1)))
        await site.gates.reached()
        done, _ = await asyncio.wait([calling], timeout=0.5)
        site.gates.open()
        result = await calling
        await shutdown.drain()
        return done, result

    done, result = on_loop(main())
    assert not done
    assert result["result"]["content"][0]["text"] == "waited"


@pytest.mark.parametrize("has_lifespan", [True, False])
def test_the_process_ends_when_all_receivers_have_heard_of_its_calls(
    application, on_loop, settings, monkeypatch, has_lifespan
):
    """By ``drain()``, or by the signal that is held back until then."""
    limit(settings, LONG)
    monkeypatch.setattr(shutdown, "LINGER_SECONDS", 0)
    go_on, heard = threading.Event(), []

    def receive(call, **kwargs):
        if call.name == "echo":
            assert go_on.wait(BOUND)
            heard.append(call.outcome)

    async def main():
        client = await Client(application).open()
        await client.result("echo")
        signals = Signals()
        if has_lifespan:
            ending = asyncio.create_task(Shutdown().drain())
        else:
            asked(signals)._asked(signal.SIGTERM)
            ending = asyncio.create_task(until(lambda: bool(signals.passed_on), True))
        await until(shutdown.is_closing, True)
        done, _ = await asyncio.wait([ending], timeout=0.5)
        go_on.set()
        await asyncio.wait_for(ending, BOUND)
        return bool(done), list(heard)

    call_finished.connect(receive)
    try:
        assert on_loop(main()) == (False, ["ok"])
    finally:
        call_finished.disconnect(receive)


def test_the_signal_waits_for_a_call_whose_client_comes_back_for_the_answer(
    application, on_loop, settings, monkeypatch
):
    """The server, which waits for connections, knows nothing of it."""
    limit(settings, LONG)
    monkeypatch.setattr(shutdown, "LINGER_SECONDS", 0)

    async def main():
        client, signals = await Client(application).open(), Signals()
        async with client.call("speak_and_wait", gate="stays"):
            async with client.call("speak_and_wait", gate="left") as left:
                await left.message()
            asked(signals)._asked(signal.SIGTERM)
            (ending,) = shutdown_tasks()
            done, _ = await asyncio.wait([ending], timeout=0.5)
            site.gates.open("left")
            await asyncio.wait_for(ending, BOUND / 2)  # before the other gives up
            site.gates.open("stays")
        return bool(done), signals.passed_on

    assert on_loop(main()) == (False, [signal.SIGTERM])


def test_how_sessions_were_used_is_written_before_the_process_ends(application, on_loop):
    async def main():
        client = await Client(application).open()
        for _ in range(3):
            await client.result("echo")
        await Shutdown().drain()
        return client.sent, await in_thread(lambda: Session.objects.get().request_count)

    sent, counted = on_loop(main())
    assert counted == sent


@pytest.mark.parametrize("seconds", [NO_TIME, LONG])
def test_streams_that_wait_for_news_end_soon(application, on_loop, settings, seconds):
    """However much time calls have; and a client is told when to come back."""
    limit(settings, seconds)

    async def main():
        client = await Client(application).open()
        async with (
            client.listen() as own,
            StatelessClient(application).listen(id="l", toolsListChanged=True) as listening,
        ):
            await listening.message()
            draining = asyncio.create_task(Shutdown().drain())
            assert await own.messages() == []
            *_, last = await listening.messages()
            await asyncio.wait_for(draining, BOUND)
            return own.text, last

    text, last = on_loop(main())
    retry = min(seconds + 1, shutdown.LONGEST_RETRY_SECONDS)
    assert f"retry: {retry * 1000:.0f}\n" in text
    assert (last["id"], "result" in last) == ("l", True)


def test_not_all_streams_end_at_once_and_none_after_the_calls(monkeypatch):
    """Each has a moment of its own, and keeps it."""
    spreads: list[float] = []
    now = [100.0]

    def latest(seconds: float) -> float:
        spreads.append(seconds)
        return seconds

    monkeypatch.setattr(shutdown, "jitter", latest)
    monkeypatch.setattr(shutdown, "time", SimpleNamespace(monotonic=lambda: now[0]))
    process, first, second, third = Shutdown(), *(SendQueue(LOOP) for _ in range(3))
    process._deadline = 102
    assert not process._is_due(first)
    now[0] = 100.9
    assert not process._is_due(first)
    now[0] = 101
    assert process._is_due(first)
    process._deadline = 1000
    assert not process._is_due(second)
    process._deadline = 50
    assert process._is_due(second)
    assert process._is_due(third)
    assert spreads == [1, shutdown.SPREAD_SECONDS, 0]


@pytest.mark.parametrize(("number", "seconds"), [(signal.SIGTERM, LONG), (signal.SIGINT, 0)])
def test_ctrl_c_leaves_no_time(on_loop, settings, number, seconds):
    limit(settings, LONG)

    async def main():
        process, loop = asked(Signals()), asyncio.get_running_loop()
        before = loop.time()
        process._asked(number)
        return before + seconds <= process._deadline <= loop.time() + seconds

    assert on_loop(main())


def test_the_second_signal_is_passed_on_at_once_and_the_first_no_more(
    application, on_loop, settings
):
    limit(settings, LONG)

    async def main():
        signals = Signals()
        process = asked(signals)
        client = await Client(application).open()
        calling = asyncio.create_task(answer(client.call("await_", id=1)))
        await site.gates.reached()
        process._asked(signal.SIGTERM)
        assert signals.passed_on == []
        process._asked(signal.SIGINT)
        assert signals.passed_on == [signal.SIGINT]
        error = await calling
        await until(lambda: bool(ledger().requests), False)
        await asyncio.gather(*shutdown_tasks())
        return error, signals.passed_on

    error, passed_on = on_loop(main())
    assert error["error"]["code"] == -32603
    assert passed_on == [signal.SIGINT]


class BreaksOff(Server):
    """A server that ends at once when it is told to, whatever it still sends."""

    breaks_off, is_idle, has_connections = True, False, False  # type: ignore[assignment]


@pytest.mark.parametrize("grace", [1, LONG])
def test_a_server_that_breaks_off_is_told_once_all_is_sent_or_the_time_has_passed(
    on_loop, settings, monkeypatch, grace
):
    limit(settings, grace)
    monkeypatch.setattr(shutdown, "FLUSH_SECONDS", 3600)
    server = BreaksOff()
    monkeypatch.setattr(shutdown, "server_behind", lambda handler: server)

    async def main():
        signals = Signals()
        asked(signals)._asked(signal.SIGTERM)
        (ending,) = shutdown_tasks()
        done, _ = await asyncio.wait([ending], timeout=0.3)
        server.is_idle = grace == LONG
        await asyncio.wait_for(ending, BOUND)
        return bool(done), signals.passed_on

    assert on_loop(main()) == (False, [signal.SIGTERM])


def test_the_server_hears_of_the_signal_whatever_fails_before(
    on_loop, settings, monkeypatch, caplog
):
    """Else the process would go on for ever, and take no connections."""

    class Failing(Server):
        async def stop_listening(self) -> None:
            raise OSError("planted")

    limit(settings, LONG)
    monkeypatch.setattr(shutdown, "server_behind", lambda handler: Failing())

    async def main():
        signals = Signals()
        asked(signals)._asked(signal.SIGTERM)
        await asyncio.wait_for(asyncio.gather(*shutdown_tasks()), BOUND)
        return signals.passed_on

    assert on_loop(main()) == [signal.SIGTERM]
    assert "planted" in caplog.text


def test_streams_and_calls_are_ended_from_any_thread(on_loop):
    """As gunicorn's hook does, which lets nobody hear of signals."""

    async def main():
        process = Shutdown()
        process.watch()
        try:
            await in_thread(process.begin_soon)
            await until(shutdown.is_closing, True)
        finally:
            process.is_over = True
            process._signals.close()

    on_loop(main())


def shutdown_tasks() -> list[asyncio.Task[Any]]:
    """Return what still waits to pass a signal on."""
    return [
        task
        for task in asyncio.all_tasks()
        if getattr(task.get_coro(), "__name__", "") == "_pass_on_in_time"
    ]
