"""The clock of a process may be wrong. The database's is the one that counts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from django_mcp.clock import DatabaseNow
from django_mcp.models import Session
from django_mcp.protocol.errors import SessionNotFound
from django_mcp.rates import Rate
from django_mcp.store.access import rate_counters
from django_mcp.store.access.access_watch import AccessWatch
from django_mcp.store.in_flight.recovery import end_abandoned
from django_mcp.store.in_flight.running_requests import RunningRequests

from .aging import let_pass, prune
from .visiting import DEAD, Listening, Visit, resource

pytestmark = pytest.mark.django_db

WRONG = [-900, 900]
AGES = {
    "LEASE_SECONDS": 30,
    "REPLAY_SECONDS": 60,
    "RETENTION_SECONDS": 3600,
    "SESSION_IDLE_SECONDS": 120,
    "SESSION_MAX_AGE_SECONDS": 240,
}


@pytest.fixture(autouse=True)
def _ages_shorter_than_the_clocks_are_wrong(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **AGES}


@contextmanager
def clock_wrong_by(seconds: float) -> Iterator[None]:
    """Let the wall clock of this process be wrong; its monotonic clock is right."""
    now, seconds_now, nanoseconds_now = timezone.now, time.time, time.time_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timezone, "now", lambda: now() + timedelta(seconds=seconds))
        patch.setattr(time, "time", lambda: seconds_now() + seconds)
        patch.setattr(time, "time_ns", lambda: nanoseconds_now() + int(seconds * 1e9))
        yield


@pytest.fixture(params=[*((each, 0) for each in WRONG), *((0, each) for each in WRONG)], ids=str)
def clocks(request: pytest.FixtureRequest) -> Any:
    """The clocks of two processes, one of them wrong, each as a context to be that process in."""
    return [partial(clock_wrong_by, seconds) for seconds in request.param]


def test_nothing_ends_early_and_nothing_late(clocks):
    writer, finder = clocks
    with writer():
        visit = Visit()
        call = visit.call(DEAD, number=1).ask()
        visit.call(number=2).end()
        visit.cancel("early")
        listening = Listening(resource(1), process=DEAD)
    with finder():
        assert prune() == {}
        assert visit.find()
        let_pass(seconds=AGES["LEASE_SECONDS"] - 5)
        end_abandoned()
        assert {call.row.state, listening.row.state} == {"running"}
        let_pass(seconds=10)
        end_abandoned()
        assert {call.row.state, listening.row.state} == {"failed"}
        let_pass(seconds=AGES["REPLAY_SECONDS"] - 40)
        assert prune() == {}
        let_pass(seconds=10)
        assert prune() == {"messages": 2, "early cancellations": 1}


def test_a_session_lasts_as_long_as_it_may_be_idle(clocks):
    first, second = clocks
    with first():
        visit = Visit()
    let_pass(seconds=AGES["SESSION_IDLE_SECONDS"] - 5)
    with second():
        assert visit.find()
        visit.use()
    let_pass(seconds=AGES["SESSION_IDLE_SECONDS"] - 5)
    with first():
        assert prune() == {}
        assert visit.find()
    let_pass(seconds=10)
    with second(), pytest.raises(SessionNotFound):
        visit.find()
    with first():
        assert prune() == {"expired sessions, which end": 1}


def test_a_lease_is_renewed_by_the_databases_clock(clocks):
    owner, other = clocks
    call = Visit().call(DEAD)
    let_pass(seconds=AGES["LEASE_SECONDS"] - 5)
    with owner():
        living = RunningRequests(DEAD.id, AccessWatch())
        living.watch_question(call.call.id, lambda answer: None)
        living.renew()
    let_pass(seconds=AGES["LEASE_SECONDS"] - 5)
    with other():
        end_abandoned()
        assert call.row.state == "running"
        let_pass(seconds=10)
        end_abandoned()
    assert call.row.state == "failed"


def test_the_period_of_a_limit_is_the_same_for_all(clocks):
    rate = Rate(1, 60)
    for one, other in (clocks, clocks[::-1]):
        with one():
            assert rate_counters.spend("key", rate) == 0
        with other():
            assert 0 < rate_counters.spend("key", rate) <= 60
        let_pass(seconds=61)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="other databases have a type for moments")
@pytest.mark.parametrize("fraction", ["000", "120", "001"])
def test_a_moment_of_the_database_is_the_text_that_python_writes_of_it(fraction):
    compiler = Session.objects.all().query.get_compiler(connection=connection)
    said, _ = compiler.compile(DatabaseNow())
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + said.replace("'NOW'", f"'2026-11-24 10:00:00.{fraction}'"), [])
        (text,) = cursor.fetchone()
    zone = timezone.get_default_timezone() if not settings.USE_TZ else UTC
    moment = datetime(2026, 11, 24, 10, microsecond=int(fraction) * 1000, tzinfo=UTC)
    assert text == str(moment.astimezone(zone).replace(tzinfo=None))
