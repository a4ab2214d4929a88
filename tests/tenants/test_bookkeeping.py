"""One process keeps the books of all tenants: what lasts, what others left behind, what is old."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import DataError, OperationalError, ProgrammingError, connections, transaction
from django.test.utils import CaptureQueriesContext

from django_mcp.auth import Principal
from django_mcp.clock import DatabaseNow
from django_mcp.models import Claim, PendingRequest, Session
from django_mcp.partitions import enter_for_bookkeeping, enter_partition, here, partitions
from django_mcp.protocol.topics import Topic, TopicKind
from django_mcp.store import bookkeeper, partition_books, partitioned_ledger
from django_mcp.store.bookkeeper import Bookkeeper
from django_mcp.store.changes.feed import ChangeListener
from django_mcp.store.database import alias
from django_mcp.store.delivery.records import CallRecord
from django_mcp.store.delivery.stream_readers import StreamReader
from django_mcp.store.doorbell import Doorbell
from django_mcp.store.in_flight.running_requests import RunningRequest, StopReason
from django_mcp.store.ledger import PAUSE_SECONDS, close_ledger, ledger
from tests.support.messages import response
from tests.support.waiting import in_thread, until

from . import offers
from .tenancy import NUMBER, SCHEMAS, item, leave, legacy, modern, people

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


@pytest.mark.skipif(not SCHEMAS, reason="a connection has a path")
def test_a_path_that_went_with_a_failed_transaction_is_set_again():
    """Caught where it was raised, the error is known to nobody who commits."""

    def items(tenant: str) -> list[str]:
        with enter_for_bookkeeping(tenant):
            return list(item().values_list("name", flat=True))

    def caught() -> None:
        with (
            enter_for_bookkeeping("globex"),
            transaction.atomic(),
            connections["default"].cursor() as cursor,
            suppress(DataError),
        ):
            cursor.execute("SELECT 1 / 0")

    def main() -> None:
        assert items("acme") == ["acme's"]
        caught()
        assert items("globex") == ["globex's"]

    in_own_thread(main)


@pytest.mark.skipif(not SCHEMAS, reason="a connection has a path")
def test_a_connection_of_the_bookkeeping_comes_from_no_pool_and_goes_to_none():
    """Whoever got it next would wait for no lock as long as he wants to."""
    given = connections.settings["default"]

    def main() -> None:
        connection = connections["default"]
        options = {**given["OPTIONS"], "pool": True}
        connection.settings_dict = {**connection.settings_dict, "OPTIONS": options}
        with enter_for_bookkeeping("acme"):
            assert item().get().name == "acme's"
            assert connection.pool is None
        assert options["pool"]

    in_own_thread(main)


def in_own_thread(function: Callable[[], None]) -> None:
    """Run something with connections that nobody else has."""
    asyncio.run(in_thread(function))


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


@pytest.mark.parametrize("error", [RuntimeError, ProgrammingError])
def test_what_fails_at_one_tenant_keeps_nobody_else_from_being_looked_after(
    by_hand, monkeypatch, error
):
    """And ends nothing there, as long as the tenant is still one."""
    mine, other = runs("acme"), runs("globex")

    def deactivate(tenant: str) -> None:
        with enter_partition(tenant):
            people().filter(pk=NUMBER).update(is_active=False)

    books = ledger().books_of("acme")

    def broken() -> None:
        raise error("planted")

    monkeypatch.setattr(books.requests, "look", broken)
    deactivate("globex")
    time.sleep(0.55)
    ledger().tick()
    assert other.stopped
    assert not mine.stopped
    assert books.failed == 1
    assert books.pause > PAUSE_SECONDS


def test_a_small_job_is_done_at_the_tenant_that_is_named_or_the_present_one(by_hand):
    done: list[str] = []
    with enter_partition("acme"):
        ledger().run(lambda: done.append(here()))
        ledger().run(lambda: done.append(here()), "globex")
    assert ledger().is_writing
    ledger().tick()
    assert sorted(done) == ["acme", "globex"]
    assert not ledger().is_writing


def test_of_a_question_that_nobody_waits_for_nothing_is_kept(by_hand):
    question = uuid.uuid4()
    with enter_partition("acme"):
        ledger().requests.watch_question(question, lambda answer: None)
    assert ledger().requests
    ledger().requests.unwatch_question(question)
    ledger().requests.unwatch_question(question)
    assert not ledger().requests


def test_other_processes_can_wake_it_from_the_first_need_on(by_hand, monkeypatch):
    started: list[Doorbell] = []
    monkeypatch.setattr(Doorbell, "start", lambda self: started.append(self))
    for tenant in BOTH:
        runs(tenant)
    ledger().wake()
    assert started == [ledger().doorbell]
    own = ledger()
    close_ledger()
    own._started = False
    own.wake()
    assert len(started) == 1, "it has ended"


@at_the_mount
def test_how_sessions_were_used_is_written_before_the_thread_ends(streaming, on_loop):
    async def main() -> tuple[int, int]:
        client = await legacy(streaming, "acme").open()
        for _ in range(3):
            await client.value("facts")
        await in_thread(close_ledger)
        return client.sent, await in_thread(counted)

    def counted() -> int:
        with enter_partition("acme"):
            return Session.objects.get().request_count

    sent, written = on_loop(main())
    assert written == sent


# Rounds


def use(tenant: str) -> None:
    with enter_partition(tenant):
        ledger().note_activity()


def left_to_visit() -> int:
    keepers = ledger()._bookkeepers.values()
    return sum(len(each._visits) + bool(each._visited) for each in keepers)


def test_a_round_begins_when_its_time_has_come_in_a_process_that_is_used(by_hand):
    ledger()._round_at = 0.0
    ledger().books_of("acme").wake()
    ledger().tick()
    assert (left_to_visit(), ledger()._seconds_until_round()) == (0, float("inf"))
    ledger()._round_at = float("inf")
    use("acme")
    ledger().tick()
    assert (left_to_visit(), ledger()._seconds_until_round()) == (0, float("inf"))
    ledger()._round_at = begun = time.monotonic()
    assert ledger()._seconds_until_round() == 0.5
    ledger().tick()
    assert left_to_visit() == len(BOTH)
    assert ledger()._round_at >= begun + partitioned_ledger.ROUND_SECONDS
    assert ledger()._seconds_until_round() == float("inf"), "until it is used again"


def test_a_round_begins_when_all_have_been_visited_in_the_last(by_hand):
    ledger()._round_at = 0.0
    use("acme")
    ledger().tick()
    ledger()._round_at = 0.0
    use("acme")
    ledger().tick()
    assert left_to_visit() == len(BOTH)


def test_a_round_ends_when_the_last_visit_is_over(by_hand, monkeypatch):
    for name in ("VISIT_SECONDS", "LONGEST_VISIT_SECONDS"):
        monkeypatch.setattr(bookkeeper, name, 0)
    ledger()._round_at = 0.0
    use("acme")
    left = []
    for _ in range(len(BOTH) + 2):
        ledger().tick()
        left.append(left_to_visit())
    assert left[0] > 0
    assert left[-1] == 0


def test_a_round_forgets_tenants_that_are_no_more_once_nothing_runs_there(by_hand, monkeypatch):
    kept = [ledger().books_of("acme"), runs("globex") and ledger().books_of("globex")]
    monkeypatch.setattr(type(partitions()), "all", lambda self: ["acme"])
    ledger()._plan(["acme"])
    assert ledger().books() == kept
    ledger().books_of("globex").is_resting = True
    ledger()._plan(["acme"])
    assert ledger().books() == kept[:1]


def test_who_cannot_find_out_which_tenants_there_are_asks_again(by_hand, monkeypatch):
    topic = Topic(TopicKind.TOOLS)

    def broken(self: Any) -> Any:
        raise OperationalError("planted")

    use("acme")
    with monkeypatch.context() as outage:
        outage.setattr(type(partitions()), "all", broken)
        ledger().publish_later("desk", [topic])
        ledger().tick()
    assert 0 < ledger()._seconds_until_round() <= PAUSE_SECONDS
    ledger().tick()
    assert all(ledger().books_of(tenant).changes for tenant in BOTH)
    assert not left_to_visit()


def test_a_tenant_is_not_taken_for_gone_while_nobody_can_say(by_hand, monkeypatch):
    running = runs("acme")

    def broken(*given: Any) -> Any:
        raise ProgrammingError("planted")

    with monkeypatch.context() as outage:
        outage.setattr(type(partitions()), "all", broken)
        outage.setattr(ledger().books_of("acme").requests, "look", broken)
        ledger().tick()
    assert ledger().books_of("acme").failed == 1
    assert not running.stopped


def test_who_is_told_of_changes_looks_where_somebody_listens(by_hand):
    with enter_partition("acme"):
        ledger().changes.add(ChangeListener("desk", {}, 0, lambda _: None, lambda: True))
    runs("globex")
    ledger().tick()
    assert not any(books._was_woken for books in ledger().books())
    ledger().doorbell.wake_everybody()
    assert [ledger().books_of(tenant)._was_woken for tenant in BOTH] == [True, False]


def test_who_is_rung_looks_wherever_something_is_in_flight(by_hand):
    for tenant in BOTH:
        runs(tenant)
    ledger().tick()
    assert not any(ledger().books_of(tenant)._is_due for tenant in BOTH)
    ledger().look_now("acme")
    assert [ledger().books_of(tenant)._is_due for tenant in BOTH] == [True, False]
    ledger().look_now()
    assert [ledger().books_of(tenant)._is_due for tenant in BOTH] == [True, True]


def test_what_is_left_to_clean_when_a_turn_ends_waits_for_the_next(by_hand):
    books = ledger().books_of("acme")
    sweep = books.turn_sweep
    with enter_partition("acme"):
        books.begin_visit()
        sweep.tick()
        left = len(sweep._turns)
        sweep.end_turn()
        sweep._step = float("-inf")
        sweep.tick()
        assert len(sweep._turns) == left > 0
        assert not sweep
        assert sweep.pause == float("inf")


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


def test_a_pause_during_an_outage_is_as_long_as_the_last_look_was(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(partition_books, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(partition_books, "PAUSE_SECONDS", 0.1)
    books = ledger().books_of("acme")
    now[0] += 3600  # nobody has needed it

    def takes_a_second() -> None:
        now[0] += 1
        raise OperationalError("planted")

    monkeypatch.setattr(books, "tick", takes_a_second)
    with pytest.raises(OperationalError), enter_partition("acme"):
        books.keep()
    books.note_failure(OperationalError("planted"), is_outage=True)
    books._was_woken = True
    assert books.pause == pytest.approx(4)


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
