"""Tests of the tests: with a fault planted in the workers, what they look for is found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .client import Client
from .conftest import Workers, serving
from .test_queue import drain, produce, stream_of, what_is_wrong


@contextmanager
def workers_with(fault: str) -> Iterator[Workers]:
    """Serve the shop with ``fault`` in every worker, and in every other process."""
    with serving(PLANT=fault) as (servers, environment):
        yield Workers(servers, environment)


@pytest.mark.parametrize("fault", ["blob", "unlocked"])
def test_a_queue_that_is_read_changed_and_written_back_loses_messages(fault):
    """What php-sdk 275 does with the whole queue, and with its counter alone."""
    with workers_with(fault) as workers:
        got = workers.run(lambda http: drain(workers, http, 200, seconds=8))
    assert what_is_wrong(got, 200) != ""


@pytest.mark.parametrize(("fault", "deliveries"), [("", 1), ("resends", 2)])
def test_two_connections_that_both_deliver_double_messages(fault, deliveries):
    assert _deliveries(fault) == deliveries


def _deliveries(fault: str) -> int:
    with workers_with(fault) as workers:

        async def main(http):
            client = await (await Client(workers.urls, http).open()).ready()
            async with client.listen() as one, client.listen() as other:
                stream = await stream_of(one)
                await stream_of(other)
                heard = [asyncio.create_task(anext(each.messages())) for each in (one, other)]
                (producer,) = await produce(workers, stream, 1, producers=1)
                await producer.communicate()
                await asyncio.wait(heard, timeout=5)
                return sum(each.done() for each in heard)

        return workers.run(main)


@pytest.mark.parametrize("tool", ["ask", "aask"])
def test_without_looking_or_being_rung_an_answer_is_not_heard(tool):
    with workers_with("deaf") as workers:

        async def main(http):
            client = await (await Client(workers.urls, http).open(elicitation={})).ready()
            async with client.call(tool, value="x") as answer:
                messages = answer.messages()
                question = await anext(messages)
                content = {"action": "accept", "content": {"name": "y"}}
                # The workers take turns: the call is at one, and this goes to the other.
                await client.send({"jsonrpc": "2.0", "id": question["id"], "result": content})
                async with asyncio.timeout(3):
                    return await anext(messages)

        with pytest.raises(TimeoutError):
            workers.run(main)
