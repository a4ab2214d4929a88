"""What a process leaves behind when it dies, and who ends it."""

from __future__ import annotations

import json
import threading
import time

import pytest
from django.db import connections

from django_mcp.models import OutgoingMessage, PendingRequest, Stream, Subscription
from django_mcp.protocol.errors import taken_for_dead
from django_mcp.store.in_flight import recovery
from django_mcp.store.in_flight.recovery import Heartbeat, end_abandoned
from django_mcp.store.ledger import Ledger
from tests.support.client import Client
from tests.support.messages import IDS, response, tool_call
from tests.support.waiting import in_thread, until

from . import site
from .abandoned import DEAD, Abandoned
from .conftest import at_the_mount


@pytest.fixture
def _half_minute(settings):
    """Let a lease last for six steps of the planted clock."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LEASE_SECONDS": 30}


@pytest.fixture
def _trusting(monkeypatch, settings):
    """Let every process tell the dead from the living at once, and look often."""
    monkeypatch.setattr(Heartbeat, "is_trusted", True)
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LEASE_SECONDS": 2}


def responses(abandoned):
    rows = OutgoingMessage.objects.filter(stream=abandoned.post.id, kind="response")
    return [json.loads(body) for body in rows.order_by("seq").values_list("body", flat=True)]


@at_the_mount
@pytest.mark.usefixtures("_trusting")
@pytest.mark.parametrize("request_id", IDS, ids=repr)
def test_who_comes_back_hears_that_the_outcome_is_unknown(
    application, on_loop, valid_wire, request_id
):
    async def main():
        client = await Client(application).open()
        call = {"id": request_id, "method": "tools/call", "params": {"name": "gone"}}
        valid_wire.was_sent_elsewhere(client.session_id, call)
        abandoned = await in_thread(Abandoned, request_id)
        await in_thread(abandoned.die)
        async with client.listen(abandoned.beginning) as resumed:
            messages = await resumed.messages()
        async with client.listen(abandoned.beginning) as again:
            assert await again.messages() == messages
        return messages

    said, error = on_loop(main())
    assert said["params"]["data"] == "begun"
    assert (type(error["id"]), error["id"]) == (type(request_id), request_id)
    assert error["error"] == {"code": -32603, "message": taken_for_dead().message}
    row = PendingRequest.objects.get()
    assert (row.state, bool(row.ended)) == ("failed", True)
    assert Stream.objects.get().closed


@pytest.mark.usefixtures("_trusting")
def test_any_request_makes_a_process_look(application, on_loop):
    """Not only those that wait for the dead call."""

    async def main():
        client = await Client(application).open()
        abandoned = await in_thread(Abandoned, 1)
        await in_thread(abandoned.die)
        await client.result("echo")
        await until(lambda: PendingRequest.objects.get().state, "failed")
        return abandoned

    assert [each["id"] for each in responses(on_loop(main()))] == [1]


def test_an_open_question_ends_with_its_call(application, on_loop):
    async def main():
        client = await Client(application).open(elicitation={})
        abandoned = await in_thread(lambda: Abandoned(1, asks=True))
        await in_thread(abandoned.die)
        await in_thread(end_abandoned)
        late = response(abandoned.question.request_id, {})
        assert await client.send(late) == 202

    on_loop(main())
    states = dict(PendingRequest.objects.values_list("direction", "state"))
    assert states == {"from": "failed", "to": "cancelled"}


def test_a_question_without_a_call_ends_as_well(application, on_loop):
    async def main():
        await Client(application).open()
        return await in_thread(lambda: Abandoned(1, asks=True))

    abandoned = on_loop(main())
    PendingRequest.objects.filter(direction="from").update(state="answered")
    abandoned.die()
    end_abandoned()
    assert PendingRequest.objects.get(direction="to").state == "cancelled"


def test_all_requests_of_a_batch_end_when_one_lease_has_run_out(application, on_loop):
    async def main():
        await Client(application).open("2025-03-26")
        return await in_thread(lambda: Abandoned(1, "two", 3))

    abandoned = on_loop(main())
    abandoned.die(abandoned.calls[1])
    end_abandoned()
    assert sorted(str(each["id"]) for each in responses(abandoned)) == ["1", "3", "two"]
    assert set(PendingRequest.objects.values_list("state", flat=True)) == {"failed"}
    assert Stream.objects.get().next_seq == 5


def test_a_batch_is_registered_as_a_whole(application, on_loop):
    """What has not begun yet has its end, too, if its process dies."""

    async def main():
        client = await Client(application).open("2025-03-26")
        batch = [tool_call("speak_and_wait", number, gate=str(number)) for number in (1, 2)]
        async with client.request("POST", batch) as connection:
            await connection.message()
            states = await in_thread(
                lambda: sorted(PendingRequest.objects.values_list("request_id", "state"))
            )
            site.gates.open("1")
            site.gates.open("2")
            await connection.messages()
        return states

    assert on_loop(main()) == [("1", "running"), ("2", "running")]


def test_who_shows_the_stream_of_a_dead_process_is_named_so_that_he_can_be_woken(
    application, on_loop
):
    async def main():
        await Client(application).open()
        return await in_thread(Abandoned, 1)

    on_loop(main()).die()
    Stream.objects.update(reader="another process")
    assert end_abandoned() == ["another process"]


def test_a_listen_of_a_dead_process_leaves_no_subscription(application, on_loop):
    row = PendingRequest.objects.create(
        method="subscriptions/listen", server="delivery", request_id="1", owner=DEAD.id
    )
    Subscription.objects.create(request=row, server="delivery", uri="a://b", uri_digest="0")
    Abandoned.die(type("Row", (), {"calls": [row]})())
    end_abandoned()
    assert not Subscription.objects.exists()
    row.refresh_from_db()
    assert row.state == "failed"


# Its owner lives after all


def test_an_owner_that_was_settled_has_nothing_more_to_say(application, on_loop):
    """Its process had been stopped for longer than a lease."""

    async def main():
        await Client(application).open()
        return await in_thread(Abandoned, 1)

    abandoned = on_loop(main())
    abandoned.die()
    end_abandoned()
    abandoned.say("here I am")
    assert abandoned.write().stream_has_ended
    abandoned.post.end(abandoned.calls[0], "answered", b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert abandoned.write().stream_has_ended
    (end,) = responses(abandoned)
    assert "error" in end
    assert PendingRequest.objects.get().state == "failed"


def test_what_its_owner_has_ended_is_not_settled(application, on_loop):
    async def main():
        await Client(application).open()
        return await in_thread(Abandoned, 1)

    abandoned = on_loop(main())
    abandoned.die()
    abandoned.post.end(abandoned.calls[0], "answered", b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert not abandoned.write().stream_has_ended
    end_abandoned()
    assert [set(each) for each in responses(abandoned)] == [{"jsonrpc", "id", "result"}]
    assert PendingRequest.objects.get().state == "answered"


def test_one_of_the_two_wins(application, on_loop):
    async def main():
        await Client(application).open()

    on_loop(main())
    for _ in range(20):
        abandoned = Abandoned(1)
        abandoned.die()
        abandoned.post.end(abandoned.calls[0], "answered", b'{"jsonrpc":"2.0","id":1,"result":{}}')
        start = threading.Barrier(2)
        threads = [
            threading.Thread(target=_at_once, args=(start, work))
            for work in (abandoned.write, end_abandoned)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        if PendingRequest.objects.filter(state="running").exists():
            end_abandoned()  # the one that lost had only collided
        (end,) = responses(abandoned)
        state = PendingRequest.objects.order_by("-pk").first().state
        assert state == ("answered" if "result" in end else "failed")


def _at_once(start, work):
    try:
        start.wait()
        work()
    finally:
        connections.close_all()


# Who may end what is abandoned


class Clock:
    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(recovery.time, "monotonic", lambda: self.now)

    def tick(self, heartbeat, seconds, every=5):
        end = self.now + seconds
        while self.now < end:
            self.now += every
            heartbeat.beat()


@pytest.mark.usefixtures("_half_minute")
def test_a_process_is_trusted_after_an_unbroken_lease(monkeypatch):
    clock, heartbeat = Clock(monkeypatch), Heartbeat()
    heartbeat.beat()
    assert not heartbeat.is_trusted
    clock.tick(heartbeat, 25)
    assert not heartbeat.is_trusted
    clock.tick(heartbeat, 5)
    assert heartbeat.is_trusted


@pytest.mark.usefixtures("_half_minute")
def test_a_break_begins_the_lease_anew(monkeypatch):
    clock, heartbeat = Clock(monkeypatch), Heartbeat()
    clock.tick(heartbeat, 60)
    assert heartbeat.is_trusted
    clock.now += 31  # the database was away
    heartbeat.beat()
    assert not heartbeat.is_trusted
    clock.tick(heartbeat, 30)
    assert heartbeat.is_trusted


@pytest.mark.usefixtures("_half_minute")
def test_after_an_outage_longer_than_a_lease_nobody_ends_what_lives(
    application, on_loop, monkeypatch
):
    async def main():
        await Client(application).open()
        return await in_thread(Abandoned, 1)

    abandoned = on_loop(main())
    other = Ledger()
    clock = Clock(monkeypatch)
    for _ in range(10):
        clock.now += 5
        other.recovery.note_activity()
        other.recovery.tick()
    abandoned.die()  # for its process could not renew the lease, any more than others theirs
    clock.now += 60
    other.recovery.note_activity()
    other.recovery.tick()
    assert other.recovery  # stays awake, to see whether it is renewed
    clock.now += 5
    other.recovery.tick()
    assert PendingRequest.objects.get().state == "running"
    for _ in range(6):
        clock.now += 5
        other.recovery.tick()
    assert PendingRequest.objects.get().state == "failed"
    other.recovery.tick()
    clock.now += 5
    other.recovery.tick()
    assert not other.recovery


def test_a_living_process_renews_its_leases(application, on_loop, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "LEASE_SECONDS": 3}

    async def main():
        client = await Client(application).open()
        async with client.call("speak_and_wait") as connection:
            await connection.message()
            first = await in_thread(_lease)
            end = time.monotonic() + 20
            while await in_thread(_lease) == first:
                assert time.monotonic() < end
            site.gates.open()
            return await connection.messages()

    *_, last = on_loop(main())
    assert "result" in last


def _lease():
    return PendingRequest.objects.get().lease_until


def test_who_needs_no_database_does_not_ask_it(django_assert_num_queries):
    """A call of the modern era, for example."""
    own = Ledger()
    with django_assert_num_queries(0):
        own.tick()


@pytest.mark.usefixtures("_trusting")
def test_who_waits_looks_again_until_the_lease_has_run_out(application, on_loop, valid_wire):
    """Its process may have died a moment ago."""

    async def main():
        client = await Client(application).open()
        call = {"id": 1, "method": "tools/call", "params": {"name": "gone"}}
        valid_wire.was_sent_elsewhere(client.session_id, call)
        abandoned = await in_thread(Abandoned, 1)
        await in_thread(abandoned.live)
        async with client.listen(abandoned.beginning) as resumed:
            assert (await resumed.message())["params"]["data"] == "begun"
            assert await resumed.is_silent()
            await in_thread(abandoned.die)
            return await resumed.message()

    assert "error" in on_loop(main())
