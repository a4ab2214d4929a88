"""From the site's code into the rows: on commit, once, in an order that misses nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.db import OperationalError, ProgrammingError, connection, connections, transaction
from django.db.models.signals import post_delete
from django.test.utils import CaptureQueriesContext

from django_mcp import MCPServer, RegistrationError
from django_mcp.clock import DatabaseNow
from django_mcp.models import Change, ChangeCounter, Session, Subscription
from django_mcp.protocol.topics import Topic, TopicKind
from django_mcp.server import model_signals
from django_mcp.store import publisher
from django_mcp.store.changes import change_log
from django_mcp.store.database import with_retries
from django_mcp.store.ledger import ledger
from django_mcp.testing import MCPClient
from tests.store.aging import forget
from tests.support.waiting import until

from .changes import own_signals, server

TOOLS = Topic(TopicKind.TOOLS)
BOUND = 20


def note(key: Any) -> Topic:
    return Topic(TopicKind.RESOURCE, f"note://{key}")


def subscribe(*topics: Topic) -> None:
    """Let a session be subscribed, whatever it is."""
    session = Session.objects.create(
        key_digest="x", server=server.name, revision="2025-11-25", expires=DatabaseNow()
    )
    for topic in topics:
        digest = change_log.key_of(topic).digest
        Subscription.objects.create(
            session=session, server=server.name, uri=topic.uri, uri_digest=digest
        )


@pytest.fixture
def _broken_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is broken the first two times that somebody writes a change."""
    original, failures = change_log.write, iter([OperationalError("planted")] * 2)

    def write(*args: Any) -> bool:
        for failure in failures:
            raise failure
        return original(*args)

    monkeypatch.setattr(change_log, "write", write)


def kinds() -> list[str]:
    return sorted(Change.objects.values_list("kind", flat=True))


def uris() -> list[str]:
    return list(Change.objects.order_by("serial").values_list("uri", flat=True))


class Planted(Exception):
    """What rolls a transaction back."""


def rolled_back(announce: Callable[[], None]) -> None:
    with suppress(Planted), transaction.atomic():
        announce()
        raise Planted


def in_new_thread(function: Any, *args: Any) -> Any:
    def run() -> Any:
        try:
            return function(*args)
        finally:
            connections.close_all()

    return ThreadPoolExecutor(1).submit(run)


# Numbers


def test_a_reader_who_goes_on_from_a_number_misses_nothing(monkeypatch):
    """Whoever takes a later number commits later, so that no number appears behind another."""
    holding, going_on = threading.Event(), threading.Event()
    original = change_log._take_numbers

    def take(server: str, count: int) -> int:
        first = original(server, count)
        if not holding.is_set():
            holding.set()
            assert going_on.wait(BOUND)
        return first

    monkeypatch.setattr(change_log, "_take_numbers", take)
    change_log._counters().create(pk=server.name)
    slow = in_new_thread(change_log.write, server.name, [TOOLS])
    assert holding.wait(BOUND)
    quick = in_new_thread(change_log.write, server.name, [Topic(TopicKind.PROMPTS)])
    # The second one is to wait for the first. If it does not, it is there to be read now.
    time.sleep(0.2)
    assert not quick.done()
    seen, found = 0, {}
    news = change_log.after({server.name: seen}).get(server.name)
    if news is not None:
        seen, found = news.last, dict(news.changed)
    going_on.set()
    assert slow.result(BOUND)
    assert quick.result(BOUND)
    found |= change_log.after({server.name: seen})[server.name].changed
    assert {key.kind for key in found} == {"tools", "prompts"}


def test_many_writers_at_once_lose_nothing():
    """For changes: what was written last of each is what is found in the end."""
    topics = [note(number) for number in range(20)]
    subscribe(*topics)
    done = threading.Event()

    def work(worker: int) -> None:
        for round_ in range(20):
            own = topics[(worker * 5 + round_) % 20]
            with_retries(partial(change_log.write, server.name, [own, TOOLS]))

    def read() -> dict[change_log.TopicKey, int]:
        seen, found = 0, {}
        while True:
            last_round = done.is_set()
            news = change_log.after({server.name: seen}).get(server.name)
            if news is not None:
                assert min(news.changed.values()) > seen
                seen = news.last
                found |= news.changed
            elif last_round:
                return found

    reading = in_new_thread(read)
    for worker in [in_new_thread(work, number) for number in range(4)]:
        worker.result(60)
    done.set()
    found = reading.result(60)
    rows = Change.objects.values_list("kind", "uri_digest", "serial")
    assert found == {change_log.TopicKey(kind, digest): serial for kind, digest, serial in rows}
    assert len(found) == 21
    assert ChangeCounter.objects.get().serial == 4 * 20 * 2


def test_the_first_changes_of_a_server_may_come_at_once():
    """The counter is made by whoever needs it first, and only once."""
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait(BOUND)
        with_retries(lambda: change_log.write(server.name, [TOOLS]))

    for each in [in_new_thread(work) for _ in range(4)]:
        each.result(60)
    assert ChangeCounter.objects.get().serial == 4
    assert kinds() == ["tools"]


def test_more_than_a_page_is_read_page_by_page(monkeypatch):
    monkeypatch.setattr(change_log, "PAGE", 10)
    topics = [note(number) for number in range(35)]
    subscribe(*topics)
    change_log.write(server.name, topics)
    seen, pages = 0, []
    while news := change_log.after({server.name: seen}).get(server.name):
        seen = news.last
        pages.append(len(news.changed))
    assert pages == [10, 10, 10, 5]


# When


def test_what_changed_is_announced_when_it_is_committed():
    with transaction.atomic():
        server.notify_tools_changed()
        assert not in_new_thread(Change.objects.exists).result(BOUND)
        assert not Change.objects.exists()
    assert kinds() == ["tools"]


def test_without_a_transaction_it_is_announced_at_once():
    server.notify_prompts_changed()
    server.notify_resources_changed()
    assert kinds() == ["prompts", "resources"]


def test_what_was_rolled_back_is_not_announced():
    rolled_back(server.notify_tools_changed)
    assert not Change.objects.exists()
    with transaction.atomic():
        server.notify_prompts_changed()
    assert kinds() == ["prompts"]


def test_what_a_savepoint_takes_back_takes_nothing_else_with_it():
    with transaction.atomic():
        rolled_back(server.notify_tools_changed)
        server.notify_prompts_changed()
    assert kinds() == ["prompts"]
    with transaction.atomic():
        server.notify_resources_changed()
        rolled_back(server.notify_resources_changed)
    assert kinds() == ["prompts", "resources"]


def test_a_transaction_announces_once():
    subscribe(*(note(number) for number in range(3)))
    with CaptureQueriesContext(connection) as captured, transaction.atomic():
        for number in range(300):
            with transaction.atomic():
                server.notify_tools_changed()
                server.notify_resource_updated(f"note://{number % 3}")
    statements = [each["sql"].partition(" ")[0] for each in captured if "mcp_" in each["sql"]]
    assert statements.count("INSERT") <= 2  # the counter, and the changes
    assert ChangeCounter.objects.get().serial == 4
    assert sorted(uris()) == ["", "note://0", "note://1", "note://2"]


def test_a_resource_without_subscribers_costs_one_query(django_assert_num_queries):
    with django_assert_num_queries(1):
        server.notify_resource_updated("note://1")
    assert not Change.objects.exists()
    assert not ChangeCounter.objects.exists()


def test_however_often_something_changes_it_is_one_row():
    subscribe(note(1))
    for _ in range(50):
        server.notify_tools_changed()
        server.notify_resource_updated("note://1")
    assert kinds() == ["resource", "tools"]
    assert ChangeCounter.objects.get().serial == 100


def test_a_uri_is_known_in_every_spelling():
    subscribe(note("caf%c3%a9%7E"))
    for spelling in ("note://café~", "note://caf%C3%A9~", "note://caf%c3%a9%7e"):
        server.notify_resource_updated(spelling)
    assert ChangeCounter.objects.get().serial == 3
    assert Change.objects.count() == 1
    server.notify_resource_updated("note://caf\x00")


def test_a_database_that_refuses_does_not_undo_what_has_changed(monkeypatch, caplog):
    def fail(*args: Any) -> bool:
        raise ProgrammingError("planted")

    monkeypatch.setattr(change_log, "write", fail)
    with transaction.atomic():
        Group.objects.create(name="kept")
        server.notify_tools_changed()
    assert Group.objects.filter(name="kept").exists()
    assert "could not be announced" in caplog.text


@pytest.mark.usefixtures("_broken_twice")
def test_what_meets_a_broken_connection_is_announced_when_there_is_another(caplog):
    with transaction.atomic():
        Group.objects.create(name="kept")
        server.notify_tools_changed()
    assert Group.objects.filter(name="kept").exists()
    assert "announced later" in caplog.text
    _until_told()
    assert kinds() == ["tools"]


def test_an_error_that_somebody_keeps_keeps_no_transaction(monkeypatch):
    """As a log does. What the next one takes back would be announced with what it commits."""
    kept = []

    def fail(*args: Any) -> bool:
        kept.append(ProgrammingError("planted"))
        raise kept[-1]

    with monkeypatch.context() as planted:
        planted.setattr(change_log, "write", fail)
        with transaction.atomic():
            server.notify_tools_changed()
    assert kept
    with transaction.atomic():
        rolled_back(server.notify_tools_changed)
        server.notify_prompts_changed()
    assert kinds() == ["prompts"]


def test_a_deadlock_is_tried_again(monkeypatch):
    original, failures = change_log.write, iter([OperationalError(1213, "Deadlock found")])

    def write(*args: Any) -> bool:
        for failure in failures:
            raise failure
        return original(*args)

    monkeypatch.setattr(change_log, "write", write)
    server.notify_tools_changed()
    assert kinds() == ["tools"]


# Another database


@pytest.fixture
def other(settings):
    """A second connection to the same database, under another name."""
    connections.settings["other"] = {**connections.settings["default"]}
    connections["other"].connect()  # which the test would not be allowed, of a name it had not
    yield "other"
    connections["other"].close()
    del connections["other"]
    del connections.settings["other"]


@pytest.mark.parametrize("using", [None, "other"])
def test_the_transaction_of_another_database_counts_too(other, using):
    with transaction.atomic(using=other):
        server.notify_tools_changed(using=using)
        assert not Change.objects.exists()
    assert kinds() == ["tools"]


def test_a_database_that_was_named_is_the_one_that_counts(other):
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer")
    with transaction.atomic(using=other):
        server.notify_tools_changed(using="default")
        assert kinds() == ["tools"]


def test_nothing_is_locked_while_the_protocols_own_database_has_a_transaction(other):
    """Invariant 4: what another thread writes at once would wait here for the end of the block."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer")
    with transaction.atomic():
        with transaction.atomic(using=other):
            server.notify_tools_changed(using=other)
        in_new_thread(_until_told).result(BOUND)
    assert kinds() == ["tools"]


def _until_told() -> None:
    end = time.monotonic() + BOUND
    while not Change.objects.exists():
        assert time.monotonic() < end
        time.sleep(0.02)


# Asynchronous code


def test_asynchronous_code_announces_too(on_loop):
    async def main():
        for _ in range(100):
            server.notify_tools_changed()
        await until(kinds, ["tools"])

    on_loop(main())
    # The ledger's thread wrote it, many at a time.
    assert ChangeCounter.objects.get().serial < 20


@pytest.mark.usefixtures("_broken_twice")
def test_what_the_loop_announces_waits_until_the_database_is_back(on_loop):
    async def main():
        server.notify_tools_changed()
        server.notify_prompts_changed()
        await until(kinds, ["prompts", "tools"])

    on_loop(main())


def test_an_asynchronous_tool_behind_the_view_announces_in_the_views_thread():
    """No thread of the bookkeeping is started for it, whose connection would not see a test's."""
    with transaction.atomic():
        MCPClient(server).tool("aannounce").assert_ok()
        assert not ledger()._started
    assert kinds() == ["prompts"]
    MCPClient(server).tool("aannounce").assert_ok()
    assert ChangeCounter.objects.get().serial == 2


def test_a_task_that_outlives_its_call_still_announces(on_loop):
    """What was to hear of it waits no more."""

    async def later(go: asyncio.Event) -> None:
        await go.wait()
        server.notify_tools_changed()

    async def main():
        go = asyncio.Event()
        with publisher.deferred():
            task = asyncio.create_task(later(go))
            await asyncio.sleep(0)
        go.set()
        await task
        await until(kinds, ["tools"])

    on_loop(main())


def test_what_nothing_offers_can_be_announced_all_the_same():
    """Another process may offer it, or this one may have until now."""
    gone = Topic(TopicKind.RESOURCE, "gone://1")
    subscribe(gone)
    server.notify_resource_updated(gone.uri)
    assert uris() == [gone.uri]


# Models and tools


@pytest.fixture
def watched():
    """A server that shows groups."""
    with own_signals():
        watching = MCPServer(server.name)

        @watching.resource("group://{pk}", model=Group, list=lambda: [])
        def group(pk: int) -> str:
            return str(pk)

        @watching.resource("named://{name}{?pk}", model=Group)
        def named(name: str, pk: int = 0) -> str:
            return name

        yield watching


def test_a_model_announces_its_instances(watched):
    subscribe(
        Topic(TopicKind.RESOURCE, "group://7"), Topic(TopicKind.RESOURCE, "named://a%20b?pk=7")
    )
    with transaction.atomic():
        group = Group.objects.create(pk=7, name="a b")
        assert not Change.objects.exists()
    assert set(uris()) == {"", "group://7", "named://a%20b?pk=7"}
    assert kinds() == ["resource", "resource", "resources"]
    Change.objects.all().delete()
    group.save()
    assert kinds() == ["resource", "resource"]
    Change.objects.all().delete()
    group.delete()
    assert kinds() == ["resource", "resource", "resources"]


def test_what_a_bulk_statement_changes_is_not_seen(watched):
    """Django sends no signals for it."""
    subscribe(Topic(TopicKind.RESOURCE, "group://7"))
    Group.objects.bulk_create([Group(pk=7, name="x")])
    Group.objects.filter(pk=7).update(name="y")
    assert not Change.objects.exists()


def test_a_model_may_be_named_before_all_models_are_loaded(monkeypatch):
    """As where the ``models.py`` of an app imports what offers its instances."""
    subscribe(Topic(TopicKind.RESOURCE, "group://7"))
    with own_signals():
        with monkeypatch.context() as early:
            early.setattr(apps, "models_ready", False)

            @MCPServer(server.name).resource("group://{pk}", model=Group)
            def group(pk: int) -> str:
                return str(pk)

            assert not post_delete.has_listeners(Group)
        model_signals.connect_deferred()
        Group.objects.create(pk=7, name="x")
    assert uris() == ["group://7"]


def test_other_models_are_left_alone(watched):
    """A receiver for all models would make every deletion of the site slow."""
    assert post_delete.has_listeners(Group)
    assert not post_delete.has_listeners(Permission)


def test_a_variable_that_no_instance_has_is_refused():
    with pytest.raises(RegistrationError, match=r"Group has no attribute 'slug'.*Rename"):

        @MCPServer("x").resource("group://{slug}", model=Group)
        def group(slug: str) -> str:
            return slug


def test_something_else_than_a_model_is_refused():
    with pytest.raises(RegistrationError, match="model= takes a model class"):

        @MCPServer("x").resource("group://{pk}", model="auth.Group")
        def group(pk: str) -> str:
            return pk


@pytest.mark.parametrize("tool", ["write", "awrite"])
def test_a_tool_announces_what_it_changes(tool):
    subscribe(note("a b"), note("index"))
    MCPClient(server).tool(tool, key="a b").assert_ok()
    expected = {"note://a%20b", "note://index"} if tool == "write" else {"note://a%20b"}
    assert set(uris()) == expected


def test_a_tool_that_fails_announces_nothing():
    subscribe(note("a"))
    MCPClient(server).tool("write", key="a", fail=True).assert_failed("The tool failed.")
    assert not Change.objects.exists()


def test_a_tool_in_a_transaction_announces_on_commit(settings):
    subscribe(note("a"))
    with transaction.atomic():
        MCPClient(server).tool("write", key="a").assert_ok()
        assert not Change.objects.exists()
    assert uris() == ["note://a"]


@pytest.mark.parametrize(
    ("invalidates", "message"),
    [
        (("note://{other}",), "'other' is none of its parameters"),
        ("note://{key}", "takes several URIs"),
        (("note",), "begin with a scheme"),
    ],
)
def test_what_a_tool_cannot_name_is_refused(invalidates, message):
    with pytest.raises(RegistrationError, match=message):

        @MCPServer("x").tool(invalidates=invalidates)
        def it(key: str) -> str:
            return key


# Keeping


def test_what_nobody_can_want_to_hear_is_removed(settings):
    settings.DJANGO_MCP = {"SESSION_MAX_AGE_SECONDS": 10 * 24 * 3600}
    subscribed, forgotten = note("subscribed"), note("forgotten")
    subscribe(subscribed, forgotten, note("new"))
    change_log.write(server.name, [TOOLS, subscribed, forgotten, note("new")])
    Subscription.objects.filter(uri=forgotten.uri).delete()
    _age(2, subscribed, forgotten)
    _age(400, TOOLS)
    assert forget("changes") == 1
    assert set(uris()) == {"", subscribed.uri, "note://new"}
    _age(11, subscribed)
    assert forget("changes") == 1
    assert set(uris()) == {"", "note://new"}


def _age(days: int, *topics: Topic) -> None:
    rows = Change.objects.filter(uri__in=[topic.uri for topic in topics])
    rows.update(changed=DatabaseNow() - timedelta(days=days))
