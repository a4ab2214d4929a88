"""Questions that a call asks its client on its own stream, in the legacy revisions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from django_mcp.models import PendingRequest, Session
from django_mcp.store.ledger import ledger
from tests.support.client import Client
from tests.support.messages import INITIALIZED
from tests.support.waiting import in_thread, until

from . import site

ASKING = ["question", "aquestion"]


def accepted(name):
    return {"action": "accept", "content": {"name": name}}


@pytest.mark.parametrize("tool", ASKING)
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_an_answer_reaches_the_call_that_asked(application, on_loop, tool, revision):
    async def main():
        client = await Client(application).open(revision, elicitation={})
        async with client.call(tool, id=5, text="Who?") as connection:
            question = await connection.message()
            assert question["method"] == "elicitation/create"
            assert question["params"]["message"] == "Who?"
            assert await client.answer(question, accepted("Ada")) == 202
            return await connection.messages()

    (last,) = on_loop(main())
    assert (last["id"], last["result"]["content"][0]["text"]) == (5, "Ada")
    assert set(PendingRequest.objects.values_list("direction", "state")) == {
        ("from", "answered"),
        ("to", "answered"),
    }


@pytest.mark.parametrize("tools", [ASKING, ["question"] * 2, ["aquestion"] * 2])
def test_two_questions_at_once_get_their_own_answers_whatever_the_order(
    application, on_loop, tools
):

    async def main():
        client = await Client(application).open(elicitation={})
        async with client.call(tools[0], id="a") as one, client.call(tools[1], id="b") as two:
            first, second = await one.message(), await two.message()
            assert first["id"] != second["id"]
            await client.answer(second, accepted("for b"))
            (b,) = await two.messages()
            assert await one.is_silent()
            await client.answer(first, accepted("for a"))
            (a,) = await one.messages()
            return [(m["id"], m["result"]["content"][0]["text"]) for m in (a, b)]

    assert on_loop(main()) == [("a", "for a"), ("b", "for b")]


def test_the_first_of_several_answers_wins_and_late_ones_do_no_harm(application, on_loop):

    async def main():
        client = await Client(application).open(elicitation={})
        async with client.call("question") as connection:
            question = await connection.message()
            statuses = await asyncio.gather(
                *(client.answer(question, accepted(f"{number}")) for number in range(8))
            )
            (last,) = await connection.messages()
        statuses.append(await client.answer(question, accepted("late")))
        statuses.append(await client.answer({"id": "ask-nobody"}, accepted("x")))
        statuses.append(await client.answer({"id": 7}, accepted("x")))
        return statuses, last

    statuses, last = on_loop(main())
    assert set(statuses) == {202}
    assert last["result"]["content"][0]["text"] in {f"{number}" for number in range(8)}


def test_another_session_cannot_answer(application, on_loop):

    async def main():
        one = await Client(application).open(elicitation={})
        other = await Client(application).open(elicitation={})
        async with one.call("question") as connection:
            question = await connection.message()
            assert await other.answer(question, accepted("intruder")) == 202
            assert await connection.is_silent()
            await one.answer(question, accepted("owner"))
            return await connection.messages()

    (last,) = on_loop(main())
    assert last["result"]["content"][0]["text"] == "owner"


@pytest.mark.parametrize("tool", ASKING)
def test_a_question_that_nobody_answers_ends_in_time_and_is_taken_back(application, on_loop, tool):

    async def main():
        client = await Client(application).open(elicitation={})
        async with client.call(tool, seconds=0.2) as connection:
            question, taken_back, last = await connection.messages()
            assert taken_back["method"] == "notifications/cancelled"
            assert taken_back["params"]["requestId"] == question["id"]
        await until(lambda: PendingRequest.objects.filter(state="timed_out").count(), 1)
        return last

    assert on_loop(main())["result"]["content"][0]["text"] == "no answer"


@pytest.mark.parametrize("tool", ASKING)
def test_an_error_for_an_answer_reaches_the_call(application, on_loop, tool):
    async def main():
        client = await Client(application).open(elicitation={})
        async with client.call(tool) as connection:
            question = await connection.message()
            error = {"code": -32601, "message": "I have no user"}
            await client.send({"jsonrpc": "2.0", "id": question["id"], "error": error})
            return await connection.messages()

    (last,) = on_loop(main())
    assert last["error"] or last["result"]["isError"]


@pytest.mark.parametrize("tool", ASKING)
def test_a_question_waits_until_the_client_is_ready(application, on_loop, tool):
    """The notification may arrive while the call runs already."""

    async def main():
        client = await Client(application).open(initialized=False, elicitation={})
        calling = asyncio.create_task(_first_message(client, tool))
        await until(lambda: len(ledger().requests._calls), 1)
        await asyncio.sleep(0.3)
        assert not calling.done()
        assert not await in_thread(PendingRequest.objects.filter(direction="to").exists)
        await client.send(INITIALIZED)
        question = await calling
        await client.answer(question, accepted("Ada"))
        return question

    assert on_loop(main())["method"] == "elicitation/create"
    assert Session.objects.get().state == "ready"


@pytest.mark.parametrize("initialized", [True, False])
def test_who_waits_for_a_person_holds_no_connection(application, on_loop, initialized):
    """Nor does he who had to look, before he could ask, whether the client is ready."""

    async def main() -> Any:
        client = await Client(application).open(initialized=initialized, elicitation={})
        calling = asyncio.create_task(_first_message(client, "question_after_a_look"))
        await until(lambda: len(site.gates.connections), 1)
        (connection,) = site.gates.connections
        if not initialized:
            await until(lambda: connection.connection is not None, True)
            await client.send(INITIALIZED)
        question = await calling
        held = connection.connection
        await client.answer(question, accepted("Ada"))
        return held

    assert on_loop(main()) is None


def test_threads_that_wait_for_people_keep_no_thread_from_others(application, on_loop):
    """More questions than threads, and everybody else is served."""

    async def main():
        client = await Client(application).open(elicitation={})
        connections, questions = [], []
        for number in range(12):
            context = client.call("question", id=number)
            connections.append((context, await context.__aenter__()))
            questions.append(await connections[-1][1].message())
        assert (await client.result("echo", value="x"))["content"][0]["text"] == "x"
        for number, question in enumerate(questions):
            await client.answer(question, accepted(str(number)))
        answers = []
        for context, connection in connections:
            answers += await connection.messages()
            await context.__aexit__(None, None, None)
        assert (await client.result("echo", value="y"))["content"][0]["text"] == "y"
        return answers

    answers = on_loop(main())
    assert [each["id"] for each in answers] == list(range(12))
    assert [each["result"]["content"][0]["text"] for each in answers] == [str(n) for n in range(12)]


@pytest.mark.parametrize("tool", ASKING)
def test_an_answer_is_taken_while_the_connection_of_the_call_is_gone(application, on_loop, tool):
    async def main():
        client = await Client(application).open(elicitation={})
        async with client.call(tool, id=1) as connection:
            question = await connection.message()
        await client.answer(question, accepted("Ada"))
        async with client.listen(connection.last_id) as resumed:
            return await resumed.messages()

    (last,) = on_loop(main())
    assert last["result"]["content"][0]["text"] == "Ada"


async def _first_message(client, tool):
    async with client.call(tool) as connection:
        return await connection.message()
