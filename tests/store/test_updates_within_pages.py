"""Rows of sessions are hardly ever updated, and PostgreSQL updates most rows within their pages."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import connection, models
from django.test.utils import CaptureQueriesContext

from django_mcp.models import PendingRequest, Session, Stream
from django_mcp.store.access.access_watch import AccessWatch
from django_mcp.store.delivery import stream_rows
from django_mcp.store.in_flight.running_requests import RunningRequests
from django_mcp.store.sessions import session_use
from django_mcp.store.sessions.session_rows import mark_initialized
from django_mcp.store.sessions.session_use import SessionUse

from .visiting import ALIVE, Visit, resource

pytestmark = pytest.mark.django_db(transaction=True)

SESSIONS, SECONDS, CALLS_PER_SECOND = 20, 180, 2
SPEAKING = 0.1
"""The part of the calls that say something, and so have rows."""


@dataclass
class Updates:
    """How many rows of a table were updated, and how many of them stayed in their page."""

    number: int = 0
    within_page: int = 0

    @property
    def share(self) -> float:
        return self.within_page / self.number


@pytest.fixture
def _postgresql():
    if connection.vendor != "postgresql":
        pytest.skip("only PostgreSQL has heap-only tuples")
    connection.ensure_connection()
    if connection.pg_version < 150_000:
        pytest.skip("before PostgreSQL 15 what is counted is told at any time later")


def counted(model: type[models.Model]) -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = %s",
            [model._meta.db_table],
        )
        return cursor.fetchone()


@contextmanager
def counting(model: type[models.Model]) -> Iterator[Updates]:
    """Count the updates that this thread makes within the block."""
    found = Updates()
    number, within_page = counted(model)
    yield found
    now = counted(model)
    found.number, found.within_page = now[0] - number, now[1] - within_page


def check_share(measure: Callable[[], Updates]) -> None:
    """Check that most updates stay in their page, if need be by measuring once more.

    Anybody's long transaction on the server keeps pages from being tidied, so that a measurement
    may be disturbed; nothing makes it look better than it is.
    """
    shares = []
    for _ in range(6):
        shares.append(measure().share)
        if shares[-1] >= 0.8:
            return
        wait_for_transactions()
    raise AssertionError(shares)


def wait_for_transactions() -> None:
    """Wait until those that are running now have ended, whosever they are; for a minute at most."""
    end = time.monotonic() + 60
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
        while time.monotonic() < end:
            cursor.execute(
                "SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND xact_start < %s",
                [now],
            )
            if not cursor.fetchall():
                return
            time.sleep(0.02)


def test_a_call_that_speaks_writes_its_session_only_where_no_row_can_be_locked():
    visit = Visit()
    with CaptureQueriesContext(connection) as queries:
        visit.call()
    of_sessions = f"UPDATE {connection.ops.quote_name(Session._meta.db_table)} "
    written = [each["sql"] for each in queries if each["sql"].startswith(of_sessions)]
    assert len(written) == (1 if connection.vendor == "sqlite" else 0)


@pytest.mark.usefixtures("_postgresql")
def test_a_session_is_updated_once_in_ten_calls_at_most_and_within_its_page(monkeypatch):
    """At two calls a second for each session; from the handshake to the end."""
    chance, passed = random.Random(11), 0.0
    monkeypatch.setattr(session_use, "time", SimpleNamespace(monotonic=lambda: passed))
    later = session_use.DatabaseNow
    monkeypatch.setattr(session_use, "DatabaseNow", lambda: later() + timedelta(seconds=passed))

    def live() -> Updates:
        nonlocal passed
        own, begin = SessionUse(), passed
        with counting(Session) as sessions, counting(Stream), counting(PendingRequest):
            visits = [Visit() for _ in range(SESSIONS)]
            for visit in visits:
                mark_initialized(visit.info)
            for step in range(SECONDS * CALLS_PER_SECOND):
                passed = begin + step / CALLS_PER_SECOND
                for visit in visits:
                    own.note(visit.info.id)
                    if chance.random() < SPEAKING:
                        visit.call(number=step).end()
                own.write()
            own.write(at_once=True)
            assert {visit.row.request_count for visit in visits} == {step + 1}
            for visit in visits:
                visit.leave()
        calls = SESSIONS * SECONDS * CALLS_PER_SECOND
        assert 0 < sessions.number <= 0.1 * calls
        return sessions

    check_share(live)


@pytest.mark.usefixtures("_postgresql")
def test_a_lease_is_renewed_within_the_page():
    visit = Visit()
    calls = [visit.call(number=number) for number in range(30)]
    own = RunningRequests(ALIVE.id, AccessWatch())
    own.watch_question(calls[0].call.id, lambda answer: None)

    def renew() -> Updates:
        with counting(PendingRequest) as requests:
            for _ in range(40):
                own._renewed = float("-inf")
                own.renew()
        assert requests.number == 40 * len(calls)
        return requests

    check_share(renew)


@pytest.mark.usefixtures("_postgresql")
def test_what_a_call_says_moves_its_stream_on_within_the_page():
    call = Visit().call()

    def say() -> Updates:
        with counting(Stream) as streams:
            for _ in range(50):
                call.say().write()
        assert streams.number == 50
        return streams

    check_share(say)


@pytest.mark.usefixtures("_postgresql")
def test_what_is_delivered_does_too():
    visit = Visit()
    stream = visit.listen()
    stream_rows.take_over(stream, "here")
    delivered = 0

    def deliver() -> Updates:
        nonlocal delivered
        with counting(Stream) as streams:
            for _ in range(50):
                visit.hear("a word")
                delivered += 1
                assert stream_rows.mark_delivered(stream.pk, stream.epoch, delivered)
        assert streams.number == 100
        return streams

    check_share(deliver)


@pytest.mark.usefixtures("_postgresql")
def test_an_index_of_what_changes_would_be_noticed():
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX planted ON django_mcp_session (last_active)")
    try:
        visit = Visit()
        with counting(Session) as sessions:
            for _ in range(10):
                visit.use()
        assert (sessions.number, sessions.within_page) == (10, 0)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX planted")


def test_whoever_adds_rows_below_a_session_does_not_update_it():
    """But where no row can be locked otherwise."""
    visit = Visit()
    with CaptureQueriesContext(connection) as queries:
        visit.call(number=1).ask().end()
        visit.listen()
        visit.subscribe(resource(1))
        visit.cancel("early")
    table = connection.ops.quote_name(Session._meta.db_table)
    statements = [each["sql"] for each in queries]
    written = [each for each in statements if each.startswith(f"UPDATE {table}")]
    locked = [each for each in statements if f"FROM {table}" in each and " FOR " in each]
    entered = 5  # the call, its question, its own stream, the subscription, the cancellation
    if connection.vendor == "sqlite":
        assert (len(written), locked) == (entered, [])
        assert not [each for each in written if "last_active" in each.partition(" WHERE ")[0]]
    else:
        assert (written, len(locked)) == ([], entered)
    if connection.vendor == "postgresql":
        assert all(each.endswith("FOR NO KEY UPDATE") for each in locked)
