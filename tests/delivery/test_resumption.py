"""GET: the session's own stream, and streams that broke off."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest
from django.core.asgi import get_asgi_application

from django_mcp.http.event_stream import EventStream
from django_mcp.models import OutgoingMessage, PendingRequest, Session, Stream
from django_mcp.running.send_queue import SendQueue
from django_mcp.store.delivery import outbox, stream_rows
from django_mcp.store.ledger import ledger
from tests.support.client import Client
from tests.support.waiting import in_thread, until

from . import site

NOTE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}'


def put(*texts: str) -> None:
    """Queue messages on the session's own stream."""
    outbox.write_notifications(Stream.objects.get(own=True).pk, [NOTE % text for text in texts])


async def last_of(call):
    """Make a call; return the last message of its answer."""
    async with call as connection:
        if not connection.is_stream:
            return await connection.json()
        return (await connection.messages())[-1]


def text_of(message):
    return message["params"]["data"]


@pytest.mark.parametrize("tool", ["steps", "asteps"])
def test_a_broken_stream_goes_on_where_it_broke(application, on_loop, tool):
    """A connection that goes is no cancellation."""

    async def main():
        client = await Client(application).open()
        site.gates.open("each")
        async with client.call(tool, gate="each", count=4, id=7) as broken:
            assert text_of(await broken.message()) == "0"
        for _ in range(3):
            site.gates.open("each")
        async with client.listen(broken.last_id) as resumed:
            assert (await resumed.event()).data == b""
            return await resumed.messages()

    *words, last = on_loop(main())
    assert [text_of(word) for word in words] == ["1", "2", "3"]
    assert last["id"] == 7
    assert last["result"]["content"][0]["text"] == "done"


def test_what_is_finished_is_replayed_and_then_the_stream_ends(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.call("steps", count=3) as broken:
            first = (await broken.event()).id
        await until(lambda: Stream.objects.exclude(closed=None).count(), 1)
        async with client.listen(first) as resumed:
            whole = await resumed.messages()
        async with client.listen(resumed.last_id) as again:
            assert again.status == 204
            assert "content-type" not in again.headers
        return whole

    whole = on_loop(main())
    assert [text_of(each) for each in whole[:-1]] == ["0", "1", "2"]
    assert "result" in whole[-1]


def test_a_connection_that_was_cut_before_any_message_can_come_back(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.call("speak_and_wait") as broken:
            primed = await broken.event()
        site.gates.open()
        async with client.listen(primed.id) as resumed:
            return await resumed.messages()

    assert [text_of(each) for each in on_loop(main())[:-1]] == ["before", "after"]


def test_ids_of_events_are_never_used_twice_in_a_session(application, on_loop):
    async def main():
        client = await Client(application).open()
        ids = []
        async with client.call("steps") as first:
            while (event := await first.event()) is not None:
                ids.append(event.id)
        async with client.call("steps") as second:
            ids.append((await second.event()).id)
        await until(lambda: Stream.objects.exclude(closed=None).count(), 2)
        async with client.listen(second.last_id) as resumed:
            ids.append((await resumed.event()).id)
        async with client.listen(second.last_id) as resumed:
            ids.append((await resumed.event()).id)
        async with client.listen() as own:
            ids.append((await own.event()).id)
        return ids

    ids = on_loop(main())
    assert all(ids)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("place", ["", "nonsense", "AAAAAAAAAAAAAAAAAAAAAA.1", "x.y.z", "ü"])
def test_an_unknown_place_is_refused_with_a_cure(application, on_loop, place):
    async def main():
        client = await Client(application).open()
        async with client.listen(place) as refused:
            return refused.status, await refused.json()

    status, answer = on_loop(main())
    assert status == 400
    assert answer["id"] is None
    assert "GET without it" in answer["error"]["message"]


def test_another_sessions_place_is_as_good_as_unknown(application, on_loop):

    async def main():
        one, other = await Client(application).open(), await Client(application).open()
        async with one.call("steps") as connection:
            place = (await connection.event()).id
        async with other.listen(place) as refused:
            return refused.status

    assert on_loop(main()) == 400


def test_a_place_whose_events_are_gone_ends_with_an_error_of_its_own_id(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.call("steps", id="mine") as connection:
            place = (await connection.event()).id
            await connection.messages()
        await in_thread(OutgoingMessage.objects.all().delete)
        await in_thread(lambda: Stream.objects.update(trimmed=4))
        async with client.listen(place) as resumed:
            return await resumed.messages()

    (only,) = on_loop(main())
    assert only["id"] == "mine"
    assert only["error"]["code"] == -32603


def test_what_was_queued_without_a_connection_is_delivered_on_the_next(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.listen() as connection:
            await connection.event()
        await in_thread(put, "one", "two")
        async with client.listen() as connection:
            await connection.event()
            assert text_of(await connection.message()) == "one"
            assert text_of(await connection.message()) == "two"
            await in_thread(put, "three")
            assert text_of(await connection.message()) == "three"

    on_loop(main())


def test_what_was_delivered_is_not_delivered_again_unless_it_is_asked_for(application, on_loop):

    async def main():
        client = await Client(application).open()
        async with client.listen() as connection:
            place = (await connection.event()).id
            await in_thread(put, "one")
            assert text_of(await connection.message()) == "one"
        async with client.listen() as connection:
            await connection.event()
            assert await connection.is_silent()
        async with client.listen(place) as connection:
            await connection.event()
            assert text_of(await connection.message()) == "one"

    on_loop(main())


def test_of_two_connections_the_newest_delivers_and_when_it_goes_the_other_does(
    application, on_loop
):
    """No 409, no eviction, each message once."""

    async def main():
        client = await Client(application).open()
        async with client.listen() as old:
            await old.event()
            async with client.listen() as new:
                await new.event()
                await in_thread(put, "one", "two")
                assert text_of(await new.message()) == "one"
                assert text_of(await new.message()) == "two"
                assert await old.is_silent()
            await until(lambda: Stream.objects.filter(own=True, epoch__gte=3).count(), 1)
            await in_thread(put, "three")
            assert text_of(await old.message()) == "three"

    on_loop(main())


def test_a_resumed_post_takes_over_from_the_connection_that_is_still_open(application, on_loop):

    async def main():
        client = await Client(application).open()
        async with client.call("speak_and_wait") as old:
            await old.message()
            async with client.listen(old.last_id) as new:
                await new.event()
                assert await old.event() is None
                site.gates.open()
                return await new.messages()

    first, last = on_loop(main())
    assert text_of(first) == "after"
    assert last["result"]


def test_a_response_never_travels_on_the_sessions_own_stream(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.listen() as own:
            await own.event()
            async with client.call("steps") as connection:
                await connection.messages()
            assert await own.is_silent()

    on_loop(main())


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
def test_older_revisions_resume_too(application, on_loop, revision):
    async def main():
        client = await Client(application).open(revision)
        async with client.call("speak_and_wait") as broken:
            await broken.message()
        site.gates.open()
        async with client.listen(broken.last_id) as resumed:
            return await resumed.messages()

    assert len(on_loop(main())) == 2


def test_a_tool_may_let_its_client_come_back_for_the_result(application, on_loop, settings):
    """At once, and not when the call has become long."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STREAM_AFTER_SECONDS": 3600}

    async def main():
        client = await Client(application).open()
        async with client.call("released", id=3) as connection:
            assert (await connection.event()).data == b""
            assert await connection.event() is None
        site.gates.open()
        async with client.listen(connection.last_id) as resumed:
            return await resumed.messages()

    (only,) = on_loop(main())
    assert only["id"] == 3
    assert only["result"]["structuredContent"] == {"result": True}


@pytest.mark.parametrize("stays", [True, False])
def test_to_let_go_of_a_stream_is_nothing_to_the_connection_that_has_taken_it_over(
    application, on_loop, stays
):
    """Whether the one that the call came on is still there or not."""

    def holder():
        return Stream.objects.values_list("epoch", "reader").get()

    async def main():
        client = await Client(application).open()
        former = client.call("released_late", id=3)
        connection = await former.__aenter__()
        assert text_of(await connection.message()) == "before"
        if not stays:
            await former.__aexit__(None, None, None)
        async with client.listen(connection.last_id) as taken:
            assert (await taken.event()).data == b""
            before = await in_thread(holder)
            site.gates.open("late")
            found = await taken.messages()
            assert before[1]
            assert await in_thread(holder) == before
        if stays:
            assert await connection.messages() == []
            await former.__aexit__(None, None, None)
        return found

    (only,) = on_loop(main())
    assert only["id"] == 3
    assert only["result"]["structuredContent"] == {"result": True}


def test_who_has_lost_a_stream_frees_nobody_elses(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.listen() as own:
            await own.event()

    on_loop(main())
    stream = Stream.objects.get(own=True)
    stream_rows.take_over(stream, "first")
    late = stream.epoch
    stream_rows.take_over(stream, "second")
    stream_rows.leave(stream.pk, late)
    stream.refresh_from_db()
    assert stream.reader == "second"
    assert not stream_rows.claim(stream.pk, late, "first")
    stream_rows.leave(stream.pk, stream.epoch)
    assert not stream_rows.claim(stream.pk, late, "first")
    assert stream_rows.claim(stream.pk, stream.epoch, "third")


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
def test_where_the_revision_does_not_allow_it_the_stream_is_not_released(
    application, on_loop, revision
):
    async def main():
        client = await Client(application).open(revision)
        site.gates.open()
        return await client.result("released")

    assert on_loop(main())["content"][0]["text"] == "false"


def test_an_old_connection_ends_so_that_it_can_be_taken_up_again(application, on_loop, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STREAM_MAX_AGE_SECONDS": 1}

    async def main():
        client = await Client(application).open()
        async with client.call("speak_and_wait") as aged:
            await aged.message()
            assert await aged.event() is None
            assert aged.text.endswith("retry: 1000\n\n")
        site.gates.open()
        async with client.listen(aged.last_id) as resumed:
            return await resumed.messages()

    assert len(on_loop(main())) == 2


def test_when_the_session_ends_its_own_stream_ends(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.listen() as own:
            await own.event()
            async with client.request("DELETE") as deleted:
                assert deleted.status == 204
            assert await own.event() is None

    on_loop(main())
    assert Session.objects.get().state == "ended"


def test_a_session_that_ends_tells_the_calls_in_flight(application, on_loop):
    """With their id, and nothing of it comes back."""

    async def main():
        client = await Client(application).open()
        async with client.call("speak_and_wait", id="orphan") as connection:
            await connection.message()
            async with client.request("DELETE"):
                pass
            messages = await connection.messages()
        site.gates.open()
        async with client.post("ping") as after:
            return messages, after.status

    (only,), status = on_loop(main())
    assert only["id"] == "orphan"
    assert only["error"]["code"] == -32001
    assert status == 404
    assert PendingRequest.objects.get().state == "failed"


@pytest.mark.parametrize("tool", ["wait", "await_"])
@pytest.mark.parametrize("removed", [False, True])
def test_it_tells_those_that_have_not_said_a_word_too(
    application, on_loop, settings, tool, removed
):
    """Within a second, although they have no rows by which to tell."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STREAM_AFTER_SECONDS": 60}

    async def main():
        client = await Client(application).open()
        other = await Client(application).open()
        call = asyncio.create_task(last_of(client.call(tool, id="orphan", gate="first")))
        stays = asyncio.create_task(last_of(other.call(tool, id="stays", gate="second")))
        await site.gates.reached("first")
        await site.gates.reached("second")
        if removed:
            await in_thread(lambda: Session.objects.earliest("created").delete())
        else:
            async with client.request("DELETE"):
                pass
        ended = await call
        site.gates.open("first")
        site.gates.open("second")
        return ended, await stays

    ended, other = on_loop(main())
    assert (ended["id"], ended["error"]["code"]) == ("orphan", -32001)
    assert (other["id"], "result" in other) == ("stays", True)
    assert not PendingRequest.objects.exists()


def slow_to_leave(get_response):
    """Hold up, as middleware does, what the view has returned."""

    def respond(request):
        response = get_response(request)
        if response.streaming:
            site.gates.wait("leaving")
        return response

    return respond


def test_a_stream_that_nobody_begins_to_read_is_left(on_loop, settings):
    """Its client has gone while middleware still had the response."""
    settings.MIDDLEWARE = [f"{__name__}.slow_to_leave"]
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WRITE_TIMEOUT_SECONDS": 1}

    async def main():
        client = await Client(get_asgi_application()).open()

        async def get():
            async with client.listen():
                pass

        getting = asyncio.create_task(get())
        await site.gates.reached("leaving")
        getting.cancel()
        site.gates.open("leaving")
        await asyncio.wait([getting])
        # Nobody tells of it: it shows when the response is collected, which may take a while.
        await until(lambda: (gc.collect(), Stream.objects.get().reader)[1], "")
        assert not ledger().readers

    on_loop(main())


def test_a_stream_that_is_collected_in_the_middle_of_anything_waits_for_nothing(on_loop):
    """As in the ledger's thread, while that holds the lock which whoever wakes it needs."""

    async def main():
        lock, left = threading.Lock(), threading.Event()

        def leave():
            with lock:
                left.set()

        held = [EventStream(SendQueue(asyncio.get_running_loop()), leave)]

        def collect():
            with lock:
                held.clear()

        collecting = threading.Thread(target=collect, daemon=True)
        collecting.start()
        await until(collecting.is_alive, False)
        await until(left.is_set, True)

    on_loop(main())


def test_sessions_after_one_that_was_lost_inherit_nothing_of_it(application, on_loop):
    """All callers of a client may find out at once that their session is gone."""

    async def main():
        lost = await Client(application).open()
        async with lost.listen() as own:
            await own.event()
        stream = await in_thread(Stream.objects.get)
        await in_thread(
            outbox.write_notifications,
            stream.pk,
            ['{"jsonrpc":"2.0","method":"notifications/late"}'],
        )
        async with lost.request("DELETE") as ended:
            assert ended.status == 204
        found = await asyncio.gather(*(Client(application).open() for _ in range(20)))
        for client in found[:3]:
            async with client.listen() as fresh:
                assert (await fresh.event()).data == b""
                assert await fresh.is_silent()
        return {client.session_id for client in (lost, *found)}

    assert len(on_loop(main())) == 21
    assert Session.objects.exclude(state="ended").count() == 20


def test_a_stream_ends_when_it_is_no_longer_kept(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.listen() as connection:
            await until(Stream.objects.filter(own=True).count, 1)
            await in_thread(Stream.objects.all().delete)
            return await connection.messages()

    assert on_loop(main()) == []
