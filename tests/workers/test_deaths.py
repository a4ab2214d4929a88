"""Processes that die, or stand still, while calls run there."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from django_mcp.http.event_stream import RETRY_MS
from tests.support.client import Client, served
from tests.support.streams import StreamedAnswer

from .serving import Workers, serving

LEASE = "3"
"""Seconds: enough for a busy machine to renew it, and short enough to wait for."""


@pytest.fixture(params=["mount", "wsgi-streams"])
def mortals(request: pytest.FixtureRequest) -> Iterator[Workers]:
    """Two workers that may be killed, with a loop or with threads."""
    with serving(request.param, request.param, LEASE=LEASE) as served:
        yield served


def signal_to(workers: Workers, worker: int, number: signal.Signals) -> None:
    """Send a signal to a server: first to its parent process, which would replace the others."""
    process = workers.servers[worker].process
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    children = listed.read_text().split() if listed.exists() else []
    process.send_signal(number)
    for child in children:
        os.kill(int(child), number)


async def session(workers: Workers, http: httpx.AsyncClient, **capabilities: Any) -> Client:
    return await Client(*served(workers.urls, http)).open(**capabilities)


async def all_that_comes(answer: StreamedAnswer) -> list[Any]:
    """Return the rest of a stream, which may break off."""
    found = []
    with suppress(httpx.TransportError):
        async for message in answer:
            found.append(message)
    return found


@pytest.mark.parametrize("tool", ["hold", "ahold"])
def test_the_call_of_a_killed_process_ends_with_an_error_of_its_id(mortals, tool):
    """Whoever comes back to its stream, at whatever worker, hears of its end."""
    name = uuid4().hex

    async def main(http):
        client = await session(mortals, http)
        async with client.at(0).call(tool, id=name, value=name, speaks=True) as answer:
            await answer.message()
            signal_to(mortals, 0, signal.SIGKILL)
            assert await all_that_comes(answer) == []
        other = client.at(1)
        async with other.listen(answer.last_id) as again:
            (error,) = await again.messages()
        # The session lives on, and its other requests with it.
        async with other.call("work", value="next") as following:
            (result,) = await following.messages()
        return error, result

    error, result = mortals.run(main)
    assert (error["id"], error["error"]["code"]) == (name, -32603)
    assert "unknown" in error["error"]["message"]
    assert result["result"]["content"][0]["text"] == "next"


def test_with_the_default_lease_its_client_knows_within_twenty_seconds():
    """Who comes back after a second, to a process that had nothing to do before."""
    name = uuid4().hex

    async def main(http):
        client = await session(mortals, http)
        async with client.at(0).call("ahold", id=name, value=name, speaks=True) as answer:
            await answer.message()
            signal_to(mortals, 0, signal.SIGKILL)
            killed = time.monotonic()
            await all_that_comes(answer)
        await asyncio.sleep(RETRY_MS / 1000)
        async with client.at(1).listen(answer.last_id) as again:
            (error,) = await again.messages()
        return error, time.monotonic() - killed

    with serving() as mortals:
        error, seconds = mortals.run(main)
    assert (error["id"], error["error"]["code"]) == (name, -32603)
    assert seconds < 20


def test_the_question_of_a_killed_process_ends_with_its_call(mortals):
    """The answer that its client gives afterwards is taken, and reaches nobody."""

    async def main(http):
        client = await session(mortals, http, elicitation={})
        async with client.at(0).call("ask", id=1, value="who?") as answer:
            question = await answer.message()
            signal_to(mortals, 0, signal.SIGKILL)
            assert await all_that_comes(answer) == []
        other = client.at(1)
        async with other.listen(answer.last_id) as again:
            (error,) = await again.messages()
        given = {"action": "accept", "content": {"name": "Ada"}}
        assert await other.answer(question, given) == 202
        async with other.call("session_rows", secret=client.session_id) as rows:
            (found,) = await rows.messages()
        return error, found["result"]["structuredContent"]

    error, rows = mortals.run(main)
    assert (error["id"], error["error"]["code"]) == (1, -32603)
    assert sorted(rows["requests"]) == ["cancelled", "failed"]
    assert rows["open"] == 0


@pytest.mark.parametrize("tool", ["hold", "ahold"])
def test_a_process_that_stood_still_too_long_has_nothing_more_to_say(mortals, tool):
    """Its call was settled meanwhile, and its client told so."""
    name = uuid4().hex

    async def main(http):
        client = await session(mortals, http)
        async with client.at(0).call(tool, id=name, value=name, speaks=True) as answer:
            await answer.message()
            signal_to(mortals, 0, signal.SIGSTOP)
            try:
                async with client.at(1).listen(answer.last_id) as again:
                    (told_elsewhere,) = await again.messages()
            finally:
                mortals.gates.open(name)  # for its function to end as soon as it goes on
                signal_to(mortals, 0, signal.SIGCONT)
            told_here = await all_that_comes(answer)
        async with client.at(0).call("session_rows", secret=client.session_id) as rows:
            (found,) = await rows.messages()
        return told_elsewhere, told_here, found["result"]["structuredContent"]

    told_elsewhere, told_here, rows = mortals.run(main)
    assert (told_elsewhere["id"], told_elsewhere["error"]["code"]) == (name, -32603)
    # On its own connection, which is still there, it can say only what the rows say.
    assert told_here in ([], [told_elsewhere])
    assert rows["requests"] == ["failed"]
    ((following, count, last),) = rows["streams"]
    assert (following, count, last) == (3, 2, 2)


def test_what_stands_still_for_less_than_a_lease_goes_on(mortals):
    name = uuid4().hex

    async def main(http):
        client = await session(mortals, http)
        async with client.at(0).call("hold", id=name, value=name, speaks=True) as answer:
            await answer.message()
            signal_to(mortals, 0, signal.SIGSTOP)
            await asyncio.sleep(float(LEASE) / 3)
            signal_to(mortals, 0, signal.SIGCONT)
            mortals.gates.open(name)
            return await all_that_comes(answer)

    *_, response = mortals.run(main)
    assert response["result"]["content"][0]["text"] == name
