"""Sessions that hear of changes: ``resources/subscribe``, and the stream that GET opens."""

from __future__ import annotations

import json
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import OperationalError

from django_mcp import endpoint
from django_mcp.models import (
    Change,
    ChangeCounter,
    OutgoingMessage,
    PendingRequest,
    Session,
    Stream,
    Subscription,
)
from django_mcp.protocol.topics import Topic, TopicKind
from django_mcp.protocol.versions import LEGACY
from django_mcp.store.changes import change_log, fanout, feed, subscription_rows
from django_mcp.store.changes.fanout import GetStreamListener
from django_mcp.store.delivery import outbox, stream_rows
from django_mcp.store.delivery.stream_readers import StreamReader, StreamReaders
from django_mcp.store.ledger import ledger
from tests.store.aging import forget
from tests.support.client import Client
from tests.support.messages import INITIALIZED
from tests.support.sites import urlconf
from tests.support.waiting import in_thread

from .changes import PROMPTS, RESOURCES, TOOLS, server, told

REVISIONS = [revision.name for revision in LEGACY]


@pytest.fixture(autouse=True)
def _changing(_delivery: None, settings: Any) -> None:
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))


@asynccontextmanager
async def own_stream(client: Client, last_event_id: str | None = None):
    """GET the session's own stream; entered when it is being served."""
    async with client.listen(last_event_id) as own:
        assert own.is_stream
        while not own.text:
            await own._more()
        if "id:" in own.text:
            await own.event()  # which primes the client
        yield own


async def notify(*topics: Topic) -> None:
    """Announce, as a view or a task does."""
    for topic in topics:
        if topic.kind is TopicKind.RESOURCE:
            await in_thread(server.notify_resource_updated, topic.uri)
        else:
            await in_thread(getattr(server, f"notify_{topic.kind}_changed"))


async def subscribe(client: Client, uri: str, method: str = "subscribe") -> Any:
    async with client.post(f"resources/{method}", uri=uri) as answer:
        assert answer.status == 200
        return await answer.json()


def move(values: dict[str, Any]) -> None:
    Stream.objects.update(**values)


def note(key: Any) -> Topic:
    return Topic(TopicKind.RESOURCE, f"note://{key}")


# Lists


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_session_hears_of_its_lists(application, on_loop, revision):
    async def main():
        client = await Client(application).open(revision)
        async with own_stream(client) as own:
            await notify(Topic(TopicKind.TOOLS))
            first = await own.message()
            await notify(Topic(TopicKind.RESOURCES))
            second = await own.message()
        return first, second

    assert on_loop(main()) == (
        {"jsonrpc": "2.0", "method": TOOLS},
        {"jsonrpc": "2.0", "method": RESOURCES},
    )


def test_a_change_before_the_first_get_is_not_lost(application, on_loop):
    async def main():
        await notify(Topic(TopicKind.PROMPTS))
        client = await Client(application).open()
        await notify(Topic(TopicKind.TOOLS))
        async with own_stream(client) as own:
            found = await own.message()
            assert await own.is_silent()
        return found

    # What changed before the session was opened is no news to its client.
    assert told(on_loop(main())) == TOOLS


def test_a_change_while_nobody_listens_waits_and_is_told_once(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with own_stream(client) as own:
            await notify(Topic(TopicKind.TOOLS))
            first = await own.message()
        for _ in range(10):
            await notify(Topic(TopicKind.TOOLS), Topic(TopicKind.PROMPTS))
        async with own_stream(client) as own:
            second = [told(await own.message()), told(await own.message())]
            assert await own.is_silent()
        async with own_stream(client) as own:
            assert await own.is_silent()
        return told(first), second

    first, second = on_loop(main())
    assert first == TOOLS
    assert sorted(second) == [PROMPTS, TOOLS]
    assert OutgoingMessage.objects.count() == 3


def test_a_list_that_the_server_has_not_is_not_told_of(application, on_loop):
    """As if its server had tools alone."""

    async def main():
        client = await Client(application).open()
        async with own_stream(client) as own:
            (served,) = list(ledger().changes._get_streams)
            served.lists = frozenset({TopicKind.TOOLS})
            await notify(
                Topic(TopicKind.PROMPTS), Topic(TopicKind.RESOURCES), Topic(TopicKind.TOOLS)
            )
            return await own.message()

    assert told(on_loop(main())) == TOOLS


def test_a_client_that_is_not_ready_is_told_when_it_is(application, on_loop):
    """Before ``notifications/initialized`` a server sends pings and logs alone."""

    async def main():
        client = await Client(application).open(initialized=False)
        async with own_stream(client) as own:
            await notify(Topic(TopicKind.TOOLS))
            assert await own.is_silent(0.7)
            await client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            return await own.message()

    assert told(on_loop(main())) == TOOLS


def test_a_storm_is_one_notification(application, on_loop, monkeypatch):
    """However many changes between two looks."""
    storm = threading.Event()
    original = feed.ChangeFeed._look
    monkeypatch.setattr(
        feed.ChangeFeed, "_look", lambda self: not storm.is_set() and original(self)
    )

    def blow() -> None:
        for _ in range(200):
            server.notify_tools_changed()
            server.notify_resource_updated("note://1")

    async def main():
        client = await Client(application).open()
        await subscribe(client, "note://1")
        async with own_stream(client) as own:
            storm.set()
            await in_thread(blow)
            storm.clear()
            found = [told(await own.message()), told(await own.message())]
            assert await own.is_silent(0.7)
        return found

    assert on_loop(main()) == [TOOLS, "note://1"]
    assert ChangeCounter.objects.get().serial == 400


# Resources


def test_a_subscriber_is_told_and_others_are_not(application, on_loop):
    async def main():
        one, other = await Client(application).open(), await Client(application).open()
        assert (await subscribe(one, "note://1"))["result"] == {}
        assert (await subscribe(one, "note://1"))["result"] == {}
        assert (await subscribe(other, "note://2"))["result"] == {}
        async with own_stream(one) as first, own_stream(other) as second:
            await notify(note(1), note(3))
            assert told(await first.message()) == "note://1"
            assert await second.is_silent()
            assert (await subscribe(one, "note://1", "unsubscribe"))["result"] == {}
            assert (await subscribe(one, "note://1", "unsubscribe"))["result"] == {}
            await notify(note(1), note(2))
            assert told(await second.message()) == "note://2"
            assert await first.is_silent()

    on_loop(main())
    assert Subscription.objects.get().uri == "note://2"


def test_what_changed_before_the_subscription_is_no_news(application, on_loop):
    async def main():
        one, other = await Client(application).open(), await Client(application).open()
        await subscribe(other, "note://1")
        await notify(note(1), Topic(TopicKind.TOOLS))
        await subscribe(one, "note://1")
        async with own_stream(one) as own:
            assert told(await own.message()) == TOOLS
            assert await own.is_silent()
        async with own_stream(other) as own:
            assert {told(await own.message()) for _ in range(2)} == {TOOLS, "note://1"}

    on_loop(main())


@pytest.mark.parametrize(
    ("subscribed", "announced"),
    [
        ("note://caf%c3%a9", "note://café"),
        ("note://bob@example.com", "note://bob%40example.com"),
        ("note://a b", "note://a%20b"),
    ],
)
def test_a_client_hears_of_a_uri_as_it_spelled_it(application, on_loop, subscribed, announced):
    """What is read alike is one resource, whatever is percent-encoded of its URI."""

    async def main():
        client = await Client(application).open()
        await subscribe(client, subscribed)
        async with own_stream(client) as own:
            await in_thread(server.notify_resource_updated, announced)
            found = await own.message()
            await subscribe(client, announced, "unsubscribe")
        return found

    assert told(on_loop(main())) == subscribed
    assert not Subscription.objects.exists()


@pytest.mark.parametrize("uri", ["unknown://1", "note://", "secret://1", "note://\x00", ""])
def test_what_cannot_be_read_cannot_be_subscribed_to(application, on_loop, uri):
    async def main():
        client = await Client(application).open()
        return await subscribe(client, uri)

    error = on_loop(main())["error"]
    assert error["code"] == -32002
    assert error["data"] == {"uri": uri}
    assert not Subscription.objects.exists()


def test_a_session_has_so_many_subscriptions_and_no_more(application, on_loop, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MAX_SUBSCRIPTIONS": 2}

    async def main():
        client = await Client(application).open()
        for key in (1, 2, 2):
            assert "result" in await subscribe(client, f"note://{key}")
        refused = await subscribe(client, "note://3")
        assert (refused["error"]["code"], refused["error"]["message"][:37]) == (
            -32602,
            "Too many subscriptions: 2 resources a",
        )
        await subscribe(client, "note://1", "unsubscribe")
        assert "result" in await subscribe(client, "note://3")

    on_loop(main())


def test_subscribing_changes_nothing_else_of_a_session(application, on_loop):

    async def main():
        client = await Client(application).open()
        before = await in_thread(Session.objects.values().get)
        await subscribe(client, "note://1")
        after = await in_thread(Session.objects.values().get)
        return {name for name in before if before[name] != after[name]}

    assert on_loop(main()) <= {"last_active", "used_hour", "request_count"}


def test_a_session_that_has_ended_cannot_subscribe(application, on_loop, monkeypatch):
    """Parent first: it ended after it was found."""
    original = subscription_rows.subscribe

    def late(server: str, session: Any, uri: Any) -> None:
        Session.objects.update(state="ended")
        original(server, session, uri)

    monkeypatch.setattr(subscription_rows, "subscribe", late)

    async def main():
        client = await Client(application).open()
        async with client.post("resources/subscribe", uri="note://1") as answer:
            return answer.status, await answer.json()

    status, answer = on_loop(main())
    assert (status, answer["error"]["code"]) == (404, -32001)
    assert not Subscription.objects.exists()


# Folding


@pytest.mark.parametrize("way", ["_write_and_show", "_write_for_later"])
def test_two_processes_never_fold_the_same_change(application, on_loop, monkeypatch, way):
    """Another process is quicker, between the moment of looking and that of writing."""
    original, rivals = getattr(fanout, way), []

    def write(folds: Any) -> Any:
        if not rivals:
            rivals.append(True)
            assert original(folds)
        return original(folds)

    monkeypatch.setattr(fanout, "_write_and_show", lambda folds: set())
    monkeypatch.setattr(fanout, way, write)

    async def main():
        client = await Client(application).open()
        async with own_stream(client) as own:
            await notify(Topic(TopicKind.TOOLS))
            first = await own.message()
            assert await own.is_silent(0.7)
        return first

    assert told(on_loop(main())) == TOOLS
    assert rivals
    assert OutgoingMessage.objects.count() == 1


def test_only_the_connection_that_delivers_folds(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with own_stream(client) as older:
            async with own_stream(client) as newer:
                await notify(Topic(TopicKind.TOOLS))
                assert told(await newer.message()) == TOOLS
                assert await older.is_silent()
            # The older one goes on where the newer one was.
            await notify(Topic(TopicKind.PROMPTS))
            assert told(await older.message()) == PROMPTS
            assert await older.is_silent()

    on_loop(main())
    assert OutgoingMessage.objects.count() == 2


def test_what_changed_while_no_connection_delivered_is_folded_by_the_next(application, on_loop):
    """The newest connection dies with its process; an older one at this process takes over."""

    async def main():
        client = await Client(application).open()
        async with own_stream(client) as older:
            # As if the client had a newer connection, at a process that has not looked yet.
            await in_thread(move, {"epoch": 99, "reader": "elsewhere"})
            await notify(Topic(TopicKind.TOOLS))
            assert await older.is_silent(0.7)
            assert not await in_thread(OutgoingMessage.objects.exists)
            await in_thread(move, {"reader": ""})
            return await older.message()

    assert told(on_loop(main())) == TOOLS


def test_a_stream_that_is_full_takes_what_fits_and_the_rest_waits(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "QUEUE_MESSAGES": 2}
    own = [
        replace(
            _planted(1), lists=frozenset({TopicKind.TOOLS, TopicKind.PROMPTS, TopicKind.RESOURCES})
        )
    ]
    own[0].reader.ready = False
    change_log.write(
        server.name, [Topic(TopicKind.TOOLS), Topic(TopicKind.PROMPTS), Topic(TopicKind.RESOURCES)]
    )

    def fold():
        fanout.write_changes(own, change_log.after({server.name: own[0].seen}))
        return OutgoingMessage.objects.count()

    assert [fold(), fold()] == [2, 2]
    Stream.objects.update(delivered=2)
    assert fold() == 3


def test_what_was_delivered_makes_room_for_what_comes(application, on_loop, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "QUEUE_MESSAGES": 3}

    async def main():
        client = await Client(application).open()
        async with own_stream(client) as own:
            for _ in range(10):
                await notify(Topic(TopicKind.TOOLS))
                assert told(await own.message()) == TOOLS
        return await in_thread(OutgoingMessage.objects.count)

    # They go in large steps, so that it costs next to nothing for each.
    assert on_loop(main()) <= 3 * 3


def test_a_stream_that_was_interrupted_goes_on_and_tells_what_changed(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with own_stream(client) as own:
            await notify(Topic(TopicKind.TOOLS))
            await own.message()
            place = own.last_id
        await notify(Topic(TopicKind.PROMPTS))
        async with own_stream(client, place) as own:
            found = await own.message()
            assert await own.is_silent()
        return found

    assert told(on_loop(main())) == PROMPTS


def test_a_connection_that_has_shown_all_is_handed_what_is_written(django_assert_max_num_queries):
    own, shown = _planted(1), []
    own.reader.deliver = shown.extend
    change_log.write(server.name, [Topic(TopicKind.TOOLS)])
    news = change_log.after({server.name: 0})
    # Of these, two begin and end the transaction; nothing is read.
    with django_assert_max_num_queries(4):
        assert fanout.write_changes([own], news) == 1
    assert [(each.seq, json.loads(each.body)["method"]) for each in shown] == [(1, TOOLS)]
    row = Stream.objects.get()
    assert (own.reader.cursor, row.delivered, row.next_seq) == (1, 1, 2)


@pytest.mark.parametrize("behind", [{"next_seq": 3}, {"epoch": 2}, {"closed": "2026-01-01 00:00Z"}])
def test_a_connection_that_is_behind_reads_what_is_written_in_its_turn(behind, monkeypatch):
    own, shown = _planted(1), []
    own.reader.deliver = shown.extend
    change_log.write(server.name, [Topic(TopicKind.TOOLS)])
    original = fanout._write_and_show
    # Between the moment of looking and that of writing.
    monkeypatch.setattr(fanout, "_write_and_show", lambda folds: (move(behind), original(folds))[1])
    fanout.write_changes([own], change_log.after({server.name: 0}))
    assert shown == []
    row = Stream.objects.get()
    assert (own.reader.cursor, row.delivered) == (0, 0)
    assert row.next_seq == behind.get("next_seq", 0) + 1


def test_a_connection_that_has_gone_is_handed_nothing():
    """Whoever GETs next finds it; the one that has gone may have shown no id to come back with."""
    own, shown = _planted(1), []
    own.reader.deliver = shown.extend
    change_log.write(server.name, [Topic(TopicKind.TOOLS)])
    StreamReaders(lambda: "").remove(own.reader)
    fanout.write_changes([own], change_log.after({server.name: 0}))
    assert shown == []
    assert Stream.objects.get().delivered == 0


def test_what_was_of_no_interest_makes_no_connection_read(django_assert_max_num_queries):
    own, shown = _planted(1), []
    own.reader.deliver = shown.extend
    for kind in (TopicKind.PROMPTS, TopicKind.TOOLS):
        change_log.write(server.name, [Topic(kind)])
        news = change_log.after({server.name: own.seen})
        with django_assert_max_num_queries(4):
            fanout.write_changes([own], news)
    assert len(shown) == 1


def test_a_connection_whose_client_is_not_ready_is_handed_nothing():
    own, shown = replace(_planted(1), initialized=False), []
    own.reader.deliver = shown.extend
    change_log.write(server.name, [Topic(TopicKind.TOOLS)])
    news = change_log.after({server.name: 0})
    Session.objects.update(state=Session.State.OPENED)
    assert fanout.write_changes([own], news) == 0
    Session.objects.update(state=Session.State.READY)
    assert fanout.write_changes([own], news) == 1
    # It is read in its turn; once that is known, what comes is handed over.
    assert shown == []
    fanout.refresh([own])
    assert own.initialized


def test_nothing_is_shown_that_could_not_be_written(monkeypatch):
    own, shown = _planted(1), []
    own.reader.deliver = shown.extend
    change_log.write(server.name, [Topic(TopicKind.TOOLS)])
    news = change_log.after({server.name: 0})
    with monkeypatch.context() as planted:
        planted.setattr(fanout, "_messages", Mock(side_effect=OperationalError("planted")))
        with pytest.raises(OperationalError):
            fanout.write_changes([own], news)
    assert shown == []
    assert (own.reader.cursor, own.seen) == (0, 0)
    assert fanout.write_changes([own], news) == 1
    assert len(shown) == 1


def test_many_streams_cost_a_look_and_a_transaction(django_assert_max_num_queries):
    """What a change costs is little for each connection, and one query more for them all."""
    own = [_planted(number) for number in range(30)]
    seen = own[0].seen
    change_log.write(server.name, [Topic(TopicKind.TOOLS)])
    with django_assert_max_num_queries(30 + 8):
        assert fanout.write_changes(own, change_log.after({server.name: seen})) == 30
    assert OutgoingMessage.objects.count() == 30
    with django_assert_max_num_queries(1):
        assert not change_log.after({server.name: own[0].seen})


def test_many_streams_take_their_turn(monkeypatch):
    """Others wait for the thread too; and a stream that is full keeps none from being served."""
    monkeypatch.setattr(fanout, "STREAMS_AT_ONCE", 10)
    own = sorted((_planted(number) for number in range(30)), key=lambda each: each.reader.stream)
    full = [each.reader.stream for each in own[:10]]
    Stream.objects.filter(pk__in=full).update(next_seq=10**6)
    change_log.write(server.name, [Topic(TopicKind.TOOLS)])
    news = change_log.after({server.name: 0})
    assert [fanout.write_changes(own, news) for _ in range(3)] == [10, 10, 0]
    assert [each.seen for each in own] == [0] * 10 + [1] * 20


def test_subscriptions_of_what_has_ended_are_removed():
    for number, state in enumerate(("ready", "ended")):
        session = _planted(number).session
        Session.objects.filter(pk=session).update(state=state)
        Subscription.objects.create(session_id=session, server="x", uri=state)
    for state in ("running", "failed"):
        request = PendingRequest.objects.create(server="x", request_id="1", state=state)
        Subscription.objects.create(request=request, server="x", uri=state)
    assert forget("subscriptions") == 2
    assert set(Subscription.objects.values_list("uri", flat=True)) == {"ready", "running"}


def _planted(number: int) -> GetStreamListener:
    session = Session.objects.create(
        key_digest=str(number),
        server=server.name,
        revision="2025-11-25",
        state="ready",
        expires="2099-01-01T00:00:00Z",
    )
    stream = Stream.objects.create(session=session, own=True, epoch=1)
    reader = StreamReader(stream.pk, 0, 1, True, lambda messages: None, lambda: None)
    return GetStreamListener(
        reader, str(session.pk), server.name, frozenset({TopicKind.TOOLS}), 0, True
    )


def test_who_has_heard_of_a_change_does_not_hear_it_again_with_who_has_not():
    topic = Topic(TopicKind.RESOURCE, "note://1")
    late = _planted(1)
    heard = _planted(2)
    for each in (late, heard):
        Subscription.objects.create(
            session_id=each.session,
            server=server.name,
            uri=topic.uri,
            uri_digest=change_log.key_of(topic).digest,
        )
    change_log.write(server.name, [topic])
    news = change_log.after({server.name: 0})[server.name]
    heard = replace(heard, seen=news.last)
    found = [each for each, *_ in fanout._find_resources([late, heard], news)]
    assert found == [late]


def test_looks_that_are_rung_for_are_not_too_many(application, on_loop, monkeypatch):
    looks = []
    original = feed.ChangeFeed._look
    monkeypatch.setattr(feed.ChangeFeed, "_look", lambda self: looks.append(None) or original(self))
    monkeypatch.setattr(feed, "INTERVAL_SECONDS", 0.2)

    async def main():
        client = await Client(application).open()
        async with own_stream(client) as own:
            looks.clear()
            for _ in range(20):
                await notify(Topic(TopicKind.TOOLS))
            await own.message()

    on_loop(main())
    # Announcing takes far less than the time that these looks would need otherwise.
    assert len(looks) <= 10


def test_a_look_that_was_rung_for_is_one_look(monkeypatch):
    """After it nobody looks before it is time."""
    monkeypatch.setattr(feed, "POLL_SECONDS", 3600)
    changes = feed.ChangeFeed(lambda: None)
    changes.look_soon()
    assert changes.pause == 0
    changes.tick()
    assert changes.pause > feed.INTERVAL_SECONDS


def test_changes_of_another_server_are_its_own(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with own_stream(client) as own:
            await in_thread(change_log.write, "another", [Topic(TopicKind.TOOLS)])
            ledger().wake_everybody()
            assert await own.is_silent(0.7)

    on_loop(main())
    assert Change.objects.get().server == "another"


def test_a_session_that_is_not_ready_keeps_nothing_from_others(application, on_loop, monkeypatch):
    """What it is not to be told yet is more than one look reads."""
    monkeypatch.setattr(change_log, "PAGE", 2)
    kinds = (TopicKind.TOOLS, TopicKind.PROMPTS, TopicKind.RESOURCES)

    async def main():
        unready = await Client(application).open(initialized=False)
        ready = await Client(application).open()
        async with own_stream(unready) as waiting, own_stream(ready) as own:
            found = []
            for kind in (*kinds, TopicKind.TOOLS):
                await notify(Topic(kind))
                found.append((await own.message())["method"])
            assert await waiting.is_silent()
            # It is told as soon as it is ready, at whichever process that becomes known.
            await unready.send(INITIALIZED)
            return found, [(await waiting.message())["method"] for _ in kinds]

    heard, late = on_loop(main())
    assert heard == [TOOLS, PROMPTS, RESOURCES, TOOLS]
    assert set(late) == set(heard)


KEPT = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"kept"}}'


def test_whoever_has_missed_what_is_no_longer_kept_is_told_again_what_has_changed(
    application, on_loop
):
    async def main():
        client = await Client(application).open()
        async with own_stream(client) as own:
            await notify(Topic(TopicKind.TOOLS))
            await own.message()
            place = own.last_id
            await notify(Topic(TopicKind.PROMPTS))
            await own.message()
        stream = await in_thread(lambda: Stream.objects.get(own=True).pk)
        await in_thread(stream_rows.trim, stream, 2)
        # It comes before anybody has come back, and is still there.
        await in_thread(outbox.write_notifications, stream, [KEPT])
        async with own_stream(client, place) as own:
            return [(await own.message())["method"] for _ in range(3)]

    kept, *again = on_loop(main())
    assert kept == "notifications/message"
    assert set(again) == {TOOLS, PROMPTS}
