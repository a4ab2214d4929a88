"""Signals of calls: what they say, where their receivers run, and that these harm nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connections
from django.dispatch import Signal

from django_mcp import MCPServer, endpoint
from django_mcp.models import Session
from django_mcp.running import call_observers
from django_mcp.running.call_observers import are_being_told
from django_mcp.running.worker_threads import pools
from django_mcp.signals import CallInfo, call_finished, call_started
from django_mcp.store.in_flight.running_requests import StopReason
from django_mcp.store.ledger import ledger
from django_mcp.store.sessions.session_rows import end_sessions
from django_mcp.testing import MCPClient
from tests.support.asgi import HEADERS, Connection, scope_of
from tests.support.caller import Caller
from tests.support.client import Client
from tests.support.messages import LEGACY, REVISIONS, encoded, modern, request, tool_call
from tests.support.sites import run, urlconf
from tests.support.waiting import in_thread, until

from . import site
from .conftest import TOKEN

OWN = {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def connected(signal: Signal, receive: Any, **options: Any):
    """Have a signal received for a while."""
    signal.connect(receive, **options)
    try:
        yield
    finally:
        signal.disconnect(receive, sender=options.get("sender"))


@pytest.mark.parametrize("tool", ["add", "aadd"])
def test_a_call_is_told_when_it_begins_and_when_it_has_ended(caller, finished, tool):
    started: list[tuple[Any, CallInfo, str]] = []

    def begin(sender: MCPServer, call: CallInfo, **kwargs: Any) -> None:
        started.append((sender, call, call.outcome))
        assert site.seen.threads == []

    with connected(call_started, begin):
        answer = caller.call("tools/call", "seven", name=tool, arguments={"a": 1, "b": 2})
    assert answer.result["structuredContent"] == {"result": 3} or answer.result["content"]
    (call,) = finished
    assert started == [(site.server, call, "")]
    assert (call.server, call.method, call.name) == ("observed", "tools/call", tool)
    assert (call.user, call.user_id, call.client_id) == (site.user(), "7", "desk")
    assert (call.session_id, call.era, call.revision) == (None, "modern", "2026-07-28")
    assert (call.request_id, call.outcome, call.error, call.error_code) == ("seven", "ok", "", None)
    assert call.answer_bytes == len(answer.body)
    assert 0 < call.duration < 10


@pytest.mark.parametrize("revision", LEGACY)
def test_a_session_is_told_by_its_public_id(caller, finished, revision):
    member = caller.opened(revision)
    finished.clear()
    assert member.tool("add", a=1, b=2).status == 200
    (call,) = finished
    assert call.session_id == str(Session.objects.get().pk)
    assert (call.era, call.revision) == ("legacy", revision)
    assert str(member.session) not in repr(call)


OUTCOMES = {
    "crash": ("tool_error", "tests.observing.site.Broken", None),
    "acrash": ("tool_error", "tests.observing.site.Broken", None),
    "speak_and_crash": ("tool_error", "tests.observing.site.Broken", None),
    "refuse": ("tool_error", "django_mcp.server.errors.ToolError", None),
    "too_long": ("tool_error", "django_mcp.server.errors.ToolTimedOut", None),
    "unknown": ("error", "", -32602),
    "unsendable": ("tool_error", "django_mcp.server.errors.Unserializable", None),
    "unencodable": ("tool_error", "", None),
}


@pytest.mark.parametrize("tool", OUTCOMES)
def test_the_outcome_and_the_class_of_the_exception_are_told(caller, finished, tool):
    answer = caller.tool(tool)
    (call,) = finished
    assert (call.outcome, call.error, call.error_code) == OUTCOMES[tool]
    assert call.answer_bytes > 0
    assert answer.status == 200


@pytest.mark.parametrize(
    ("tool", "arguments", "outcome", "code"),
    [("guarded", {}, "error", -32603), ("number", {"value": 1}, "tool_error", None)],
)
def test_the_class_of_what_fails_before_the_function_is_told(
    caller, finished, settings, tool, arguments, outcome, code
):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=site.failing))
    caller.tool(tool, **arguments)
    assert [(each.outcome, each.error, each.error_code) for each in finished] == [
        (outcome, "tests.observing.site.Broken", code)
    ]


def test_the_class_of_an_exception_of_our_own_is_told_too(caller, finished, monkeypatch):
    def fail(*args: Any) -> Any:
        raise KeyError("planted")

    monkeypatch.setattr("django_mcp.server.dispatch._complete", fail)
    caller.tool("add", a=1, b=2)
    assert [(each.outcome, each.error, each.error_code) for each in finished] == [
        ("error", "builtins.KeyError", -32603)
    ]


def test_bad_arguments_are_an_outcome_too(caller, finished):
    caller.tool("add", a="x")
    assert [(each.outcome, each.error) for each in finished] == [("tool_error", "")]


def test_a_question_is_an_outcome(caller, finished):
    message, headers = modern(
        "tools/call",
        name="ask",
        arguments={},
        meta={"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}},
    )
    caller.post(message, **headers)
    assert [each.outcome for each in finished] == ["input_required"]


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "prompts/list", "no/method"])
def test_requests_that_reach_no_function_are_calls_too(caller, finished, method):
    caller.call(method)
    assert [(each.method, each.name) for each in finished] == [(method, "")]
    assert finished[0].error_code == (-32601 if method == "no/method" else None)


def test_names_that_a_client_makes_up_are_cut(caller, finished):
    caller.tool("x" * 10_000)
    caller.call("y" * 10_000)
    assert [len(finished[0].name), len(finished[1].method)] == [200, 100]


def test_each_call_of_a_batch_is_told(caller, finished):
    member = caller.opened("2025-03-26")
    finished.clear()
    batch = [tool_call("add", 1, a=1, b=2), tool_call("refuse", 2), {"jsonrpc": "2.0", "id": 3}]
    answer = member.post(batch)
    assert [each["id"] for each in answer.message] == [1, 2, 3]
    # What is no request is no call.
    found = sorted((each.request_id, each.outcome) for each in finished)
    assert found == [(1, "ok"), (2, "tool_error")]


def test_requests_that_are_refused_before_are_no_calls(entrance, caller, finished):
    assert Caller(entrance).tool("add", a=1, b=2).status == 401
    assert caller.in_session("unknown").post(request("ping")).status == 404
    assert caller.post(b"{").status == 400
    assert finished == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_test_client_sees_the_same(user, finished, revision):
    client = MCPClient(site.server, revision=revision).as_user(user)
    client.tool("add", a=1, b=2)
    assert finished[-1].name == "add"
    assert finished[-1].user == user


def test_receivers_of_one_server_hear_of_no_other(caller):
    heard: list[str] = []

    def receive(call: CallInfo, **kwargs: Any) -> None:
        heard.append(call.name)

    with connected(call_finished, receive, sender=MCPServer("another")):
        caller.tool("add", a=1, b=2)
    with connected(call_finished, receive, sender=site.server):
        caller.tool("aadd", a=1, b=2)
    assert heard == ["aadd"]


@pytest.mark.parametrize("signal", [call_started, call_finished])
@pytest.mark.parametrize("tool", ["add", "aadd"])
def test_a_receiver_that_raises_harms_nothing_and_is_logged(caller, caplog, signal, tool):
    def broken(**kwargs: Any) -> None:
        raise RuntimeError("planted")

    with connected(signal, broken):
        assert caller.tool(tool, a=1, b=2).result["isError"] is False
    assert "planted" in caplog.text


@pytest.mark.parametrize("signal", [call_started, call_finished])
@pytest.mark.parametrize("tool", ["add", "aadd"])
def test_receivers_run_where_blocking_code_may(entrance, caller, signal, tool):
    threads: list[str] = []
    here = threading.current_thread().name

    def receive(**kwargs: Any) -> None:
        threads.append(threading.current_thread().name)
        Group.objects.create(name="received")

    with connected(signal, receive):
        assert caller.tool(tool, a=1, b=2).result["isError"] is False
    assert Group.objects.count() == 1
    if entrance.name == "wsgi":
        assert threads == [here]
    else:
        assert [each[: len("mcp-call")] for each in threads] == ["mcp-call"]


@pytest.mark.parametrize("signal", [call_started, call_finished])
def test_a_stale_connection_does_no_harm_to_a_receiver(entrance, caller, settings, signal):
    """Its thread closes what is of no use any more, as before a function."""
    if entrance.name == "wsgi":
        return
    usable: list[bool] = []

    def receive(**kwargs: Any) -> None:
        usable.append(Group.objects.count() == 0)
        # As if the server had let go of it: the age of the connection is over.
        connections["default"].close_at = time.monotonic() - 1

    closed: list[Any] = []
    before = connections["default"].__class__.close

    def close(self: Any) -> None:
        closed.append(self)
        before(self)

    with pytest.MonkeyPatch.context() as patch, connected(signal, receive):
        patch.setattr(connections["default"].__class__, "close", close)
        # There are several threads, of which one has its second call at last.
        while not closed and len(usable) < 50:
            caller.tool("aadd", a=1, b=2)
    assert all(usable)
    assert closed


@pytest.mark.parametrize("signal", [call_started, call_finished])
def test_an_asynchronous_receiver_runs_on_the_loop(entrance, caller, signal):
    loops: list[bool] = []

    async def receive(**kwargs: Any) -> None:
        await asyncio.sleep(0)
        loops.append(threading.current_thread() is threading.main_thread())

    with connected(signal, receive):
        assert caller.tool("aadd", a=1, b=2).result["isError"] is False
    assert len(loops) == 1
    assert loops == [True] or entrance.name == "wsgi"


@pytest.mark.parametrize("signal", [call_started, call_finished])
def test_a_slow_receiver_holds_up_neither_the_loop_nor_the_answer_of_an_ended_call(
    application, signal
):
    go_on = threading.Event()

    def slow(**kwargs: Any) -> None:
        assert go_on.wait(site.BOUND)

    async def main() -> bool:
        message, headers = modern("tools/call", name="aadd", arguments={"a": 1, "b": 2})
        scope = scope_of("/mcp", headers=[*{**HEADERS, **headers, **OWN}.items()])
        connection = Connection(application, scope, encoded(message))
        starting = asyncio.ensure_future(connection.start())
        # The loop goes on meanwhile, and so does the answer, once there is one.
        await asyncio.wait([starting], timeout=0.5 if signal is call_started else site.BOUND)
        was_answered = starting.done()
        go_on.set()
        await starting
        assert "result" in await connection.json()
        async with asyncio.timeout(site.BOUND):
            while are_being_told():
                await asyncio.sleep(0.01)
        return was_answered

    with connected(signal, slow):
        assert run(main()) is (signal is call_finished)


async def calling(application: Any, finished: list[CallInfo], member: Any = None) -> Connection:
    message, headers = modern("tools/call", name="wait", arguments={})
    scope = scope_of("/mcp", headers=[*{**HEADERS, **headers, **OWN}.items()])
    connection = Connection(application, scope, encoded(message))
    assert await asyncio.to_thread(site.seen.entered.acquire, timeout=site.BOUND)
    assert finished == []
    return connection


@pytest.mark.parametrize(
    ("reason", "outcome", "code"),
    [
        (StopReason.CANCELLED, "cancelled", -32800),
        (StopReason.SHUTTING_DOWN, "error", -32603),
        (StopReason.ACCESS_REVOKED, "error", -32600),
    ],
)
def test_a_call_that_is_ended_early_is_told_once_and_at_once(
    application, finished, reason, outcome, code
):
    async def main() -> None:
        connection = await calling(application, finished)
        (running,) = ledger().requests.running()
        running.stop(reason)
        await connection.start()
        await connection.read()
        await until(lambda: len(finished), 1)
        site.seen.go_on.set()
        # What the function returns now comes to the loop, and changes nothing.
        async with asyncio.timeout(site.BOUND):
            while pools().calls.turns.running or are_being_told():
                await asyncio.sleep(0.01)

    run(main())
    assert [(each.outcome, each.error_code) for each in finished] == [(outcome, code)]


def test_a_call_whose_client_has_gone_is_told(application, finished):
    async def main() -> None:
        connection = await calling(application, finished)
        await connection.close()
        await until(lambda: [each.outcome for each in finished], ["cancelled"])
        site.seen.go_on.set()

    run(main())


def test_a_request_that_the_server_cancels_is_told(application, finished, monkeypatch):
    """One that says nothing before its answer is run by the request itself."""

    reached = asyncio.Event()

    async def stuck(*args: Any) -> Any:
        reached.set()
        await asyncio.Event().wait()

    async def main() -> None:
        monkeypatch.setattr("django_mcp.running.running_call.finish", stuck)
        message, headers = modern("tools/list")
        scope = scope_of("/mcp", headers=[*{**HEADERS, **headers, **OWN}.items()])
        connection = Connection(application, scope, encoded(message))
        async with asyncio.timeout(site.BOUND):
            await reached.wait()
        connection._task.cancel()
        await until(lambda: [each.outcome for each in finished], ["cancelled"])

    run(main())
    assert finished[0].answer_bytes == 0


def test_a_call_lasts_as_long_as_its_client_listens(application, finished):
    async def main() -> None:
        message, headers = modern("subscriptions/listen", notifications={"toolsListChanged": True})
        scope = scope_of("/mcp", headers=[*{**HEADERS, **headers, **OWN}.items()])
        connection = Connection(application, scope, encoded(message))
        await connection.start()
        await connection.message()
        await asyncio.sleep(0.5)
        assert finished == []
        await connection.close()
        await until(lambda: len(finished), 1)

    run(main())
    (call,) = finished
    assert (call.method, call.outcome) == ("subscriptions/listen", "cancelled")
    assert call.duration > 0.5


def test_calls_of_a_session_that_ends_are_told(application, finished):
    async def main() -> None:
        client = await Client(application, **OWN).open()
        finished.clear()
        async with client.call("wait") as connection:
            assert await asyncio.to_thread(site.seen.entered.acquire, timeout=site.BOUND)
            await in_thread(lambda: end_sessions(Session.objects.all()))
            await connection.read()
        await until(lambda: [each.error_code for each in finished], [-32001])
        site.seen.go_on.set()

    run(main())


def test_an_observer_that_breaks_harms_nothing(caller, finished, caplog):
    class Broken:
        def __init__(self, *args: Any) -> None:
            pass

        def enter(self) -> None:
            pass

        def leave(self) -> None:
            raise RuntimeError("planted")

        finish = leave

    left: list[str] = []

    class Stuck(Broken):
        def enter(self) -> None:
            raise RuntimeError("stuck")

        def leave(self) -> None:
            left.append("stuck")

        def finish(self) -> None:
            raise AssertionError

    def unborn(*args: Any) -> Any:
        raise RuntimeError("unborn")

    call_observers.register(Broken)
    call_observers.register(Stuck)
    call_observers.register(unborn)
    caller.tool("add", a=1, b=2)
    call_observers.unregister(Broken)
    call_observers.unregister(unborn)
    call_observers.unregister(Stuck)
    assert left == ["stuck"]
    assert [each.outcome for each in finished] == ["ok"]
    assert caplog.text.count("could not be watched to its end") == 2
    assert "unborn" in caplog.text


def test_nothing_is_made_where_nobody_watches(caller, monkeypatch):
    def fail(*args: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("django_mcp.running.running_call.Observation", fail)
    logging.getLogger("django_mcp.calls").setLevel(logging.NOTSET)
    assert caller.tool("add", a=1, b=2).result["isError"] is False
