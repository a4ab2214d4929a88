"""The queue of a session's own stream: several producers, and a client that comes and goes."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections import Counter

import pytest

from django_mcp.http.event_stream import EventId
from tests.support.client import Client, served
from tests.support.streams import StreamedAnswer

from .serving import HERE, Workers

PRODUCERS = 4


async def drain(workers: Workers, http: object, number: int, *, seconds: float) -> list[int]:
    """Produce so many messages from several processes; return what a client got, in its order."""
    client = await Client(*served(workers.urls, http)).open()
    async with client.listen() as own:
        stream = await stream_of(own)
    producers = await produce(workers, stream, number)
    got: list[int] = []
    try:
        async with asyncio.timeout(seconds):
            last_id: str | None = None
            while len(got) < number:
                async with client.listen(last_id) as own:
                    async for message in own:
                        got.append(message["params"]["data"])
                        # Now and then the client goes, and comes back at the other worker.
                        if len(got) == number or random.random() < 0.002:
                            break
                    last_id = own.last_id
    except TimeoutError:
        pass
    for producer in producers:
        _, errors = await producer.communicate()
        assert producer.returncode == 0, errors.decode()
    return got


async def stream_of(own: StreamedAnswer) -> str:
    """Return the key of a session's own stream, from the event that opens a connection to it."""
    first = await own.event()
    place = EventId.parse(first.id)
    assert place is not None
    return str(place.stream)


async def produce(
    workers: Workers, stream: str, number: int, *, producers: int = PRODUCERS
) -> list[asyncio.subprocess.Process]:
    """Start processes that queue so many messages together."""
    each = number // producers
    return [
        await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "tests.workers.produce", stream],
            *[str(producer * each), str(each)],
            env=workers.environment,
            cwd=HERE.parent.parent,
            stderr=subprocess.PIPE,
        )
        for producer in range(producers)
    ]


def what_is_wrong(got: list[int], number: int) -> str:
    """Return what was lost, doubled or out of order; empty if nothing was."""
    counts = Counter(got)
    lost = number - len(counts)
    doubled = sum(count - 1 for count in counts.values())
    each = number // PRODUCERS
    unordered = 0
    for producer in range(PRODUCERS):
        own = [n for n in got if producer * each <= n < (producer + 1) * each]
        unordered += own != sorted(own)
    return "" if not (lost or doubled or unordered) else f"{lost=} {doubled=} {unordered=}"


# Under WSGI the session's own stream is not shown.
@pytest.mark.parametrize("workers", ["polling", "core", "pubsub"], indirect=True)
def test_what_is_produced_is_consumed_once_and_in_order(workers):
    number = 3_000 if workers.is_thorough else 400
    got = workers.run(lambda http: drain(workers, http, number, seconds=300))
    print(f"{what_is_wrong(got, number) or 0} of {number} messages lost, doubled or out of order")
    assert what_is_wrong(got, number) == ""
