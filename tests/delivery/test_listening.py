"""``subscriptions/listen``: a stream for the sake of changes alone (2026-07-28)."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from django_mcp import MCPServer, endpoint
from django_mcp.http import event_stream, views
from django_mcp.http.event_stream import ON_LOOP
from django_mcp.http.mount_request import MountRequest
from django_mcp.models import Change, PendingRequest, Subscription
from django_mcp.protocol import sse
from django_mcp.protocol.topics import Topic, TopicKind
from django_mcp.running import listen_peer, send_queue
from django_mcp.running.send_queue import SendQueue
from django_mcp.store.changes import change_log, feed
from django_mcp.store.delivery.records import MessageKind, StoredMessage
from django_mcp.store.ledger import ledger
from django_mcp.testing import MCPClient
from tests.support.answers import messages_of
from tests.support.asgi import post
from tests.support.messages import modern
from tests.support.sites import urlconf
from tests.support.waiting import BOUND, in_thread, until

from .changes import (
    EVERYTHING,
    PROMPTS,
    RESOURCES,
    SUBSCRIPTION_ID,
    TOOLS,
    by_header,
    listening,
    server,
    told,
)
from .test_subscriptions import note, notify

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


@pytest.fixture(autouse=True)
def _changing(_delivery: None, settings: Any) -> None:
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))


@pytest.fixture
def users(settings) -> dict[str, Any]:
    """Two users; one of them may see secrets."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": by_header}
    anna, otto = (get_user_model().objects.create(username=name) for name in ("anna", "otto"))
    anna.user_permissions.add(Permission.objects.get(codename="view_user"))
    return {"anna": anna, "otto": otto}


def tag(message: dict[str, Any]) -> Any:
    """Return the id of the subscription that a message belongs to."""
    return (message.get("params") or message["result"])["_meta"][SUBSCRIPTION_ID]


async def ended(state: str = "cancelled") -> None:
    """Wait until no request listens any more, nor a resource is listened to."""
    states = PendingRequest.objects.values_list("state", flat=True)
    await until(lambda: set(states.all()), {state})
    await until(Subscription.objects.count, 0)


@pytest.mark.parametrize("id", [1, "1", 0, "", "ünï", 2**53 + 1], ids=repr)
def test_everything_on_the_stream_has_its_id_and_the_acknowledgement_is_first(
    application, on_loop, id
):
    async def main():
        async with listening(application, EVERYTHING, id=id) as stream:
            assert stream.is_stream
            first = await stream.message()
            await notify(Topic(TopicKind.TOOLS))
            second = await stream.message()
        return first, second

    first, second = on_loop(main())
    assert (first["method"], first["params"]["notifications"]) == (ACKNOWLEDGED, EVERYTHING)
    assert second["method"] == TOOLS
    for message in (first, second):
        assert (type(tag(message)), tag(message)) == (type(id), id)


def test_nothing_is_told_that_was_not_asked_for(application, on_loop):
    async def main():
        wish = {"promptsListChanged": True, "resourceSubscriptions": ["note://1"]}
        async with listening(application, wish) as stream:
            first = await stream.message()
            await notify(Topic(TopicKind.TOOLS), Topic(TopicKind.RESOURCES), note(2))
            assert await stream.is_silent(0.7)
            await notify(Topic(TopicKind.PROMPTS), note(1))
            return first, [await stream.message(), await stream.message()]

    first, rest = on_loop(main())
    assert first["params"]["notifications"] == {
        "promptsListChanged": True,
        "resourceSubscriptions": ["note://1"],
    }
    assert [told(each) for each in rest] == [PROMPTS, "note://1"]


@pytest.mark.parametrize(
    "wish", [{}, {"toolsListChanged": False}, {"resourceSubscriptions": []}, {"unknown": True}]
)
def test_a_stream_that_asks_for_nothing_hears_nothing(application, on_loop, wish):
    async def main():
        async with listening(application, wish) as stream:
            first = await stream.message()
            await notify(Topic(TopicKind.TOOLS))
            assert await stream.is_silent(0.7)
        return first

    assert on_loop(main())["params"]["notifications"] == {}


def test_a_server_acknowledges_what_it_has(application, on_loop, settings):
    small = MCPServer("small")
    small.tool(name="it")(lambda: "")
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=small))

    async def main():
        wish = {**EVERYTHING, "resourceSubscriptions": ["note://1"]}
        async with listening(application, wish) as stream:
            return await stream.message()

    assert on_loop(main())["params"]["notifications"] == {"toolsListChanged": True}


def test_what_changed_before_is_no_news_and_what_changes_meanwhile_is(
    application, on_loop, monkeypatch
):
    """Between its rows and its acknowledgement nothing gets lost."""
    original = listen_peer.begin_listening

    def begin(*args: Any, **owned: str) -> int:
        last = original(*args, **owned)
        server.notify_tools_changed()
        server.notify_resource_updated("note://1")
        return last

    monkeypatch.setattr(listen_peer, "begin_listening", begin)

    async def main():
        await notify(Topic(TopicKind.PROMPTS))
        wish = {**EVERYTHING, "resourceSubscriptions": ["note://1"]}
        async with listening(application, wish) as stream:
            found = [await stream.message() for _ in range(3)]
            assert await stream.is_silent()
        return [told(each) for each in found]

    assert on_loop(main()) == [ACKNOWLEDGED, TOOLS, "note://1"]


def test_many_uris_do_not_keep_the_loop_from_others(application, on_loop, monkeypatch):
    threads = set()
    key_of = listen_peer.key_of

    def noting(topic: Topic) -> Any:
        threads.add(threading.get_ident())
        return key_of(topic)

    monkeypatch.setattr(listen_peer, "key_of", noting)

    async def main():
        async with listening(application, {"resourceSubscriptions": ["note://1"]}) as stream:
            await stream.message()
        return threading.get_ident()

    loop = on_loop(main())
    assert threads
    assert loop not in threads


def test_listening_is_counted_as_it_leaves_a_row(application, on_loop, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "RATE_LIMIT": "2/d"}

    async def main():
        for _ in range(2):
            async with listening(application, EVERYTHING) as stream:
                assert stream.is_stream
                await stream.message()
        message, headers = modern("subscriptions/listen", 7, notifications=EVERYTHING)
        return await post(application, message, headers=headers)

    refused = on_loop(main())
    assert (refused.status, refused.json()["id"]) == (429, 7)


@pytest.mark.parametrize("place", ["_register", "begin_listening"])
def test_who_leaves_while_it_is_registered_leaves_nothing(application, on_loop, monkeypatch, place):
    """Its thread goes on: whatever it still writes has an end nevertheless."""
    reached, left = threading.Event(), threading.Event()
    finished: list[bool] = []
    module = listen_peer.ListenPeer if place == "_register" else listen_peer
    original = getattr(module, place)

    def held(*args: Any, **owned: str) -> Any:
        reached.set()
        assert left.wait(BOUND)
        try:
            return original(*args, **owned)
        finally:
            finished.append(True)

    monkeypatch.setattr(module, place, held)

    async def main():
        try:
            async with asyncio.timeout(BOUND), AsyncExitStack() as stack:
                stream = listening(application, {"resourceSubscriptions": ["note://1"]})
                entering = asyncio.create_task(stack.enter_async_context(stream))
                await asyncio.to_thread(reached.wait, BOUND)
                entering.cancel()
                await asyncio.wait([entering])
                while ledger().requests:
                    await asyncio.sleep(0.01)
        finally:
            left.set()
        await until(lambda: finished, [True])
        await until(PendingRequest.objects.filter(state="running").count, 0)
        await until(Subscription.objects.count, 0)

    on_loop(main())


def test_each_spelling_of_a_uri_is_told(application, on_loop):
    async def main():
        wish = {"resourceSubscriptions": ["note://é", "note://%c3%a9", "note://é"]}
        async with listening(application, wish) as stream:
            await stream.message()
            await notify(note("%C3%A9"))
            found = {told(await stream.message()), told(await stream.message())}
            assert await stream.is_silent()
        return found

    assert on_loop(main()) == {"note://é", "note://%c3%a9"}


def test_what_cannot_be_seen_cannot_be_listened_to(application, on_loop, users):
    async def main():
        wish = {"resourceSubscriptions": ["secret://1", "unknown://1", "note://1"]}
        found = []
        for name in users:
            async with listening(application, wish, X_User=name) as stream:
                found.append((await stream.message())["params"]["notifications"])
        return found

    assert on_loop(main()) == [
        {"resourceSubscriptions": ["secret://1", "note://1"]},
        {"resourceSubscriptions": ["note://1"]},
    ]


def test_several_streams_at_once_hear_each_for_itself(application, on_loop):
    async def main():
        async with AsyncExitStack() as stack:
            opened = [
                await stack.enter_async_context(listening(application, EVERYTHING, id=name))
                for name in ("a", "b", "a")
            ]
            for each in opened:
                await each.message()
            await notify(Topic(TopicKind.RESOURCES))
            found = [await each.message() for each in opened]
        return [(told(each), tag(each)) for each in found]

    assert on_loop(main()) == [(RESOURCES, "a"), (RESOURCES, "b"), (RESOURCES, "a")]


# Its row


def test_a_stream_is_a_row_while_it_lasts(application, on_loop, users):
    async def main():
        wish = {"resourceSubscriptions": ["note://1", "note://2"]}
        async with listening(application, wish, id="x", X_User="anna", X_Client="c") as stream:
            await stream.message()
            row = await in_thread(PendingRequest.objects.get)
            assert (row.method, row.request_id, row.state) == (
                "subscriptions/listen",
                '"x"',
                "running",
            )
            assert (row.user_id, row.client_id, row.server) == (
                users["anna"].pk,
                "c",
                server.name,
            )
            assert row.lease_until is not None
            assert await in_thread(Subscription.objects.filter(request=row).count) == 2
        await ended()

    on_loop(main())


def test_one_that_has_waited_long_for_its_turn_has_one_row(
    application, on_loop, settings, monkeypatch
):
    """It is a long call before it is a stream: others of that age are written by the ledger."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STREAM_AFTER_SECONDS": 0.001}
    register = listen_peer.ListenPeer._register

    def late(self: Any, topics: Any) -> Any:
        ledger().requests.want_rows_for_long_calls()
        ledger()._write()
        return register(self, topics)

    monkeypatch.setattr(listen_peer.ListenPeer, "_register", late)

    async def main():
        async with listening(application, EVERYTHING) as stream:
            first = await stream.message()
            await notify(Topic(TopicKind.TOOLS))
            return first, await stream.message(), await in_thread(PendingRequest.objects.count)

    first, second, rows = on_loop(main())
    assert (first["method"], told(second), rows) == (ACKNOWLEDGED, TOOLS, 1)


def test_whoever_ends_it_ends_it_gracefully(application, on_loop):
    """As in the admin: the client learns that nothing went wrong."""

    async def main():
        async with listening(application, EVERYTHING, id=7) as stream:
            await stream.message()
            await in_thread(lambda: PendingRequest.objects.update(cancel_requested=True))
            ledger().look_now()
            last = await stream.message()
            assert await stream.event() is None
        await ended("answered")
        return last

    last = on_loop(main())
    assert last["id"] == 7
    assert last["result"]["resultType"] == "complete"
    assert tag(last) == 7
    assert last["result"].keys() == {"resultType", "_meta"}


def test_a_client_that_goes_leaves_nothing_behind(application, on_loop):
    async def main():
        wish = {**EVERYTHING, "resourceSubscriptions": ["note://1"]}
        async with listening(application, wish) as stream:
            await stream.message()
        await ended()
        assert not ledger().changes

    on_loop(main())


def test_too_many_resources_are_refused(application, on_loop, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MAX_SUBSCRIPTIONS": 2}

    async def main():
        wish = {"resourceSubscriptions": [f"note://{key}" for key in range(3)]}
        async with listening(application, wish) as refused:
            return await refused.json()

    error = on_loop(main())["error"]
    assert error["code"] == -32602
    assert "2 resources at most" in error["message"]
    assert not PendingRequest.objects.exists()


# The connection


def test_a_comment_keeps_the_connection_alive(application, on_loop, monkeypatch):
    quick = replace(ON_LOOP, keep_alive_seconds=0.05)
    monkeypatch.setattr(MountRequest, "pace", quick)
    monkeypatch.setattr(views, "ON_LOOP", quick)

    async def main():
        async with listening(application, EVERYTHING) as stream:
            await stream.message()
            assert await stream.is_silent(0.3)
            await notify(Topic(TopicKind.TOOLS))
            assert told(await stream.message()) == TOOLS
            return stream

    stream = on_loop(main())
    lines = stream.text.split("\n")
    assert any(line.startswith(":") for line in lines)
    assert not any(line.startswith(("id:", "retry:")) for line in lines)
    assert stream.headers["x-accel-buffering"] == "no"


def test_a_message_puts_the_next_comment_off(on_loop):
    async def main():
        loop, every = asyncio.get_running_loop(), ON_LOOP.keep_alive_seconds
        queue = SendQueue(loop)
        begun = loop.time()
        stream = event_stream.EventStream(queue, queue.close)
        try:
            queue.put([StoredMessage(0, MessageKind.NOTIFICATION, "{}")])
            times = (begun + every * passed for passed in (0.5, 1.25, 1.75, 2.5, 3))
            return [stream._next(now) for now in times]
        finally:
            stream.close()

    assert on_loop(main()) == [sse.event(b"{}"), None, sse.KEEP_ALIVE, None, sse.KEEP_ALIVE]


def test_a_client_that_does_not_read_hears_once_of_what_changed_often(
    application, on_loop, monkeypatch
):
    """What it has no room for stays in the rows, where it is one of each."""
    monkeypatch.setattr(send_queue, "HELD_MESSAGES", 0)

    async def main():
        async with listening(application, EVERYTHING) as stream:
            await stream.message()
            for _ in range(20):
                await notify(Topic(TopicKind.TOOLS))
            assert await stream.is_silent(0.7)
            monkeypatch.setattr(send_queue, "HELD_MESSAGES", 500)
            found = await stream.message()
            assert await stream.is_silent(0.7)
        return found

    assert told(on_loop(main())) == TOOLS


def test_who_takes_no_stream_is_told_so(application, on_loop):
    async def main():
        async with listening(application, {}, id="x", Accept="application/json") as refused:
            return refused.status, await refused.json()

    status, answer = on_loop(main())
    assert status == 406
    assert answer["id"] == "x"


@pytest.mark.parametrize("params", [{}, {"notifications": []}, {"notifications": None}])
def test_a_filter_is_needed(application, on_loop, params):
    async def main():
        message, headers = modern("subscriptions/listen", **params)
        return await post(application, message, headers=headers)

    assert on_loop(main()).json()["error"]["code"] == -32602


def test_sessions_have_no_listen(application, on_loop):
    assert MCPClient(server).request("subscriptions/listen", notifications={}).error["code"] == (
        -32601
    )


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "text/event-stream"])
def test_where_no_stream_can_be_held_it_acknowledges_nothing_and_ends(accept):
    """Behind WSGI."""
    client = MCPClient(server, revision="2026-07-28")
    message, headers = modern("subscriptions/listen", "x", notifications=EVERYTHING)
    response = client.http("POST", json.dumps(message).encode(), Accept=accept, **headers)
    first, last = messages_of(response.headers["Content-Type"], response.content)
    assert (first["method"], first["params"]["notifications"]) == (ACKNOWLEDGED, {})
    assert last["result"]["resultType"] == "complete"
    assert tag(first) == tag(last) == last["id"] == "x"
    assert not PendingRequest.objects.exists()


def test_many_streams_cost_one_query(application, on_loop, django_assert_num_queries):
    found: list[str] = []

    def plant(_: int) -> Any:
        return feed.ChangeListener(
            server=server.name,
            wanted={change_log.TopicKey("tools"): ["{}"]},
            seen=0,
            deliver=found.extend,
            ready=lambda: True,
        )

    change_log.write(server.name, [Topic(TopicKind.TOOLS)])
    duty = ledger().changes
    for listener in map(plant, range(500)):
        duty.add(listener)
    with django_assert_num_queries(1):
        duty.tick()
    assert found == ["{}"] * 500
    assert Change.objects.count() == 1
