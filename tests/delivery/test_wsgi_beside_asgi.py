"""A stream that an event loop began is taken up at a worker that has none: WSGI beside ASGI."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from django.core.asgi import get_asgi_application

from django_mcp.asgi import mount
from django_mcp.models import OutgoingMessage, Stream
from django_mcp.store.delivery import outbox
from tests.support.caller import Caller
from tests.support.client import Client
from tests.support.entrances import open_entrance
from tests.support.waiting import in_thread, until

from . import site

NOTE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}'


def put(*texts: str) -> None:
    """Queue messages on the session's own stream."""
    outbox.write_notifications(Stream.objects.get(own=True).pk, [NOTE % text for text in texts])


@pytest.fixture
def asgi() -> Any:
    return mount(get_asgi_application())


def blocks(text: str) -> Iterable[dict[str, str]]:
    """The events of a body, by their fields."""
    for block in text.split("\n\n")[:-1]:
        yield dict(line.split(": ", 1) for line in block.split("\n"))


async def at_wsgi(client: Client, place: str) -> tuple[int, list[dict[str, str]]]:
    """Come back to a stream at a worker without a loop."""

    def get() -> tuple[int, list[dict[str, str]]]:
        caller = Caller(open_entrance("wsgi"), headers=client.headers)
        answer = caller.send("GET", Last_Event_ID=place)
        return answer.status, list(blocks(answer.body.decode()))

    return await in_thread(get)


def texts(events: Iterable[dict[str, str]]) -> list[str]:
    """What the words among them say."""
    said = [json.loads(each["data"]) for each in events if each.get("data")]
    return [each["params"]["data"] for each in said if "method" in each]


def test_the_rest_of_a_call_that_has_ended_comes_in_one_piece(asgi, on_loop):
    async def main():
        client = await Client(asgi).open()
        async with client.call("steps", count=3, id=7) as broken:
            await broken.message()
        await until(lambda: Stream.objects.exclude(closed=None).count(), 1)
        rest = await at_wsgi(client, broken.last_id)
        return rest, broken.last_id, await at_wsgi(client, rest[1][-1]["id"])

    (status, events), place, after_its_end = on_loop(main())
    assert status == 200
    assert after_its_end == (204, [])
    assert texts(events) == ["1", "2"]
    assert json.loads(events[-1]["data"])["id"] == 7
    ids = [each["id"] for each in events]
    assert len({place, *ids}) == len(ids) + 1


def test_while_the_call_runs_its_client_is_asked_to_come_back(asgi, on_loop):
    async def main():
        client = await Client(asgi).open()
        async with client.call("speak_and_wait") as broken:
            await broken.message()
        status, events = await at_wsgi(client, broken.last_id)
        assert status == 200
        assert texts(events) == []
        assert events[-1] == {"retry": "1000"}
        site.gates.open()
        async with client.listen(events[0]["id"]) as resumed:
            await resumed.event()
            return await resumed.messages()

    word, last = on_loop(main())
    assert word["params"]["data"] == "after"
    assert last["result"]


def test_no_id_is_given_twice_however_often_its_client_comes_back(asgi, on_loop):
    async def main():
        client = await Client(asgi).open()
        async with client.call("speak_and_wait") as broken:
            await broken.message()
        places = [broken.last_id]
        for _ in range(3):
            _, events = await at_wsgi(client, places[-1])
            places.append(events[0]["id"])
        site.gates.open()
        return places

    places = on_loop(main())
    assert len(set(places)) == 4


def test_of_the_sessions_own_stream_each_message_comes_once(asgi, on_loop):
    async def main():
        client = await Client(asgi).open()
        async with client.listen() as own:
            place = (await own.event()).id
        await in_thread(put, "one", "two")
        _, events = await at_wsgi(client, place)
        assert texts(events) == ["one", "two"]
        assert events[-1] == {"retry": "1000"}
        async with client.listen() as own:
            await own.event()
            assert await own.is_silent()
            await in_thread(put, "three")
            return (await own.message())["params"]["data"]

    assert on_loop(main()) == "three"


def test_the_connection_that_is_open_goes_on_when_the_one_piece_is_over(asgi, on_loop):
    """2025-11-25, basic/transports, "Multiple Connections": each message on one of them."""

    async def main():
        client = await Client(asgi).open()
        async with client.listen() as own:
            place = (await own.event()).id
            await at_wsgi(client, place)
            await in_thread(put, "one")
            return (await own.message())["params"]["data"]

    assert on_loop(main()) == "one"


@pytest.mark.parametrize("place", ["", "nonsense", "AaICQgaYeeCbBns8ZGR1ww.1"])
def test_an_unknown_place_is_400_there_too(asgi, on_loop, place):
    async def main():
        return await at_wsgi(await Client(asgi).open(), place)

    status, _ = on_loop(main())
    assert status == 400


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_who_comes_back_there_each_time_hears_of_changes(asgi, on_loop, revision):
    async def main():
        client = await Client(asgi).open(revision)
        async with client.listen() as own:
            await in_thread(put, "one")
            await own.message()
            place = own.last_id
        await in_thread(site.server.notify_tools_changed)
        heard = [(await at_wsgi(client, place))[1] for _ in range(2)]
        return [[json.loads(each["data"]) for each in part if each.get("data")] for part in heard]

    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert on_loop(main()) == [[changed], [changed]]


def test_what_was_fetched_there_makes_room_for_what_comes(asgi, on_loop, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "QUEUE_MESSAGES": 3}

    async def main():
        client = await Client(asgi).open()
        async with client.listen() as own:
            place = (await own.event()).id
        for _ in range(10):
            await in_thread(site.server.notify_tools_changed)
            _, events = await at_wsgi(client, place)
            ids = [each["id"] for each in events if each.get("data", "").strip()]
            assert len(ids) == 1
            place = ids[0]
        return await in_thread(OutgoingMessage.objects.count)

    assert on_loop(main()) <= 3 * 3
