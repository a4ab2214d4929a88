"""Tests of the tests: with a fault planted in the workers, what they look for is found."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.client import Client, Server, StatelessClient, served

from .serving import serving
from .test_interference import count, set_and_found, stored_and_read, written_in_excess
from .test_queue import drain, produce, stream_of, what_is_wrong
from .test_slow_readers import settles


@pytest.mark.parametrize("fault", ["blob", "unlocked"])
def test_a_queue_that_is_read_changed_and_written_back_loses_messages(fault):
    """What php-sdk 275 does with the whole queue, and with its counter alone."""
    with serving(PLANT=fault) as workers:
        got = workers.run(lambda http: drain(workers, http, 200, seconds=8))
    assert what_is_wrong(got, 200) != ""


@pytest.mark.parametrize(("fault", "deliveries"), [("", 1), ("resends", 2)])
def test_two_connections_that_both_deliver_double_messages(fault, deliveries):
    assert _deliveries(fault) == deliveries


def _deliveries(fault: str) -> int:
    with serving(PLANT=fault) as workers:

        async def main(http):
            client = await Client(*served(workers.urls, http)).open()
            async with client.listen() as one, client.listen() as other:
                stream = await stream_of(one)
                await stream_of(other)
                heard = [asyncio.create_task(each.message()) for each in (one, other)]
                (producer,) = await produce(workers, stream, 1, producers=1)
                await producer.communicate()
                await asyncio.wait(heard, timeout=5)
                return sum(each.done() for each in heard)

        return workers.run(main)


@pytest.mark.parametrize("tool", ["ask", "aask"])
def test_without_looking_or_being_rung_an_answer_is_not_heard(tool):
    with serving(PLANT="deaf") as workers:

        async def main(http):
            client = await Client(*served(workers.urls, http)).open(elicitation={})
            async with client.call(tool, value="x") as answer:
                question = await answer.message()
                content = {"action": "accept", "content": {"name": "y"}}
                # The workers take turns: the call is at one, and this goes to the other.
                await client.answer(question, content)
                async with asyncio.timeout(3):
                    return await answer.message()

        with pytest.raises(TimeoutError):
            workers.run(main)


def test_a_queue_that_all_requests_share_loses_a_stored_response():
    with serving(PLANT="pauses,overwrites") as workers:
        assert stored_and_read(workers, "hold", resumed=True) == []


def test_a_session_that_is_saved_whole_forgets_and_miscounts():
    with serving(PLANT="whole,prompt") as workers:
        assert set_and_found(workers, "hold")[0] > 0
        assert "client_capabilities" in written_in_excess(workers)[0]
        sent, rows = count(workers)
        assert rows["request_count"] < sent


def test_a_reader_that_joins_at_the_end_after_it_has_read_loses_what_comes_in_between():
    with serving(PLANT="skips") as workers:
        got = workers.run(lambda http: drain(workers, http, 200, seconds=12))
    assert what_is_wrong(got, 200).startswith("lost=")


@pytest.mark.parametrize(("fault", "heard"), [("unpolled", True), ("unpolled,late", False)])
def test_a_reader_that_joins_after_the_look_misses_what_was_there(fault, heard):
    """Unless it looks by itself as well, which it does twice a second: hence without that."""
    with serving("mount", PLANT=fault) as workers:

        async def main(http):
            client = await Client(*served(workers.urls, http)).open()
            put = StatelessClient(Server(workers.urls[0], http))
            async with client.listen() as own:
                stream = await stream_of(own)
            # Else it might still be shown on that connection.
            for url in workers.urls:
                await settles(StatelessClient(Server(url, http)), readers=0)
            await put.value("put", stream=stream, data="there before")
            async with client.listen() as own:
                await stream_of(own)
                hearing = asyncio.create_task(own.message())
                await asyncio.wait([hearing], timeout=None if heard else 3)
                if not heard:
                    assert not hearing.done()
                    await put.value("put", stream=stream, data="rung")
                return (await hearing)["params"]["data"]

        assert workers.run(main) == "there before"
