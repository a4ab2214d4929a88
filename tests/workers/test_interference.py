"""Requests of one session at several workers: none undoes what another one has done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from tests.support.client import Client, Server, StatelessClient, served

from .serving import Workers, serving
from .test_concurrency import ask_in_parallel, hold, last_of
from .test_queue import stream_of

HEARD = 15
"""Seconds after which what has not been heard by then is missing."""
WRITTEN_SECONDS = 12
"""Seconds after which use is missing that is not written yet: the workers take turns, and write it
after a second each.
"""

WRITTEN = {
    "session": [
        {"state"},
        {"state", "ended", "client_info", "client_capabilities"},
        {"log_level"},
        {"last_active", "used_hour", "request_count"},
        {"request_count"},
    ],
    "stream": [
        {"next_seq"},
        {"next_seq", "closed"},
        {"next_seq", "changes_seen"},
        {"next_seq", "changes_seen", "delivered"},
        {"delivered"},
        {"trimmed"},
        {"closed", "trimmed"},
        {"cleared"},
        {"epoch"},
        {"reader"},
        {"epoch", "reader"},
    ],
    "pendingrequest": [
        {"state", "ended"},
        {"state", "ended", "answer"},
        {"answer"},
        {"cancel_requested"},
        {"lease_until"},
    ],
    "changecounter": [{"serial"}],
    "claim": [{"owner", "until"}],
}
"""What each UPDATE is there to change, by table. One that names more overwrites somebody else."""


# Under WSGI no session has a stream of its own, which these tests hear or look at.
with_get_streams = pytest.mark.parametrize("workers", ["polling", "core", "pubsub"], indirect=True)


@pytest.fixture(scope="module")
def pausing() -> Iterator[Workers]:
    """Two workers that wait at a gate between storing a held call's response and showing it."""
    with serving(PLANT="pauses") as served:
        yield served


@pytest.mark.parametrize("tool", ["hold", "ahold"])
@pytest.mark.parametrize("resumed", [False, True])
def test_a_response_that_is_stored_and_not_yet_read_survives_other_requests(pausing, tool, resumed):
    """They begin and end in between, at the worker of the call and at the other one."""
    assert stored_and_read(pausing, tool, resumed=resumed) == ["after", "response"]


def stored_and_read(workers: Workers, tool: str, *, resumed: bool) -> list[str]:
    """Make a call whose response is read after other requests; return what is read of it."""
    name = f"{tool}-{uuid4().hex}"

    async def main(http):
        client = await Client(*served(workers.urls, http)).open()
        here, elsewhere = client.at(0), client.at(1)
        async with here.call(tool, id=name, value=name, speaks=True) as answer:
            assert (await answer.message())["params"]["data"] == f"{name}/before"
            workers.gates.open(name)
            await workers.gates.until_reached(f"stored-{name}")
            assert await ask_in_parallel(elsewhere, list(range(8))) == []
            assert "result" in await last_of(here.call("work", value="x"))
            async with elsewhere.listen() as own:
                await stream_of(own)
            if not resumed:
                workers.gates.open(f"stored-{name}")
                return await answer.messages()
        # The process that made the call is still held: all comes from the rows.
        async with elsewhere.listen(answer.last_id) as again:
            found = await again.messages()
        workers.gates.open(f"stored-{name}")
        return found

    def describe(message: Any) -> str:
        if "method" in message:
            return str(message["params"]["data"].removeprefix(f"{name}/"))
        assert (message["id"], message["result"]["content"][0]["text"]) == (name, name)
        return "response"

    return [describe(message) for message in workers.run(main)]


@with_get_streams
@pytest.mark.parametrize("tool", ["hold", "ahold"])
def test_what_is_set_while_a_call_runs_elsewhere_is_there_when_it_has_ended(workers, tool):
    assert set_and_found(workers, tool) == (0, ["thing://1"])


def set_and_found(workers: Workers, tool: str) -> tuple[int, list[str]]:
    """Set a log level and subscribe beside a call; return what is logged and told afterwards."""

    async def main(http):
        client = await Client(*served(workers.urls, http)).open()
        here, elsewhere = client.at(0), client.at(1)
        ((name, call),) = (await hold(workers, here, [tool], speaks=True)).items()
        await used(workers, http, client, running=1)
        assert "result" in await last_of(elsewhere.post("logging/setLevel", level="error"))
        assert "result" in await last_of(elsewhere.post("resources/subscribe", uri="thing://1"))
        workers.gates.open(name)
        assert (await call)["id"] == name
        await used(workers, http, client)
        logged = 0
        for each in (here, elsewhere):
            async with each.call("speak", value="x") as answer:
                logged += len(await answer.messages()) - 1
        async with here.listen() as own:
            await stream_of(own)
            await StatelessClient(Server(workers.urls[1], http)).value("change_things", count=3)
            told = []
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARD):
                    told.append((await own.message())["params"]["uri"])
        return logged, told

    return workers.run(main)


@with_get_streams
def test_no_update_names_a_column_that_it_does_not_change(workers):
    """Of whatever the workers have done so far, and of everything that writes at least once."""

    async def main(http):
        client = await Client(*served(workers.urls, http)).open(elicitation={})
        await last_of(client.post("logging/setLevel", level="debug"))
        await last_of(client.post("resources/subscribe", uri="thing://0"))
        async with client.listen() as own:
            stream = await stream_of(own)
            await StatelessClient(Server(workers.urls[0], http)).value("change_things", count=1)
            await StatelessClient(Server(workers.urls[0], http)).value(
                "put", stream=stream, data="x"
            )
            assert [await own.message() for _ in range(2)]
        assert await ask_in_parallel(client, list(range(8))) == []
        async with client.call("ask", value="x") as answer:
            question = await answer.message()
            content = {"action": "accept", "content": {"name": "y"}}
            await client.answer(question, content)
            assert "result" in await answer.message()
        (name, call), (_, other) = (
            await hold(workers, client, ["hold", "ahold"], speaks=True)
        ).items()
        await client.cancel(name)
        assert (await call)["error"]["code"] == -32800
        async with client.request("DELETE"):
            assert (await other)["error"]["code"] == -32001

    workers.run(main)
    assert written_in_excess(workers) == []


def written_in_excess(workers: Workers) -> list[list[str]]:
    """Return each UPDATE, of all that were made, that names more than it is there to change."""

    async def main(http):
        found = [await StatelessClient(Server(url, http)).value("updates") for url in workers.urls]
        return [update for each in found for update in each["updates"]]

    updates = workers.run(main)
    seen = {(table.removeprefix("django_mcp_"), frozenset(rest)) for table, *rest in updates}
    needed = {(table, frozenset(each)) for table in WRITTEN for each in WRITTEN[table]}
    assert seen & needed  # or the record is not what it seems
    return sorted([table, *sorted(columns)] for table, columns in seen - needed)


@with_get_streams
@pytest.mark.parametrize("tool", ["hold", "ahold"])
def test_what_was_heard_while_a_call_ran_is_not_heard_again_when_it_has_ended(workers, tool):

    async def main(http):
        client = await Client(*served(workers.urls, http)).open()
        here, elsewhere = client.at(0), client.at(1)
        ((name, call),) = (await hold(workers, here, [tool], speaks=True)).items()
        async with elsewhere.listen() as own:
            stream = await stream_of(own)
            put = StatelessClient(Server(workers.urls[0], http))
            await put.value("put", stream=stream, data="first")
            assert (await own.message())["params"]["data"] == "first"
        workers.gates.open(name)
        assert (await call)["id"] == name
        heard = []
        for each, data in ((here, "second"), (elsewhere, "third")):
            async with each.listen() as own:
                await stream_of(own)
                await put.value("put", stream=stream, data=data)
                heard.append((await own.message())["params"]["data"])
        return heard

    assert workers.run(main) == ["second", "third"]


def test_all_that_is_counted_is_exact(workers):
    """Whether calls return, raise, or lose their clients, before their first word or after."""
    sent, rows = count(workers)
    assert rows["request_count"] == sent
    assert (rows["running"], rows["open"]) == (0, 0)
    assert [each for each in rows["streams"] if each[0] - 1 != each[1] or each[1] != each[2]] == []
    # Of 80 calls at least those that have spoken and lasted: 16 say three words, 4 stumble.
    assert len(rows["streams"]) >= 20


def count(workers: Workers) -> tuple[int, dict[str, Any]]:
    """Make calls of all kinds at once; return how many requests were sent, and what rows say."""

    async def main(http):
        client = await Client(*served(workers.urls, http)).open()
        # Each worker writes of the session before: one that keeps it in memory has it from now on.
        await used(workers, http, client)
        ended = ["work", "awork", "fail"] * 8
        spoken = ["speak", "speak", "aspeak", "aspeak", "stumble"]
        calls = [last_of(client.call(tool, value="x")) for tool in ended]
        calls += [
            last_of(client.call(tool, value="x", lasts=lasts))
            for tool in spoken
            for lasts in [False, True] * 4
        ]
        left = [
            leave(workers, client, tool, speaks=speaks)
            for tool in ("hold", "ahold")
            for speaks in [False, True] * 4
        ]
        answers = (await asyncio.gather(*calls, *left))[: len(calls)]
        raised = [answer for answer in answers if answer["result"].get("isError")]
        assert len(raised) == 16
        return await used(workers, http, client)

    return workers.run(main)


async def leave(workers: Workers, client: Client, tool: str, *, speaks: bool) -> None:
    """Make a call, let go of the connection while it runs, and let the call end after that."""
    name = f"{tool}-{uuid4().hex}"
    call = asyncio.create_task(last_of(client.call(tool, id=name, value=name, speaks=speaks)))
    await workers.gates.until_reached(name)
    call.cancel()
    await asyncio.wait([call])
    workers.gates.open(name)


async def used(
    workers: Workers, http: Any, client: Client, *, running: int = 0
) -> tuple[int, dict[str, Any]]:
    """Return how many requests were sent and what the rows say, once all has been written.

    What is counted is written in batches: a last request at each worker comes after all others.
    """
    for worker in range(len(workers.urls)):
        await last_of(client.at(worker).post("ping"))
    rows: dict[str, Any] = {}
    # In vain, if they are wrong: the test says so.
    with suppress(TimeoutError):
        async with asyncio.timeout(WRITTEN_SECONDS):
            while rows.get("running") != running or rows["request_count"] < client.sent:
                asking = StatelessClient(Server(workers.urls[0], http))
                rows = await asking.value("session_rows", secret=client.session_id)
    return client.sent, rows
