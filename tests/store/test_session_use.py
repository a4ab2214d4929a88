"""Use of sessions is written now and then, by one process of all, and none of it is lost."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from django_mcp.clock import DatabaseNow
from django_mcp.models import Session
from django_mcp.store.sessions import session_use
from django_mcp.store.sessions.session_use import LONGEST_PERIOD_SECONDS, SessionUse, write_use

from .aging import let_pass
from .visiting import Visit

pytestmark = pytest.mark.django_db


class Clock:
    """The monotonic clock of all processes, which moves on together with the database's."""

    def __init__(self) -> None:
        self._passed = 0.0

    @property
    def now(self) -> float:
        return time.monotonic() + self._passed

    def let_pass(self, seconds: float) -> None:
        self._passed += seconds
        earlier = timedelta(seconds=seconds)
        Session.objects.update(
            last_active=F("last_active") - earlier, expires=F("expires") - earlier
        )


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(session_use, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def updates(work: Any) -> int:
    """Return how many times ``work`` updates sessions."""
    with CaptureQueriesContext(connection) as queries:
        work()
    table = connection.ops.quote_name(Session._meta.db_table)
    return sum(each["sql"].startswith(f"UPDATE {table}") for each in queries)


def seconds_unused(visit: Visit) -> float:
    rows = Session.objects.filter(pk=visit.info.id).annotate(now=DatabaseNow())
    row = rows.get()
    return (row.now - row.last_active).total_seconds()


def test_what_was_unused_for_long_is_written_at_once(clock):
    visit, own = Visit(), SessionUse()
    let_pass(hours=2)
    hour = visit.row.used_hour
    own.note(visit.info.id)
    own.note(visit.info.id)
    assert updates(own.write) == 1
    assert visit.row.request_count == 2
    assert visit.row.used_hour > hour
    assert seconds_unused(visit) < 5
    assert not own


@pytest.mark.parametrize(("idle_seconds", "period"), [(86_400, LONGEST_PERIOD_SECONDS), (20, 2)])
def test_within_a_period_it_is_written_once(clock, settings, idle_seconds, period):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SESSION_IDLE_SECONDS": idle_seconds}
    visit, own = Visit(), SessionUse()
    steps, written, begun = 100, 0, clock.now
    for _ in range(steps):
        last = clock.now
        clock.let_pass(period / 10)
        own.note(visit.info.id)
        written += updates(own.write)
        assert seconds_unused(visit) < 1.2 * period + clock.now - last
    assert 0 < written <= (clock.now - begun) / period
    clock.let_pass(1.2 * period)
    own.write()
    assert not own
    assert visit.row.request_count == steps


def test_that_is_so_for_all_processes_together_and_each_has_its_turn(clock, monkeypatch):
    chance = random.Random(7)
    monkeypatch.setattr(session_use, "jitter", lambda seconds: chance.uniform(0, seconds))
    visit, processes = Visit(), [SessionUse() for _ in range(3)]
    steps, written, turns, begun = 800, 0, [0, 0, 0], clock.now
    for _ in range(steps):
        clock.let_pass(LONGEST_PERIOD_SECONDS / 40)
        for number, own in enumerate(processes):
            own.note(visit.info.id)
            done = updates(own.write)
            written += done
            turns[number] += done
    assert 0 < written <= (clock.now - begun) / LONGEST_PERIOD_SECONDS
    assert all(turns)
    for _ in range(3 * len(processes)):
        clock.let_pass(1.2 * LONGEST_PERIOD_SECONDS)
        for own in processes:
            own.write()
    assert not any(processes)
    assert visit.row.request_count == steps * len(processes)


def test_a_session_that_ends_meanwhile_counts_its_requests_and_is_used_no_more(clock):
    visit, own = Visit(), SessionUse()
    own.note(visit.info.id)
    own.write()
    assert visit.row.request_count == 0
    visit.leave()
    before = visit.row
    clock.let_pass(2 * LONGEST_PERIOD_SECONDS)
    own.write()
    assert visit.row.request_count == 1
    assert seconds_unused(visit) > LONGEST_PERIOD_SECONDS
    assert visit.row.used_hour <= before.used_hour
    assert not own


def test_of_a_session_that_is_no_more_nothing_is_kept(clock):
    visit, own = Visit(), SessionUse()
    own.note(visit.info.id)
    visit.row.delete()
    own.write()
    assert not own


def test_in_the_end_everything_is_written(clock):
    visits, own = [Visit() for _ in range(3)], SessionUse()
    for visit in visits:
        own.note(visit.info.id)
    own.write()
    own.note(visits[0].info.id)
    own.write(at_once=True)
    assert [visit.row.request_count for visit in visits] == [2, 1, 1]
    assert not own


def test_what_could_not_be_written_is_written_the_next_time(clock, monkeypatch):
    visit, own = Visit(), SessionUse()
    clock.let_pass(60)
    own.note(visit.info.id)
    with monkeypatch.context() as patch:
        patch.setattr(session_use, "_write", _fail)
        with pytest.raises(OperationalError):
            own.write()
    assert own
    own.write()
    assert visit.row.request_count == 1


def _fail(*args: Any) -> None:
    raise OperationalError("planted")


def test_many_sessions_take_a_few_statements(clock):
    visits = [Visit() for _ in range(40)]
    clock.let_pass(60)
    with CaptureQueriesContext(connection) as queries:
        write_use({visit.info.id: 1 + number % 2 for number, visit in enumerate(visits)})
    written = [each["sql"] for each in queries if each["sql"].startswith("UPDATE")]
    assert len(written) == 2  # by the numbers of requests
    assert len(queries) <= 7


def test_the_hour_is_that_of_the_database(settings):
    visit = Visit()
    row = Session.objects.annotate(now=DatabaseNow()).get(pk=visit.info.id)
    assert abs(row.now.timestamp() // 3600 - row.used_hour) <= 1
    let_pass(hours=5, minutes=1)
    old = visit.row.used_hour
    assert row.used_hour - old in (5, 6)
    visit.use()
    assert visit.row.used_hour >= row.used_hour


def test_a_session_in_use_never_expires(clock, settings):
    """However short the time is after which it would."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SESSION_IDLE_SECONDS": 30}
    visit, processes = Visit(), [SessionUse(), SessionUse()]
    for step in range(200):
        clock.let_pass(1)
        assert visit.find()
        processes[step // 7 % 2].note(visit.info.id)
        for own in processes:
            own.write()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_the_hour_does_not_depend_on_zones(settings, zone):
    settings.TIME_ZONE = zone
    visit = Visit()
    row = Session.objects.annotate(now=DatabaseNow()).get(pk=visit.info.id)
    assert timedelta() <= timedelta(seconds=row.now.timestamp() - row.used_hour * 3600)
    assert row.now.timestamp() - row.used_hour * 3600 < 3660
