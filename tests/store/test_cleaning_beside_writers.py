"""Cleaning at the same moment as everything else, on threads with connections of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections, transaction

from django_mcp.clock import DatabaseNow
from django_mcp.models import PendingRequest, Session
from django_mcp.protocol.errors import SessionNotFound, Unavailable
from django_mcp.store import cleanup
from django_mcp.store.cleanup import cleanup_rules
from django_mcp.store.database import shorten_lock_wait, with_retries
from django_mcp.store.delivery import outbox
from django_mcp.store.in_flight.recovery import end_abandoned
from django_mcp.store.parent_rows import LIVE
from django_mcp.store.sessions import session_rows
from django_mcp.store.sessions.session_rows import end_expired
from django_mcp.store.sweep import Sweep

from .aging import forget, let_pass, prune, row_counts
from .sweeping import begin_round, take_step
from .visiting import Running, Visit, resource
from .writing import A_WHILE, BOUND, Client, at_once, register

pytestmark = pytest.mark.django_db(transaction=True)


def worn_out() -> Visit:
    """Return a session that expired while its client's last request was on the way."""
    visit = Visit()
    let_pass(days=60)
    return visit


def expire(visit: Visit) -> int:
    """End a session if it has expired; return how many that were."""
    return end_expired([visit.row.pk])


def push_out(visit: Visit) -> int:
    """Open another session where there is room for one; return how many were ended for it."""
    with suppress(Unavailable):
        Visit()
    return int(visit.row.state not in LIVE)


ENDINGS = pytest.mark.parametrize(
    ("made", "end", "look"),
    [
        pytest.param(worn_out, expire, "expired_sessions", id="expires"),
        pytest.param(Visit, push_out, "idle_sessions", id="makes room"),
    ],
)


@pytest.fixture
def _cramped(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MAX_SESSIONS": 1}


@pytest.fixture(params=["read committed", "repeatable read"])
def _isolation(request):
    """Transactions of both kinds that databases have, also where the site wants the other one."""
    if connection.vendor == "sqlite":
        yield
        return
    level = request.param
    if connection.vendor == "postgresql":
        from psycopg import IsolationLevel  # noqa: PLC0415 - not there without the services

        level = IsolationLevel[request.param.replace(" ", "_").upper()]
    # Not through the settings: the connections of this process have read theirs already.
    options = connections.settings["default"]["OPTIONS"]
    connections.settings["default"]["OPTIONS"] = options | {"isolation_level": level}
    connection.close()
    yield
    connection.close()
    connections.settings["default"]["OPTIONS"] = options


@ENDINGS
@pytest.mark.usefixtures("_cramped", "_isolation")
def test_whoever_registers_first_keeps_the_session(monkeypatch, made, end, look):
    visit = made()
    inside, insert = threading.Event(), outbox._insert

    def slowly(*args: Any) -> None:
        insert(*args)
        inside.set()
        threading.Event().wait(A_WHILE)  # nobody has committed yet, and somebody wants to end it

    def ends() -> int:
        assert inside.wait(BOUND)
        return with_retries(lambda: end(visit))

    monkeypatch.setattr(outbox, "_insert", slowly)
    (running, late), ended = at_once(lambda: register(visit), ends)
    assert (late, ended, visit.row.state in LIVE) == (False, 0, True)
    assert not running.end().stream_has_ended
    assert end(visit) == 1


@ENDINGS
@pytest.mark.usefixtures("_cramped")
def test_whoever_ends_the_session_first_leaves_no_call(monkeypatch, made, end, look):
    visit = made()
    inside, found = threading.Event(), getattr(session_rows, look)

    def slowly() -> Any:
        if connection.in_atomic_block:  # with the session locked
            inside.set()
            threading.Event().wait(A_WHILE)
        return found()

    def late() -> tuple[Running, bool]:
        assert inside.wait(BOUND)
        return register(visit)

    monkeypatch.setattr(session_rows, look, slowly)
    ended, (_, lost) = at_once(lambda: end(visit), late)
    assert (ended, lost, visit.row.state) == (1, True, "ended")
    assert not PendingRequest.objects.exists()


def test_exactly_one_of_the_two_wins():
    won = set()
    for _ in range(30):
        visit = worn_out()
        (_, lost), ended = at_once(
            lambda visit=visit: register(visit), lambda visit=visit: end_expired([visit.row.pk])
        )
        assert (lost, ended, visit.row.state) in [(True, 1, "ended"), (False, 0, "opened")]
        won.add(lost)
    assert won


def test_a_request_that_uses_the_session_keeps_it_as_well():
    for _ in range(20):
        visit = Visit()
        let_pass(days=2)
        used, ended = at_once(
            lambda visit=visit: _tried(visit.use), lambda visit=visit: end_expired([visit.row.pk])
        )
        assert (used, ended) in [(True, 0), (False, 1)]
        assert (visit.row.state == "ended") is bool(ended)


def _tried(work: Callable[[], Any]) -> bool:
    try:
        work()
    except SessionNotFound:
        return False
    return True


def test_expiry_by_several_processes_ends_each_session_once():
    visits = [Visit() for _ in range(40)]
    let_pass(days=2)
    assert sum(at_once(*[lambda: forget("expired sessions, which end", 7)] * 4)) == len(visits)


# Writers


@pytest.fixture
def _at_once(monkeypatch):
    """Let everything go as soon as it has ended, which leaves no room for mistakes."""
    for age in ("_retention", "_replay_age"):
        monkeypatch.setattr(cleanup, age, timedelta)


@pytest.fixture
def violations(monkeypatch) -> list[IntegrityError]:
    """Collect what the outbox takes for the end of a stream."""
    found: list[IntegrityError] = []
    write = outbox._write

    def watched(*args: Any) -> Any:
        try:
            return write(*args)
        except IntegrityError as error:
            found.append(error)
            raise

    monkeypatch.setattr(outbox, "_write", watched)
    return found


@pytest.mark.usefixtures("_at_once")
def test_writers_into_a_session_that_is_being_removed_find_that_it_has_ended(violations):
    clients = [Client(seed) for seed in range(3)]
    working = threading.Event()

    def clean() -> int:
        rounds = 0
        while not working.is_set():
            for kind in cleanup_rules():
                kind.forget_all(7)
            rounds += 1
        return rounds

    def use() -> None:
        try:
            at_once(*[client.work for client in clients], leave)
        finally:
            working.set()

    def leave() -> None:
        for client in clients:
            threading.Event().wait(A_WHILE)
            client.visit.leave()

    _, *rounds = at_once(use, clean, clean)
    assert all(rounds)
    assert violations == []
    assert sum(client.collided for client in clients) < 20
    # What was still running is settled, as that of the dead; then nothing is left.
    PendingRequest.objects.update(lease_until=DatabaseNow() - timedelta(seconds=1))
    end_abandoned()
    prune()
    prune()
    assert not any(row_counts().values())


# Cleaners


def test_two_at_once_remove_everything_once():
    for number in range(30):
        visit = Visit()
        visit.subscribe(resource(number))
        visit.hear("unread")
        for _ in range(3):
            visit.call().ask().end()
        visit.cancel("early")
        visit.leave()
    let_pass(days=8)
    counted = {each.name: each.count() for each in cleanup_rules() if each.count()}
    both = at_once(*[lambda: prune(7)] * 2)
    assert not any(row_counts().values())
    assert {name: sum(each.get(name, 0) for each in both) for name in counted} == counted


def test_a_session_is_read_and_used_while_another_ones_rows_go(monkeypatch):
    """No lock of a batch touches anybody else's rows."""
    gone, here = Visit(), Visit()
    for visit in (gone, here):
        visit.call().end()
    gone.leave()
    let_pass(hours=1)
    inside, done = threading.Event(), threading.Event()
    delete = cleanup._delete

    def slowly(*args: Any) -> int:
        with transaction.atomic():
            number = delete(*args)
            inside.set()
            assert connection.vendor == "sqlite" or done.wait(BOUND)
        return number

    def use() -> None:
        assert inside.wait(BOUND)
        here.use()
        here.subscribe(resource(1))
        here.call(number=2).end()
        done.set()

    monkeypatch.setattr(cleanup, "_delete", slowly)
    at_once(lambda: forget("messages"), use)


def test_a_sweep_gives_way_where_the_database_is_locked(caplog):
    Visit()
    let_pass(days=2)
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite has one lock for all writers")
    locked, done, own = threading.Event(), threading.Event(), Sweep()
    begin_round(own)

    def write() -> None:
        with transaction.atomic():
            Session.objects.update(server="elsewhere")
            locked.set()
            assert done.wait(BOUND)

    def sweep() -> None:
        assert locked.wait(BOUND)
        shorten_lock_wait()
        take_step(own)
        done.set()
        for _ in cleanup_rules():
            take_step(own)

    at_once(write, sweep)
    assert not caplog.records
    assert Session.objects.get().state in LIVE
    assert forget("expired sessions, which end") == 1
