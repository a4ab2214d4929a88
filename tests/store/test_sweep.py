"""When a process cleans, how much of its time that takes, and that others leave it to that one."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest
from django.db import DatabaseError, ProgrammingError, connection
from django.test.utils import CaptureQueriesContext

from django_mcp.clock import DatabaseNow
from django_mcp.ids import new_id
from django_mcp.models import Claim, OutgoingMessage, PendingRequest, Session, Stream
from django_mcp.store import cleanup, sweep
from django_mcp.store.cleanup import CleanupRule, CleanupStep, cleanup_rules
from django_mcp.store.database import shorten_lock_wait
from django_mcp.store.sweep import MOST_SHARE, SHARE, Sweep

from .aging import forget, let_pass, row_counts
from .sweeping import begin_round, sweep_up, take_step
from .visiting import Visit, plant, resource
from .writing import BOUND, at_once

pytestmark = pytest.mark.django_db

STATEMENTS = 9
"""Most that a step takes."""


def kinds_of(*forgetting):
    """Return kinds that forget by these functions, each by its name."""
    return lambda: [CleanupRule(each.__name__, Session.objects.all, each) for each in forgetting]


# Steps


def test_it_takes_one_step_at_a_time():
    plant(3)
    own = Sweep()
    own.note_activity()
    assert not own
    begin_round(own)
    assert own
    for _ in cleanup_rules():
        with CaptureQueriesContext(connection) as queries:
            take_step(own)
        assert 0 < len(queries) <= STATEMENTS
    assert not own
    sweep_up(own)  # sessions and streams, after their calls
    assert not any(row_counts().values())


def test_nobody_sweeps_where_nothing_happens(django_assert_num_queries):
    plant(1)
    own = Sweep()
    own._round = float("-inf")
    with django_assert_num_queries(0):
        for _ in range(20):
            own.tick()
    assert any(row_counts().values())


def test_rounds_are_apart(django_assert_num_queries):
    own = Sweep()
    begin_round(own)
    while own:
        take_step(own)
    own.note_activity()
    with django_assert_num_queries(0):
        take_step(own)


def test_a_step_is_followed_by_a_pause_in_which_others_have_their_time(
    monkeypatch, django_assert_num_queries
):
    took = 0.05

    def slowly(limit):
        time.sleep(took)
        return CleanupStep(limit, more=True)

    monkeypatch.setattr(sweep, "cleanup_rules", kinds_of(slowly))
    own = Sweep()
    begin_round(own)
    take_step(own)
    assert own.pause > took / SHARE - took - 1 / 50
    with django_assert_num_queries(0):
        own.tick()


def test_what_cannot_be_removed_is_said_and_left_for_the_next_round(monkeypatch, caplog):
    def broken(limit):
        raise DatabaseError("planted")

    monkeypatch.setattr(sweep, "cleanup_rules", kinds_of(broken))
    own = Sweep()
    begin_round(own)
    take_step(own)
    assert "Old broken could not be removed: planted" in caplog.text
    assert not own


def test_where_rounds_are_not_enough_it_takes_more_of_the_time_and_less_again(monkeypatch):
    behind = [True]

    def much(limit):
        return CleanupStep(limit, more=behind[0])

    monkeypatch.setattr(sweep, "cleanup_rules", kinds_of(much))
    own = Sweep()
    shares = []
    for _ in range(5):
        begin_round(own)
        take_step(own)
        shares.append(own._share)
    assert shares == [SHARE, 2 * SHARE, 4 * SHARE, MOST_SHARE, MOST_SHARE]
    behind[0] = False
    take_step(own)
    begin_round(own)
    assert own._share == SHARE


# Turns


def test_no_kind_keeps_another_waiting(monkeypatch):
    turns = []

    def endless(limit):
        turns.append("endless")
        return CleanupStep(limit, more=True)

    def other(limit):
        turns.append("other")
        return CleanupStep(1, more=len(turns) < 5)

    monkeypatch.setattr(sweep, "cleanup_rules", kinds_of(endless, other))
    own = Sweep()
    begin_round(own)
    for _ in range(6):
        take_step(own)
    assert turns == ["endless", "other"] * 3
    # Those that have finished begin anew, while it still goes on.
    begin_round(own)
    turns.clear()
    for _ in range(4):
        take_step(own)
    assert turns == ["endless", "other"] * 2


def test_questions_that_come_all_the_time_keep_nothing_else_waiting():
    """As under a load that goes on: in each page of requests there is one."""
    plant(6)
    running = Visit().call().ask()
    running.end()
    last_week = DatabaseNow() - timedelta(days=8)
    (question,) = PendingRequest.objects.filter(parent=running.call.id)
    own = Sweep()
    begin_round(own)
    for _ in range(4 * len(cleanup_rules())):
        question.id = new_id()
        question.ended = question.lease_until = last_week
        question.save(force_insert=True)
        take_step(own)
    assert Session.objects.count() == 1
    assert Stream.objects.count() == 1
    assert OutgoingMessage.objects.count() == len(running.bodies())


def test_it_catches_up_children_first(monkeypatch):
    monkeypatch.setattr(sweep, "STEP_ROWS", 2)
    plant(9)
    own = Sweep()
    sweep_up(own)
    assert not any(row_counts().values())


def test_a_long_walk_holds_up_nobody(monkeypatch):
    Visit().subscribe(*[resource(number) for number in range(40)])
    running = Visit().call()
    running.end()
    let_pass(minutes=10)
    own = Sweep()
    monkeypatch.setattr(sweep, "STEP_ROWS", 8)
    begin_round(own)
    for _ in cleanup_rules():
        take_step(own)
    assert [turn.kind.name for turn in own._turns] == ["subscriptions"]
    assert running.stream.cleared
    # Nor does it take much of anybody's time.
    monkeypatch.setattr(sweep, "LOOK_SECONDS", 3600)
    take_step(own)
    assert own.pause > 1800


def test_what_is_still_referred_to_is_passed_over_and_not_looked_at_again_and_again():
    for _ in range(5):
        Visit().call().end()
    visit = Visit()
    visit.call().end()
    let_pass(days=8)
    forget("messages")
    PendingRequest.objects.filter(session=visit.info.id).delete()
    (kind,) = (each for each in cleanup_rules() if each.name == "streams")
    found = [kind.forget(2) for _ in range(4)]
    assert found == [
        CleanupStep(0, more=True, found_nothing=True),
        CleanupStep(0, more=True, found_nothing=True),
        CleanupStep(1, more=True),
        CleanupStep(0, more=False, found_nothing=True),
    ]


# One process at a time


def test_processes_that_start_together_do_not_look_together():
    assert len({Sweep()._round for _ in range(10)}) == 10


def test_one_process_cleans_and_the_others_leave_it_to_that_one(django_assert_num_queries):
    plant(1)
    one, other = Sweep(), Sweep()
    begin_round(one)
    with django_assert_num_queries(2):
        begin_round(other)
    assert one
    assert not other
    begin_round(one)
    assert one


def test_another_one_takes_over_from_a_process_that_cleans_no_more():
    dead, other = Sweep(), Sweep()
    begin_round(dead)
    Claim.objects.update(until=DatabaseNow() - timedelta(seconds=1))
    begin_round(other)
    assert other
    # It was only asleep.
    assert dead
    begin_round(dead)
    assert not dead


def test_where_none_can_be_chosen_that_is_said_and_tried_again(monkeypatch, caplog):
    """As between a new version and its migrations."""

    def claim(owner):
        raise ProgrammingError("planted: no such table")

    own = Sweep()
    with monkeypatch.context() as patch:
        patch.setattr(sweep, "_claim", claim)
        begin_round(own)
    assert "none could be chosen to do so: planted" in caplog.text
    assert not own
    begin_round(own)
    assert own


@pytest.mark.django_db(transaction=True)
def test_of_several_that_begin_at_once_one_cleans():
    sweeps = [Sweep() for _ in range(4)]

    def begin(own: Sweep) -> bool:
        shorten_lock_wait()
        begin_round(own)
        return bool(own)

    assert sum(at_once(*[lambda own=own: begin(own) for own in sweeps])) == 1


# A load that goes on


@pytest.mark.django_db(transaction=True)
def test_under_a_load_that_goes_on_the_tables_level_off(monkeypatch):
    """A few times more has come than there is at any time, of everything that calls leave."""
    for age in ("_retention", "_replay_age"):
        monkeypatch.setattr(cleanup, age, lambda: timedelta(seconds=0.2))
    monkeypatch.setattr(sweep, "ROUND_SECONDS", 0.2)
    made, enough = dict.fromkeys(("Session", "Stream", "OutgoingMessage", "PendingRequest"), 0), []
    done = threading.Event()

    def load() -> None:
        number = 0
        while not done.is_set():
            begun = time.monotonic()
            visit = Visit()
            visit.subscribe(resource(number))
            for _ in range(2):
                visit.call(number=number).ask().end()
            visit.leave()
            number += 1
            for name, times in zip(made, (1, 2, 2 * 3, 2 * 2), strict=True):
                made[name] = number * times
            done.wait(time.monotonic() - begun)  # a load, and no flood, however slow the machine

    def clean() -> None:
        shorten_lock_wait()
        own = Sweep()
        while not done.is_set():
            own.note_activity()
            try:
                own.tick()
            except DatabaseError:
                assert connection.vendor == "sqlite"  # locked: the ledger comes again
            done.wait(min(0.05, own.pause))

    def watch() -> None:
        end = time.monotonic() + 3 * BOUND
        try:
            while time.monotonic() < end and not enough:
                counted = row_counts()
                if made["Session"] >= 20 and all(3 * counted[name] < made[name] for name in made):
                    enough.append(counted)
                done.wait(0.05)
        finally:
            done.set()

    at_once(load, clean, clean, watch, bound=4 * BOUND)
    assert enough, (made, row_counts())
