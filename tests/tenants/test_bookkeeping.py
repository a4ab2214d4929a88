"""One process keeps the books of all tenants: what lasts, what others left behind, what is old."""

from __future__ import annotations

import asyncio
import time
import uuid
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connections
from django.test.utils import CaptureQueriesContext

from django_mcp.auth import Principal
from django_mcp.clock import DatabaseNow
from django_mcp.models import Claim, PendingRequest, Session
from django_mcp.partitions import enter_partition
from django_mcp.store import bookkeeper, partition_books, partitioned_ledger
from django_mcp.store.bookkeeper import Bookkeeper
from django_mcp.store.database import alias
from django_mcp.store.delivery.records import CallRecord
from django_mcp.store.delivery.stream_readers import StreamReader
from django_mcp.store.in_flight.running_requests import RunningRequest, StopReason
from django_mcp.store.ledger import close_ledger, ledger
from tests.support.messages import response
from tests.support.waiting import in_thread, until

from . import offers
from .tenancy import NUMBER, SCHEMAS, leave, legacy, modern, people

BOTH = ("acme", "globex")
at_the_mount = pytest.mark.parametrize("streaming", ["mount"], indirect=True)


def requests(tenant: str) -> list[str]:
    with enter_partition(tenant):
        return list(PendingRequest.objects.values_list("state", flat=True))


def states(tenant: str) -> list[str]:
    with enter_partition(tenant):
        return list(Session.objects.values_list("state", flat=True))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all partitions be visited within moments."""
    monkeypatch.setattr(partitioned_ledger, "ROUND_SECONDS", 0.2)
    monkeypatch.setattr(bookkeeper, "VISIT_SECONDS", 0.05)


@pytest.mark.parametrize("tool", ["wait", "await_"])
def test_a_call_that_lasts_is_a_row_of_its_tenant(entrance, on_loop, tool):
    async def main() -> None:
        for tenant, other in (BOTH, BOTH[::-1]):
            client = await legacy(entrance, tenant).open()
            gate = f"{tool} {tenant}"

            async def look(gate: str = gate, tenant: str = tenant, other: str = other) -> None:
                await in_thread(offers.gates[f"{gate} reached"].wait, 20)
                await until(partial(requests, tenant), ["running"])
                assert "running" not in await in_thread(requests, other)
                offers.gates[gate].set()

            looking = asyncio.ensure_future(look())
            async with client.call(tool, gate=gate) as answer:
                (*_, last) = await answer.messages()
            await looking
            assert last["result"]["structuredContent"]["items"] == f"{tenant}'s"
            await until(partial(requests, tenant), ["answered"])
            await in_thread(drop_requests, tenant)

    on_loop(main())


def drop_requests(tenant: str) -> None:
    with enter_partition(tenant):
        PendingRequest.objects.all().delete()


def test_a_question_is_answered_at_its_tenant(streaming, on_loop):
    async def main() -> None:
        for tenant in BOTH:
            client = await legacy(streaming, tenant).open(elicitation={})
            stranger = await legacy(streaming, {*BOTH}.difference({tenant}).pop()).open()
            async with client.call("asks") as answer:
                asked = await answer.message()
                given = {"action": "accept", "content": {"value": 3}}
                wrong = {"action": "accept", "content": {"value": 666}}
                await stranger.send(response(asked["id"], wrong))
                await client.answer(asked, given)
                (*_, last) = await answer.messages()
            assert last["result"]["content"][0]["text"] == f"{tenant} 3"

    on_loop(main())


def test_who_may_stay_no_longer_is_another_at_another_tenant(streaming, on_loop):
    def deactivate() -> None:
        with enter_partition("globex"):
            people().filter(pk=NUMBER).update(is_active=False)

    async def main() -> None:
        mine, other = modern(streaming, "acme"), modern(streaming, "globex")
        async with (
            mine.call("await_", gate="stays") as first,
            other.call("await_", gate="goes") as second,
        ):
            await in_thread(offers.gates["stays reached"].wait, 20)
            await in_thread(deactivate)
            assert (await second.messages())[-1]["error"]
            offers.gates["stays"].set()
            assert (await first.messages())[-1]["result"]["structuredContent"]["where"] == "acme"

    on_loop(main())


@at_the_mount
def test_what_a_dead_process_left_at_a_quiet_tenant_is_ended(
    streaming, settings, on_loop, hasty, monkeypatch
):
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"LEASE_SECONDS": 2}

    def leave_one() -> None:
        with enter_partition("globex"):
            PendingRequest.objects.using(alias()).create(
                server="desk",
                request_id="1",
                method="tools/call",
                owner="dead",
                lease_until=DatabaseNow() - timedelta(seconds=1),
            )

    async def main() -> None:
        await in_thread(leave_one)
        client = await legacy(streaming, "acme").open()
        async with asyncio.timeout(20):
            while await in_thread(requests, "globex") != ["failed"]:
                await client.value("facts")

    on_loop(main())


@at_the_mount
def test_what_is_old_at_a_quiet_tenant_goes(streaming, on_loop, hasty):
    async def main() -> None:
        await legacy(streaming, "globex").open()
        await in_thread(close_ledger)
        await in_thread(age, "globex")
        client = await legacy(streaming, "acme").open()
        async with asyncio.timeout(20):
            while await in_thread(states, "globex") != ["ended"]:
                await client.value("facts")
        assert await in_thread(states, "acme") == ["ready"]

    on_loop(main())


def age(tenant: str) -> None:
    with enter_partition(tenant):
        Session.objects.update(
            last_active=DatabaseNow() - timedelta(days=40),
            expires=DatabaseNow() - timedelta(days=10),
            used_hour=1,
        )
        # The process that has cleaned until now is no more.
        Claim.objects.all().delete()


@at_the_mount
def test_the_command_prunes_all_of_them_or_one(streaming, on_loop, capsys):
    async def main() -> None:
        for tenant in BOTH:
            await legacy(streaming, tenant).open()

    on_loop(main())
    leave()
    for tenant in BOTH:
        age(tenant)
    call_command("mcp", "prune", "--dry-run")
    said = capsys.readouterr().out
    assert said.count("expired sessions") == 2
    assert said.index("acme") < said.index("globex")
    call_command("mcp", "--partition=globex", "prune")
    assert [states(tenant) for tenant in BOTH] == [["ready"], ["ended"]]
    call_command("mcp", "prune")
    assert [states(tenant) for tenant in BOTH] == [["ended"], ["ended"]]


@pytest.mark.skipif(not SCHEMAS, reason="a command of django-tenants")
@at_the_mount
def test_a_command_for_one_tenant_prunes_there(streaming, on_loop):
    async def main() -> None:
        for tenant in BOTH:
            await legacy(streaming, tenant).open()

    on_loop(main())
    leave()
    for tenant in BOTH:
        age(tenant)
    call_command("tenant_command", "mcp", "prune", schema_name="acme")
    leave()
    assert [states(tenant) for tenant in BOTH] == [["ended"], ["ready"]]


class Running(RunningRequest):
    """A call that lasts, and is a row as far as the books know."""

    def __init__(self, user: Any) -> None:
        super().__init__(1, "tools/call", "x")
        self.principal = Principal(user, "client")
        self.session_id = None
        self.stopped: list[StopReason] = []

    def want_rows(self) -> None:
        """Never become one."""

    def stop(self, reason: StopReason) -> None:
        self.stopped.append(reason)


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the bookkeeping be done by tick() alone."""
    monkeypatch.setattr(Bookkeeper, "_start", lambda self: None)


def runs(tenant: str) -> Running:
    """Let a call run at a tenant, and a stream be shown."""
    with enter_partition(tenant):
        running = Running(people().get(pk=NUMBER))
        ledger().add_request(running)
        reader = StreamReader(
            uuid.uuid4(), 0, 1, False, lambda _: None, lambda: None, has_local_calls=True
        )
        ledger().readers.add(reader)
    return running


def statements(using: str) -> list[str]:
    with CaptureQueriesContext(connections[using]) as queries:
        ledger().tick()
    return [each["sql"] for each in queries]


@pytest.mark.skipif(not SCHEMAS, reason="counted for schemas")
def test_the_path_is_set_once_for_each_tenant_and_tick(by_hand):
    for tenant in BOTH:
        runs(tenant)
    ledger().tick()
    time.sleep(0.6)
    found = statements("default")
    paths = [each for each in found if "search_path" in each]
    # Beside it one statement about the streams, one about the users.
    assert (len(paths), len(found)) == (len(BOTH), 3 * len(BOTH)), found


@pytest.mark.skipif(not SCHEMAS, reason="counted for schemas")
def test_the_path_of_one_tenant_alone_is_known(by_hand):
    runs("acme")
    ledger().tick()
    time.sleep(0.6)
    found = statements("default")
    # The server knows it: not a statement more than without partitions.
    assert len(found) == 2, found
    assert not [each for each in found if "search_path" in each]


def test_only_where_something_is_in_flight_anything_is_asked(by_hand):
    for tenant in BOTH:
        runs(tenant)
    ledger().tick()
    for running in ledger().requests.running():
        if running.partition == "globex":
            ledger().requests.remove(running)
    for reader in ledger().readers.all():
        if reader.partition == "globex":
            ledger().readers.remove(reader)
    for _ in range(3):
        ledger().tick()
        time.sleep(0.55)
    asked = {books.partition for each in ledger()._bookkeepers.values() for books in each.active()}
    assert asked == {"acme"}


@pytest.mark.skipif(not SCHEMAS, reason="content types are cached by database")
def test_the_bookkeeping_leaves_the_content_types_of_the_process_alone(by_hand):
    for tenant in BOTH:
        runs(tenant)
    ledger().tick()
    with enter_partition("acme"):
        ContentType.objects.get_for_model(Session)
        assert ContentType.objects._cache
        ledger().tick()
        assert ContentType.objects._cache


def test_what_fails_at_one_tenant_keeps_nobody_else_from_being_looked_after(by_hand, monkeypatch):
    mine, other = runs("acme"), runs("globex")

    def deactivate(tenant: str) -> None:
        with enter_partition(tenant):
            people().filter(pk=NUMBER).update(is_active=False)

    books = ledger().books_of("acme")

    def broken() -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(books.requests, "look", broken)
    deactivate("globex")
    time.sleep(0.55)
    ledger().tick()
    assert other.stopped
    assert not mine.stopped
    assert books.failed == 1


def test_outside_of_any_partition_nothing_is_noted():
    with pytest.raises(RuntimeError, match="enter_partition"):
        ledger().add_request(CallRecord(1, "tools/call", "x"))


def test_a_pause_grows_where_tables_are_missing(monkeypatch):
    monkeypatch.setattr(partition_books, "PAUSE_SECONDS", 1.0)
    books = ledger().books_of("acme")
    pauses = []
    for _ in range(7):
        books.note_failure(RuntimeError(), is_outage=False)
        pauses.append(round(books.pause))
    assert pauses == [2, 4, 8, 16, 30, 30, 30]


def test_very_many_are_looked_at_less_often(by_hand):
    for tenant in BOTH:
        runs(tenant)
    ledger().tick()
    (keeper, *_) = ledger()._bookkeepers.values()
    keeper._cost = 0.8 / len(keeper.active())
    ledger().tick()
    (books, *_) = keeper.active()
    assert 1.2 < books.pause <= 1.6
    keeper._cost = 60.0
    ledger().tick()
    assert 1.9 < books.pause <= 2.0
    books.wake()
    assert books.pause == 0
