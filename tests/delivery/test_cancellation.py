"""Calls that are told to end: by their client, by a time-out, by a connection that goes."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from django.core.asgi import get_asgi_application

from django_mcp import Context
from django_mcp.asgi import mount
from django_mcp.models import PendingRequest
from django_mcp.protocol.lifecycle import SessionInfo
from django_mcp.store import inbox
from django_mcp.store.inbox import cancel_calls
from django_mcp.store.ledger import ledger
from tests.support.asgi import HEADERS, scope_of
from tests.support.caller import Caller
from tests.support.client import Client
from tests.support.entrances import open_entrance
from tests.support.messages import modern
from tests.support.waiting import in_thread, until

from . import site

WAITING = ["speak_and_wait", "wait", "await_"]


@site.server.tool
def watch(ctx: Context, says: bool) -> None:
    """Look out for the end, in synchronous code."""
    if says:
        ctx.log("info", "looking")
    site.gates.entered["watch"].release()
    end = time.monotonic() + site.BOUND
    while not ctx.cancelled:
        assert time.monotonic() < end
        time.sleep(0.01)
    site.gates.left.append("watch")


def cancel(request_id, reason="enough"):
    params = {"requestId": request_id, "reason": reason}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


@pytest.mark.parametrize("request_id", [1, "1", 0, ""], ids=repr)
@pytest.mark.parametrize("tool", WAITING)
def test_a_cancelled_call_ends_with_an_error_of_its_id(application, on_loop, tool, request_id):

    async def main():
        client = await Client(application).open()

        async def call():
            async with client.call(tool, id=request_id) as connection:
                if connection.is_stream:
                    return (await connection.messages())[-1]
                return await connection.json()

        calling = asyncio.create_task(call())
        await site.gates.reached()
        assert await client.send(cancel(request_id)) == 202
        answer = await asyncio.wait_for(calling, 20)
        site.gates.open()
        return answer

    answer = on_loop(main())
    assert (answer["id"], type(answer["id"])) == (request_id, type(request_id))
    assert answer["error"]["code"] == -32800


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_whoever_cancels_a_call_in_the_admin_ends_it(application, on_loop, revision):
    """It ends at the worker that runs it, and its client hears of it under the call's own id."""

    async def main():
        if revision == "2026-07-28":
            message, headers = modern("tools/call", name="await_", arguments={})
            call = Client(application).request("POST", message, **_named(headers))
        else:
            call = (await Client(application).open()).call("await_", id=1)
        calling = asyncio.create_task(_last(call))
        await site.gates.reached()
        await until(PendingRequest.objects.count, 1)
        assert await in_thread(cancel_calls, PendingRequest.objects.all()) == 1
        answer = await asyncio.wait_for(calling, 20)
        assert site.gates.left == [""]
        return answer

    answer = on_loop(main())
    assert (answer["id"], answer["error"]["code"]) == (1, -32800)


@site.server.tool
def speak_on(ctx: Context) -> None:
    """Say something, wait, say something else and go on."""
    ctx.log("info", "before")
    site.gates.wait("on")
    try:
        ctx.log("info", "after")
        site.gates.left.append("goes on")
    finally:
        site.gates.left.append("ends")


def test_cancelled_code_stops_at_its_next_word(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.call("speak_on", id=1) as connection:
            await connection.message()
            await client.send(cancel(1))
            (last,) = await connection.messages()
        site.gates.open("on")
        await until(lambda: bool(site.gates.left), True)
        assert site.gates.left == ["ends"]
        return last

    assert on_loop(main())["error"]["code"] == -32800


def test_cancelled_asynchronous_code_is_cancelled(application, on_loop):
    async def main():
        client = await Client(application).open()
        calling = asyncio.create_task(_json(client.call("await_", id=1)))
        await site.gates.reached()
        await client.send(cancel(1))
        assert (await calling)["error"]["code"] == -32800
        await until(lambda: site.gates.left, [""])

    on_loop(main())


@pytest.mark.parametrize("request_id", [99, "1", True, None, {}, 1.5], ids=repr)
def test_what_names_no_call_is_ignored(application, on_loop, request_id):
    async def main():
        client = await Client(application).open()
        async with client.call("speak_and_wait", id=1) as connection:
            await connection.message()
            assert await client.send(cancel(request_id)) == 202
            assert await connection.is_silent()
            site.gates.open()
            return await connection.messages()

    assert on_loop(main())[-1]["result"]


def test_the_newest_call_with_the_id_is_cancelled(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.call("speak_and_wait", id=1, gate="old") as old:
            await old.message()
            async with client.call("speak_and_wait", id=1, gate="new") as new:
                await new.message()
                await client.send(cancel(1))
                (cancelled,) = await new.messages()
            site.gates.open("old")
            site.gates.open("new")
            return cancelled, (await old.messages())[-1]

    cancelled, unharmed = on_loop(main())
    assert cancelled["error"]["code"] == -32800
    assert unharmed["result"]


def test_another_session_cancels_nothing(application, on_loop):
    async def main():
        one, other = await Client(application).open(), await Client(application).open()
        async with one.call("speak_and_wait", id=1) as connection:
            await connection.message()
            await other.send(cancel(1))
            assert await connection.is_silent()
            site.gates.open()
            return (await connection.messages())[-1]

    assert on_loop(main())["result"]


@pytest.mark.parametrize("tool", ["question", "aquestion"])
def test_a_call_that_waits_for_an_answer_is_cancelled_with_its_question(application, on_loop, tool):
    async def main():
        client = await Client(application).open(elicitation={})
        async with client.call(tool, id=1) as connection:
            question = await connection.message()
            await client.send(cancel(1))
            *taken_back, last = await connection.messages()
            assert [each["params"]["requestId"] for each in taken_back] == [question["id"]]
        running = PendingRequest.objects.filter(state="running")
        await until(running.count, 0)
        return last

    assert on_loop(main())["error"]["code"] == -32800


def test_a_cancellation_that_overtakes_the_call_is_not_lost(application, on_loop):
    """It leaves word, and the call finds it when it becomes a row."""

    async def main():
        client = await Client(application).open()
        calling = asyncio.create_task(_last(client.call("steps", id=1, gate="each", count=2)))
        await site.gates.reached("each")
        session = next(iter(ledger().requests.running())).session_id
        known: SessionInfo = type("Known", (), {"id": session})()
        # As another worker does it, which does not know the call.
        assert await in_thread(inbox._cancel, "delivery", known, "1", "", True) is None
        site.gates.open("each")
        answer = await calling
        site.gates.open("each")
        return answer

    assert on_loop(main())["error"]["code"] == -32800


def test_under_wsgi_a_cancellation_that_overtakes_the_call_is_not_lost(
    application, on_loop, settings
):
    def become_long_after(seconds: float) -> None:
        settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STREAM_AFTER_SECONDS": seconds}

    async def main():
        become_long_after(3600)
        client = await Client(application).open()
        caller = Caller(open_entrance("wsgi")).in_session(client.session_id)
        calling = asyncio.create_task(in_thread(lambda: caller.tool("watch", says=False)))
        await site.gates.reached("watch")
        session = next(iter(ledger().requests.running())).session_id
        known: SessionInfo = type("Known", (), {"id": session})()
        assert await in_thread(inbox._cancel, "delivery", known, "1", "", True) is None
        become_long_after(0.001)
        return await calling

    assert on_loop(main()).json()["error"]["code"] == -32800


@pytest.mark.parametrize("tool", ["speak_and_wait", "wait", "await_"])
def test_in_the_modern_era_a_connection_that_goes_is_the_cancellation(application, on_loop, tool):

    async def main():
        message, headers = modern("tools/call", name=tool, arguments={"gate": "modern"})
        message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info"
        client = Client(application)
        if tool == "speak_and_wait":
            async with client.request("POST", message, **_named(headers)) as connection:
                await connection.message()
        else:
            going = asyncio.create_task(_enter(client.request("POST", message, **_named(headers))))
            await site.gates.reached("modern")
            going.cancel()
            await asyncio.wait([going])
        if tool != "await_":
            site.gates.open("modern")
        if tool != "wait":
            await until(lambda: site.gates.left, ["modern"])

    on_loop(main())
    assert not PendingRequest.objects.exists()


@pytest.mark.parametrize("says", [True, False])
def test_in_the_modern_era_synchronous_code_sees_that_the_connection_went(
    application, on_loop, says
):
    async def main():
        message, headers = watching(says=says)

        async def enter():
            async with Client(application).request("POST", message, **headers) as connection:
                await connection.message()

        going = asyncio.create_task(enter())
        await site.gates.reached("watch")
        if says:
            await going
        else:
            going.cancel()
            await asyncio.wait([going])
        await until(lambda: site.gates.left, ["watch"])

    on_loop(main())


def test_a_connection_that_goes_before_the_first_event_is_the_cancellation_as_well(on_loop):
    """As it is told by a server that cancels the application."""
    started = asyncio.Event()

    async def main():
        message, headers = watching(says=True)
        body = [{"type": "http.request", "body": json.dumps(message).encode()}]
        given = {**HEADERS, **{k.replace("_", "-"): v for k, v in headers.items()}}

        async def receive():
            return body.pop() if body else await asyncio.Event().wait()

        async def send(event):
            started.set()
            await asyncio.Event().wait()

        scope = scope_of("/mcp", headers=given.items())
        serving = asyncio.create_task(mount(get_asgi_application())(scope, receive, send))
        await started.wait()
        serving.cancel()
        await asyncio.wait([serving])
        await until(lambda: site.gates.left, ["watch"])

    on_loop(main())


def watching(*, says):
    message, headers = modern("tools/call", name="watch", arguments={"says": says})
    message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info"
    return message, _named(headers)


def _named(headers):
    return {name.replace("-", "_"): value for name, value in headers.items()}


async def _enter(context):
    async with context:
        pass


async def _json(context):
    async with context as connection:
        return await connection.json()


async def _last(context):
    async with context as connection:
        return (
            (await connection.messages())[-1] if connection.is_stream else (await connection.json())
        )


@pytest.mark.parametrize("tool", ["wait", "await_"])
def test_who_takes_no_stream_and_goes_cancels_nothing_in_a_session(application, on_loop, tool):
    """There is nothing to come back to; the function goes on to its end all the same."""

    async def main():
        client = await Client(application, Accept="application/json").open()
        starting = client.call(tool, id="gone")
        entering = asyncio.ensure_future(starting.__aenter__())
        await site.gates.reached()
        entering.cancel()
        await asyncio.wait([entering])
        site.gates.open()
        await until(lambda: not ledger().requests, True)

    on_loop(main())
    assert set(PendingRequest.objects.values_list("state", flat=True)) <= {"answered"}


@pytest.mark.parametrize("tool", ["await_"])
def test_without_a_session_it_cancels_there_too(application, on_loop, tool):
    """In revision 2026-07-28, too."""

    async def main():
        message, headers = modern("tools/call", name=tool, arguments={"gate": "left"})
        given = {name.replace("-", "_"): value for name, value in headers.items()}
        client = Client(application, Accept="application/json")
        starting = client.request("POST", message, **given)
        entering = asyncio.ensure_future(starting.__aenter__())
        await site.gates.reached("left")
        entering.cancel()
        await asyncio.wait([entering])
        await until(lambda: site.gates.left, ["left"])

    on_loop(main())
