"""The tables stay bounded under a day's traffic, by the sweep or by the command alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection

from django_mcp.clock import DatabaseNow
from django_mcp.models import Change, PendingRequest
from django_mcp.protocol.errors import SessionNotFound
from django_mcp.protocol.topics import Topic, TopicKind
from django_mcp.rates import Rate
from django_mcp.store.access import rate_counters
from django_mcp.store.access.redeemed_states import redeem
from django_mcp.store.changes import change_log
from django_mcp.store.cleanup import cleanup_rules
from django_mcp.store.in_flight.recovery import end_abandoned
from django_mcp.store.sweep import Sweep

from .aging import let_pass, row_counts
from .sweeping import begin_round, take_step
from .visiting import ALIVE, DEAD, SERVER, Listening, Running, Visit, resource

pytestmark = pytest.mark.django_db

STEP, HOUR, DAY = 20, 60, 24 * 60
"""Minutes, here and below."""
REPLAY, IDLE, RETENTION, PERIOD, STATE = 5, 60, 120, 30, 60
RESOURCES = 20
OPENED, PRESENT, USED = 2, 6, 2
"""Sessions that are opened in each step, that clients remember, and that they use."""
CALLS, WORDS, HEARD, SUBSCRIBED, CANCELLED = 3, 3, 2, 2, 3
"""What becomes of a session that is used."""


class Site:
    """A site with much traffic, which is the same in each test."""

    def __init__(self) -> None:
        self.chance = random.Random(40)
        self.visits: list[Visit] = []
        self.running: list[Running] = []

    def step(self) -> None:
        """Let twenty minutes of traffic pass."""
        self.end()
        self.running.append(Listening(self.resource(), self.resource()))
        self.visits = [*self.visits, *(Visit() for _ in range(OPENED))][-PRESENT:]
        for visit in self.chance.sample(self.visits, min(USED, len(self.visits))):
            try:
                self.use(visit)
            except SessionNotFound:
                self.visits.remove(visit)
        change_log.write(SERVER, [self.resource() for _ in range(5)])
        change_log.write(SERVER, [Topic(TopicKind.TOOLS)])
        let_pass(minutes=STEP)

    def end(self) -> None:
        """Let calls be answered, but for those of processes that have died, which others settle."""
        for running in self.running:
            if running.process is ALIVE:
                running.end()
        self.running = []
        end_abandoned()

    def use(self, visit: Visit) -> None:
        visit.use()
        visit.hear(*["heard"] * HEARD)
        visit.subscribe(*[self.resource() for _ in range(SUBSCRIBED)])
        for number in range(CANCELLED):
            visit.cancel(f"early {number}")
        for number in range(CALLS):
            self.call(visit, number)
        if self.chance.random() < 0.2:
            visit.leave()

    def call(self, visit: Visit, number: int) -> None:
        rate_counters.spend(f"{visit.info.id}-{number}", Rate(100, PERIOD * 60))
        redeem(uuid4())
        running = visit.call(DEAD if self.chance.random() < 0.1 else ALIVE, number)
        for _ in range(WORDS - 1):
            running.say()
        running.write()
        if self.chance.random() < 0.3:
            running.ask()
        self.running.append(running)

    def resource(self) -> Topic:
        return resource(self.chance.randrange(RESOURCES))


def bounds(lag: int) -> dict[str, float]:
    """Return how many rows there can be: what comes in a step, for as long as it is kept.

    ``lag`` is how long the next cleaning may take to come; a parent may wait for that once more
    when its children have gone.
    """

    def kept(number: int, minutes: int) -> float:
        return number * (2 + (minutes + 2 * lag) / STEP)

    calls, session = USED * CALLS, STEP * PRESENT // OPENED + IDLE
    return {
        "Session": kept(OPENED, session + RETENTION),
        "Stream": kept(calls, STEP + RETENTION) + kept(OPENED, session + RETENTION),
        # A question and a response, or an error, besides the words.
        "OutgoingMessage": kept(calls * (WORDS + 2), STEP + REPLAY)
        + kept(USED * HEARD, session + RETENTION),
        "PendingRequest": kept(2 * calls + 1, STEP + RETENTION) + kept(USED * CANCELLED, REPLAY),
        "Subscription": kept(USED * SUBSCRIBED, session) + kept(2, STEP),
        "Change": RESOURCES + 1,
        "CallCount": kept(calls, PERIOD),
        "RedeemedState": kept(calls, STATE + 5),
    }


def sweep_now_and_then() -> Callable[[int], None]:
    """Clean up as a process does that is in use."""
    sweep = Sweep()

    def clean(minute: int) -> None:
        for _ in range(3):
            begin_round(sweep)
            for _ in range(3 * len(cleanup_rules())):
                take_step(sweep)

    return clean


def prune_each_hour() -> Callable[[int], None]:
    """Clean up as cron does."""

    def clean(minute: int) -> None:
        if minute % HOUR == 0:
            call_command("mcp", "prune", verbosity=0)

    return clean


def how_long() -> int:
    """Return the minutes of traffic; elsewhere as many as it takes until rows go as they come."""
    return DAY if connection.vendor == "sqlite" else 10 * HOUR


@pytest.mark.parametrize(
    ("cadence", "lag"), [(sweep_now_and_then, STEP), (prune_each_hour, HOUR)], ids=["sweep", "cron"]
)
def test_tables_stay_bounded(cadence, lag, settings):
    settings.DJANGO_MCP = {
        **settings.DJANGO_MCP,
        "SESSION_IDLE_SECONDS": IDLE * 60,
        "REPLAY_SECONDS": REPLAY * 60,
        "RETENTION_SECONDS": RETENTION * 60,
        "STATE_MAX_AGE_SECONDS": STATE * 60,
    }
    site, clean, limit = Site(), cadence(), bounds(lag)
    most = dict.fromkeys(row_counts(), 0)
    for minute in range(0, how_long(), STEP):
        site.step()
        clean(minute)
        most = {name: max(most[name], number) for name, number in row_counts().items()}
    assert {name: number for name, number in most.items() if number > limit[name]} == {}
    assert all(most.values())
    site.end()
    _is_over(clean, minutes=IDLE + RETENTION + 3 * lag)
    assert {name for name, number in row_counts().items() if number} == {"Change"}
    # Of changes nobody may know for a day.
    _is_over(clean, minutes=DAY, step=4 * HOUR)
    assert Change.objects.get().kind == TopicKind.TOOLS


def _is_over(clean: Callable[[int], None], *, minutes: int, step: int = STEP) -> None:
    PendingRequest.objects.filter(owner=ALIVE.id).update(lease_until=DatabaseNow())
    for minute in range(0, minutes + HOUR, step):
        let_pass(minutes=step)
        end_abandoned()
        clean(minute)


def test_without_cleaning_they_do_not(monkeypatch):
    """The traffic is enough to tell."""
    if connection.vendor != "sqlite":
        pytest.skip("what is not removed is as much on every database")
    site, limit = Site(), bounds(HOUR)
    for _ in range(0, DAY, STEP):
        site.step()
    over = {name for name, number in row_counts().items() if number > limit[name]}
    # What has changed is one row however often it does, and counting removes old counts itself.
    assert over >= limit.keys() - {"Change", "CallCount"}
