"""What a lease is divided into: by default as at any other length."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_mcp.conf import get_settings
from django_mcp.http.event_stream import RETRY_MS
from django_mcp.store.access.access_watch import AccessWatch
from django_mcp.store.in_flight import recovery, running_requests
from django_mcp.store.in_flight.recovery import Heartbeat, Recovery
from django_mcp.store.in_flight.running_requests import RunningRequests
from django_mcp.store.ledger import PAUSE_SECONDS

pytestmark = pytest.mark.django_db
STEPS = 120
"""Into which a lease is cut here; it is measured to within one of them."""


class Clock:
    """Of one process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.lease = get_settings().lease_seconds
        self.step = self.lease / STEPS
        for module in (running_requests, recovery):
            monkeypatch.setattr(module.time, "monotonic", lambda: self.now)

    def interval(self, tick: Callable[[], object]) -> float:
        """Return how often ``tick``, which is called all the time, asks the database something."""
        moments = []
        for _ in range(2 * STEPS):
            with CaptureQueriesContext(connection) as queries:
                tick()
            if len(queries):
                moments.append(self.now)
            self.now += self.step
        return moments[1] - moments[0]


@pytest.fixture(params=[None, 3, 60])
def clock(request, settings, monkeypatch) -> Clock:
    """One for each length of a lease: the default, a short and a long one."""
    length = {} if request.param is None else {"LEASE_SECONDS": request.param}
    settings.DJANGO_MCP = {"AUTH": "django_mcp.auth.public", **length}
    return Clock(monkeypatch)


def renewed_every(clock: Clock) -> float:
    """How often a process renews the leases of what it runs."""
    own = RunningRequests("process", AccessWatch())
    own.watch_question(uuid.uuid4(), lambda answer: None)
    return clock.interval(own.renew)


def looked_every(clock: Clock) -> float:
    """How often a process looks for the dead, while it has a reason to."""
    own = Recovery()

    def tick() -> None:
        own.note_activity()
        own.tick()

    return clock.interval(tick)


def longest_gap(clock: Clock) -> float:
    """How long the bookkeeping of a process may be silent without a break."""
    gap = 0.0
    while gap <= 2 * clock.lease:
        heartbeat = Heartbeat()
        for _ in range(STEPS + 2):
            heartbeat.beat()
            clock.now += clock.step
        assert heartbeat.is_trusted
        clock.now += gap
        heartbeat.beat()
        if not heartbeat.is_trusted:
            return gap
        gap += clock.step
    raise AssertionError("There is no end of it.")


def test_a_lease_is_renewed_in_time_though_two_renewals_fail(clock):
    assert 2 * renewed_every(clock) < clock.lease <= 4 * renewed_every(clock)


def test_the_dead_are_found_soon_after_their_leases_have_run_out(clock):
    assert clock.lease / 12 < looked_every(clock) < clock.lease / 8


def test_looks_that_come_in_time_are_no_break_and_an_outage_is(clock):
    """Who was away for so long that leases of the living may have run out cannot be trusted."""
    gap, renewed, looked = longest_gap(clock), renewed_every(clock), looked_every(clock)
    assert looked < gap < clock.lease - renewed
    assert clock.lease / 4 < gap < clock.lease / 2.5


@pytest.mark.parametrize("clock", [None], indirect=True)
def test_by_default_a_pause_of_the_bookkeeping_fits_in(clock):
    """It looks at the clock so often, and no oftener."""
    assert renewed_every(clock) + PAUSE_SECONDS < clock.lease / 2
    assert looked_every(clock) + PAUSE_SECONDS < longest_gap(clock)
    # A process that has had nothing to do looks for a whole lease before it takes others for dead.
    assert clock.lease == 15
    assert RETRY_MS / 1000 + PAUSE_SECONDS + clock.lease + looked_every(clock) + PAUSE_SECONDS < 20
