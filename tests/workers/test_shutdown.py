"""A process that is asked to stop, under each server that people use."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

import httpx
import pytest

from django_mcp.running.shutdown import LINGER_SECONDS, LONGEST_RETRY_SECONDS
from tests.support.client import Client, Server, StatelessClient, served
from tests.support.streams import StreamedAnswer

from .serving import Workers, serving

DOORS = ["mount", "asgi-view", "daphne", "gunicorn", "granian", "hypercorn"]
SYNCHRONOUS, ASYNCHRONOUS = ["mount", "asgi-view", "gunicorn"], ["mount", "daphne", "granian"]
BOUND = 30


@pytest.fixture(params=DOORS)
def hasty(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """A process that gives its calls no time worth mentioning, and another one."""
    with serving(request.param, "mount", SHUTDOWN="0.3") as served:
        yield served


@pytest.fixture(params=DOORS)
def patient(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """A process that lets its calls end."""
    with serving(request.param, "mount", SHUTDOWN="60") as served:
        yield served


def stop(workers: Workers, number: signal.Signals = signal.SIGTERM) -> None:
    workers.servers[0].process.send_signal(number)


async def has_stopped(workers: Workers) -> bool:
    """Return whether the process ends, in time."""
    process = workers.servers[0].process
    try:
        await asyncio.to_thread(process.wait, BOUND)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # its log says where its threads are
        await asyncio.to_thread(process.wait, BOUND)
        return False
    return True


async def session(workers: Workers, http: httpx.AsyncClient, **capabilities: Any) -> Client:
    return await Client(*served(workers.urls, http)).open(**capabilities)


async def reached(workers: Workers, name: str) -> None:
    async with asyncio.timeout(BOUND):
        while not workers.gates.reached(name):
            await asyncio.sleep(0.02)


async def stop_and_call(workers: Workers, client: Client) -> None:
    """Stop a process, and call on a connection that is open: it is served, until an answer says
    that it is the last on this connection.
    """
    is_last = False
    await late_call(client)
    stop(workers)
    begun = time.monotonic()
    while not is_last:
        try:
            is_last = await late_call(client)
        except httpx.TransportError:
            # Nobody called while the connection was open.
            assert time.monotonic() - begun > LINGER_SECONDS
            return


async def late_call(client: Client) -> bool:
    """Make a call; return whether its answer is the last on its connection."""
    async with client.call("work", id="late", value="late") as late:
        (message,) = await late.messages()
    assert (late.status, message["id"]) == (200, "late"), message
    assert message["result"]["content"][0]["text"] == "late"
    return bool(late.headers.get("connection") == "close")


async def rows_of(client: Client) -> Any:
    async with client.at(1).call("session_rows", secret=client.session_id) as rows:
        (found,) = await rows.messages()
    return found["result"]["structuredContent"]


@asynccontextmanager
async def three_calls(
    client: Client, tool: str, names: Sequence[str]
) -> AsyncIterator[tuple[AsyncExitStack, StreamedAnswer, asyncio.Task[Any], Any]]:
    """Make a call that has spoken, one that has not, and one whose client goes.

    Yield what closes their connections, and the answers of the three.
    """
    async with AsyncExitStack() as stack:
        async with client.call(tool, id=names[2], value=names[2], speaks=True) as leaving:
            await leaving.message()
        speaking = await stack.enter_async_context(
            client.call(tool, id=names[0], value=names[0], speaks=True)
        )
        await speaking.message()
        silent = asyncio.create_task(
            stack.enter_async_context(client.call(tool, id=names[1], value=names[1]))
        )
        yield stack, speaking, silent, leaving


def test_streams_end_so_that_their_clients_come_back(patient):
    """The legacy one resumably, the modern one with its result, and all without an error, though
    a call still runs.
    """

    async def main(http):
        client = await session(patient, http)
        modern = StatelessClient(Server(patient.urls[0], http))
        async with (
            client.at(0).listen() as own,
            modern.listen(id="me", toolsListChanged=True) as listening,
        ):
            assert (await own.event()).id
            begun = len(own.text)
            assert "acknowledged" in (await listening.message())["method"]
            call = asyncio.create_task(_answer_of(client.at(0).call("ahold", value="on")))
            await reached(patient, "on")
            stop(patient)
            assert await own.messages() == []
            rest = own.text[begun:].split("\n")
            (result,) = await listening.messages()
            assert not call.done()
            patient.gates.open("on")
            assert (await call)["result"]["content"][0]["text"] == "on"
        assert await has_stopped(patient)
        async with client.at(1).listen() as again:
            assert again.status == 200
        return rest, result

    rest, result = patient.run(main)
    assert [line for line in rest if line] == [f"retry: {LONGEST_RETRY_SECONDS * 1000:.0f}"]
    assert result["id"] == "me"
    assert result["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "me"


@pytest.mark.parametrize(
    ("patient", "tool"),
    [*((door, "hold") for door in SYNCHRONOUS), *((door, "ahold") for door in ASYNCHRONOUS)],
    indirect=["patient"],
)
def test_calls_that_run_may_end(patient, tool):
    """One that has spoken, one that has not, and one whose client has gone."""
    names = [uuid4().hex for _ in range(3)]

    async def main(http):
        client = await session(patient, http)
        here = client.at(0)
        async with three_calls(here, tool, names) as (_, speaking, silent, leaving):
            await reached(patient, names[1])
            await stop_and_call(patient, here)
            for name in names:
                patient.gates.open(name)
            spoken = await speaking.messages()
            unspoken = await (await silent).messages()
        assert await has_stopped(patient)
        async with client.at(1).listen(leaving.last_id) as again:
            left = await again.messages()
        return spoken[-1], unspoken[-1], left[-1], await rows_of(client)

    *ends, rows = patient.run(main)
    for name, end in zip(names, ends, strict=True):
        assert (end["id"], end["result"]["content"][0]["text"]) == (name, name)
    assert rows["open"] == rows["running"] == 0


@pytest.mark.parametrize("tool", ["ask", "aask"])
def test_a_question_is_answered_at_another_process(patient, tool):
    """Its answer reaches the call, which ends where it was made."""

    async def main(http):
        client = await session(patient, http, elicitation={})
        async with client.at(0).call(tool, id="asker", value="Who?") as answer:
            question = await answer.message()
            await stop_and_call(patient, client.at(0))
            result = {"action": "accept", "content": {"name": "Emma"}}
            assert await client.at(1).answer(question, result) == 202
            (end,) = await answer.messages()
        assert await has_stopped(patient)
        return end

    end = patient.run(main)
    assert (end["id"], end["result"]["content"][0]["text"]) == ("asker", "Who?: Emma")


@pytest.mark.parametrize("patient", ["mount", "daphne"], indirect=True)
def test_who_presses_ctrl_c_does_not_wait(patient):
    name = uuid4().hex

    async def main(http):
        client = await session(patient, http)
        async with client.at(0).call("stay", id=name, value=name, speaks=True) as answer:
            await answer.message()
            stop(patient, signal.SIGINT)
            (error,) = await answer.messages()
        assert await has_stopped(patient)
        return error

    error = patient.run(main)
    assert (error["id"], error["error"]["code"]) == (name, -32603)


@pytest.mark.parametrize(
    ("hasty", "tool"),
    [*((door, "stay") for door in SYNCHRONOUS), *((door, "ahold") for door in ASYNCHRONOUS)],
    indirect=["hasty"],
)
def test_calls_that_take_too_long_end_at_once_with_an_error_of_their_id(hasty, tool):
    """Also where a synchronous function goes on: nobody waits for the thread."""
    names = [uuid4().hex for _ in range(4)]

    async def main(http):
        client = await session(hasty, http)
        here, modern = client.at(0), StatelessClient(Server(hasty.urls[0], http))
        async with three_calls(here, tool, names) as (stack, speaking, silent, leaving):
            arguments = {"value": names[3]}
            stateless = asyncio.create_task(
                stack.enter_async_context(
                    modern.post("tools/call", id=names[3], name=tool, arguments=arguments)
                )
            )
            await reached(hasty, names[1])
            await reached(hasty, names[3])
            stop(hasty)
            spoken = await speaking.messages()
            unspoken = await (await silent).messages()
            modern_end = await (await stateless).messages()
        assert await has_stopped(hasty)
        async with client.at(1).listen(leaving.last_id) as again:
            left = await again.messages()
        return spoken[-1], unspoken[-1], left[-1], modern_end[-1], await rows_of(client)

    *ends, rows = hasty.run(main)
    for name, end in zip(names, ends, strict=True):
        assert (end["id"], end["error"]["code"]) == (name, -32603)
        assert "unknown" in end["error"]["message"]
    assert set(rows["requests"]) == {"failed"}
    assert rows["open"] == 0


@pytest.mark.parametrize("patient", ["mount", "daphne"], indirect=True)
def test_the_second_signal_is_in_a_hurry(patient):
    name = uuid4().hex

    async def main(http):
        client = await session(patient, http)
        async with client.at(0).call("ahold", id=name, value=name, speaks=True) as answer:
            await answer.message()
            stop(patient)
            await asyncio.sleep(0.5)
            assert patient.servers[0].process.poll() is None
            stop(patient)
        return await has_stopped(patient)

    assert patient.run(main)


# Under WSGI the server alone is asked to stop: there is no loop that could tell its calls.


@pytest.fixture
def threaded(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """A process of gunicorn's with threads, and another one that settles what it leaves."""
    arguments = f"--graceful-timeout {request.param}"
    with serving("wsgi", "mount", GUNICORN_CMD_ARGS=arguments, LEASE="2") as served:
        yield served


async def answers_nobody_else(workers: Workers) -> None:
    """Wait until new connections are not served. What is slow may be taken for that: no harm."""
    async with asyncio.timeout(BOUND), httpx.AsyncClient(timeout=3) as other:
        with suppress(httpx.TransportError):
            while True:
                await other.options(workers.urls[0], headers={"Connection": "close"})


async def takes_nobody(workers: Workers) -> None:
    """Wait until connections are refused; until then each is served."""
    async with asyncio.timeout(BOUND), httpx.AsyncClient() as other:
        while True:
            try:
                await other.options(workers.urls[0], headers={"Connection": "close"})
            except httpx.ConnectError:
                return
            await asyncio.sleep(0.1)


async def rows_become(client: Client, **expected: Any) -> None:
    async with asyncio.timeout(BOUND):
        while True:
            rows = await rows_of(client)
            if {name: rows[name] for name in expected} == expected:
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("threaded", [60], indirect=True)
def test_under_wsgi_the_server_lets_calls_end(threaded):
    name = uuid4().hex

    async def main(http):
        client = await session(threaded, http)
        call = asyncio.create_task(_answer_of(client.at(0).call("hold", id=name, value=name)))
        await reached(threaded, name)
        stop(threaded)
        await answers_nobody_else(threaded)
        threaded.gates.open(name)
        result = await call
        assert await has_stopped(threaded)
        return result, await rows_of(client)

    result, rows = threaded.run(main)
    assert (result["id"], result["result"]["content"][0]["text"]) == (name, name)
    assert rows["running"] == 0


@pytest.mark.parametrize("threaded", [1], indirect=True)
def test_under_wsgi_a_call_that_takes_too_long_is_killed_and_settled_by_others(threaded):
    name = uuid4().hex

    async def main(http):
        client = await session(threaded, http)
        call = asyncio.create_task(_answer_of(client.at(0).call("stay", id=name, value=name)))
        await reached(threaded, name)
        await rows_become(client, running=1)
        stop(threaded)
        with pytest.raises(httpx.TransportError):
            await call
        assert await has_stopped(threaded)
        await rows_become(client, requests=["failed"])

    threaded.run(main)


def test_with_our_settings_gunicorn_tells_calls_to_end():
    """And takes no more connections, so that nobody waits for an answer that never comes."""
    name = uuid4().hex

    async def main(http):
        client = await session(hooked, http)
        call = asyncio.create_task(
            _answer_of(client.at(0).call("hold", id=name, value=name, speaks=True))
        )
        await reached(hooked, name)
        stop(hooked)
        await takes_nobody(hooked)
        error = await call
        assert await has_stopped(hooked)
        return error

    with serving("wsgi-hook", "mount", SHUTDOWN="3") as hooked:
        error = hooked.run(main)
    assert (error["id"], error["error"]["code"]) == (name, -32603)
    assert "unknown" in error["error"]["message"]


def test_with_its_hooks_a_worker_with_streams_ends_them_and_waits_for_who_comes_back():
    """A listen ends with its result at once; a call goes on whose client has lost its stream."""
    name = uuid4().hex

    async def main(http):
        client = await session(streaming, http)
        modern = StatelessClient(Server(streaming.urls[0], http))
        async with modern.listen(toolsListChanged=True) as listening:
            await listening.message()
            async with client.at(0).call("hold", id=name, value=name, speaks=True) as call:
                await call.message()
            await reached(streaming, name)
            stop(streaming)
            *_, ended = await listening.messages()
        await takes_nobody(streaming)
        # Without the hook it would end once it sees, by a comment, that the client has gone.
        for _ in range(240):
            assert streaming.servers[0].process.poll() is None
            await asyncio.sleep(0.05)
        streaming.gates.open(name)
        async with client.at(1).listen(call.last_id) as resumed:
            *_, answer = await resumed.messages()
        assert await has_stopped(streaming)
        return ended, answer

    with serving("wsgi-streams", "mount", SHUTDOWN="60", LEASE="120") as streaming:
        ended, answer = streaming.run(main)
    assert "error" not in ended
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (name, name)


async def _answer_of(sending: Any) -> Any:
    async with sending as answer:
        *_, message = await answer.messages()
    return message
