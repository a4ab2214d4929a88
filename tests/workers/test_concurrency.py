"""Concurrent requests of one session at several workers."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any
from uuid import uuid4

import pytest

from tests.support.client import Client, served
from tests.support.messages import INITIALIZED, response

from .serving import BOUND, Workers

PARALLEL = 8
TOOLS = ["work", "awork", "speak", "aspeak"]


async def ask_in_parallel(client: Client, ids: list[object]) -> list[str]:
    """Make calls at once; return what is wrong with their answers."""

    async def one(request_id: object) -> str | None:
        value = f"{json.dumps(request_id)}-{random.random()}"
        tool = random.choice(TOOLS)
        async with client.call(tool, id=request_id, value=value, seconds=0.02) as answer:
            *said, last = await answer.messages() or [None]
        if answer.status != 200 or not isinstance(last, dict):
            return f"{value}: {answer.status} {last}"
        if any(not each["params"]["data"].startswith(f"{value}/") for each in said):
            return f"{value}: another call's words, {said}"
        text = last.get("result", {}).get("content", [{}])[0].get("text")
        if text != value or last["id"] != request_id or type(last["id"]) is not type(request_id):
            return f"{value}: {last}"
        return None

    return [each for each in await asyncio.gather(*map(one, ids)) if each is not None]


def count_wrong(
    workers: Workers, *, sessions: int, rounds: int, seconds: float = BOUND
) -> tuple[int, list[str]]:
    """Return how many calls were made and what was wrong with any."""

    async def session(http: object) -> list[str]:
        client = await Client(*served(workers.urls, http)).open()
        wrong = []
        for _ in range(rounds):
            wrong += await ask_in_parallel(client, list(range(1, PARALLEL + 1)))
        return wrong

    async def main(http: object) -> list[str]:
        async with asyncio.timeout(seconds):
            found = await asyncio.gather(*(session(http) for _ in range(sessions)))
        return [each for wrong in found for each in wrong]

    return sessions * rounds * PARALLEL, workers.run(main)


def test_each_call_gets_its_own_answer(workers):
    number, wrong = count_wrong(workers, sessions=16, rounds=20 if workers.is_thorough else 4)
    print(f"{len(wrong)} of {number} answers lost, doubled or misrouted")
    assert wrong == []


def test_a_burst_right_after_initialize_is_served(workers):
    """Nothing is refused because the other worker has not heard yet."""

    async def main(http):
        for _ in range(20):
            client = await Client(*served(workers.urls, http)).open(initialized=False)
            initialized = client.send(INITIALIZED)
            requests = [
                last_of(client.post("logging/setLevel", level="debug")),
                last_of(client.post("tools/list")),
                last_of(client.call("work", value="x")),
                last_of(client.post("ping")),
            ]
            status, *answers = await asyncio.gather(initialized, *requests)
            assert status == 202
            assert all("result" in answer for answer in answers), answers

    workers.run(main)


def test_one_id_for_all_requests_is_served_too(workers):

    async def main(http):
        client = await Client(*served(workers.urls, http)).open()
        for _ in range(20):
            assert await ask_in_parallel(client, [1] * 12) == []

    workers.run(main)


@pytest.mark.parametrize("tool", ["ask", "aask"])
def test_an_answer_may_arrive_at_another_worker(workers, tool):
    """Eight calls ask at once, and are answered in another order elsewhere."""

    async def main(http):
        client = await Client(*served(workers.urls, http)).open(elicitation={})
        asked: dict[str, object] = {}
        everybody = asyncio.Event()

        async def one(name: str) -> str:
            async with client.call(tool, id=name, value=name) as answer:
                async for message in answer:
                    if "method" in message:
                        asked[name] = message["id"]
                        if len(asked) == 8:
                            everybody.set()
                    else:
                        assert message["id"] == name
                        return message["result"]["content"][0]["text"]
            raise AssertionError("no answer")

        calls = [asyncio.create_task(one(str(number))) for number in range(8)]
        await everybody.wait()
        for name, question in sorted(asked.items(), reverse=True):
            content = {"action": "accept", "content": {"name": f"for {name}"}}
            assert await client.send(response(question, content)) == 202
        return [await each for each in calls]

    assert workers.run(main) == [f"{number}: for {number}" for number in range(8)]


@pytest.mark.parametrize("tool", ["speak", "aspeak"])
def test_a_broken_stream_goes_on_at_another_worker(workers, tool):
    """While the call runs, again and again, from worker to worker."""

    async def main(http):
        client = await Client(*served(workers.urls, http)).open()

        async def one(name: str) -> None:
            heard: list[object] = []
            connect = client.call(tool, id=name, value=name, words=12, seconds=0.2)
            while True:
                async with connect as answer:
                    assert answer.status == 200, await answer.messages()
                    async for message in answer:
                        heard.append(message)
                        if random.random() < 0.3:
                            break
                if heard and "result" in heard[-1]:
                    break
                connect = client.listen(answer.last_id)
            *words, last = heard
            assert [w["params"]["data"] for w in words] == [f"{name}/{n}" for n in range(12)]
            assert last["id"] == name

        await asyncio.gather(*(one(f"{tool}-{number}") for number in range(20)))

    workers.run(main)


@pytest.mark.parametrize("speaks", [False, True])
def test_a_cancellation_reaches_the_call_at_another_worker(workers, speaks):
    """Whether the call has rows already, or has just begun."""

    async def main(http):
        client = await Client(*served(workers.urls, http)).open()
        calls = await hold(workers, client, ["hold", "ahold"] * 4, speaks=speaks)
        for name in calls:
            # The workers take turns: four of these go to another one than the call.
            assert await client.cancel(name) == 202
        return [await each for each in calls.values()]

    answers = workers.run(main)
    assert [each["error"]["code"] for each in answers] == [-32800] * 8


def test_a_session_that_ends_elsewhere_ends_its_calls_and_stays_ended(workers):

    async def main(http):
        client = await Client(*served(workers.urls, http)).open()
        calls = await hold(workers, client, ["ahold", "hold", "ahold"] * 2, speaks=True)
        async with client.request("DELETE") as ended:
            assert ended.status == 204
        # Within: what the workers have logged is shown if an answer is another one.
        for name, call in calls.items():
            answer = await call
            assert (answer["id"], answer["error"]["code"]) == (name, -32001), answer
        for _ in range(4):
            async with client.post("ping", id="after") as gone:
                assert gone.status == 404
                assert (await gone.messages())[0]["id"] == "after"

    workers.run(main)


@pytest.mark.parametrize("tool", ["hold", "ahold"])
def test_a_long_call_holds_up_nobody(workers, tool):
    """While it runs, everything else of its session is answered."""

    async def main(http):
        client = await Client(*served(workers.urls, http)).open()
        ((name, long),) = (await hold(workers, client, [tool], speaks=True)).items()
        loop = asyncio.get_running_loop()
        waits = []
        for number in range(20):
            started = loop.time()
            assert "result" in await last_of(client.call("work", value=str(number)))
            waits.append(loop.time() - started)
        assert await ask_in_parallel(client, list(range(PARALLEL))) == []
        assert not long.done()
        workers.gates.open(name)
        assert (await long)["id"] == name
        return sorted(waits)[10]

    print(f"{workers.run(main) * 1000:.1f} ms, the median of a call beside a long one")


async def hold(
    workers: Workers, client: Client, tools: list[str], *, speaks: bool
) -> dict[str, asyncio.Task[Any]]:
    """Make calls that wait until a test lets them go on; return them when they all wait."""
    calls = {f"{tool}-{uuid4().hex}": tool for tool in tools}
    tasks = {
        name: asyncio.create_task(last_of(client.call(tool, id=name, value=name, speaks=speaks)))
        for name, tool in calls.items()
    }
    for name in calls:
        await workers.gates.until_reached(name)
    return tasks


async def last_of(context: Any) -> Any:
    """Make a request, and return the last message of its answer."""
    async with context as answer:
        return (await answer.messages())[-1]
