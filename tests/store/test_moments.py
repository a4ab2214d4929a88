"""When the ledger looks: a moment after a call has spoken, and not for each call that comes."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from django_mcp.models import PendingRequest
from django_mcp.store import ledger
from django_mcp.store.delivery.stream_writer import FIRST_WRITE_DELAY_SECONDS
from django_mcp.store.ledger import Ledger

from .visiting import Visit

pytestmark = pytest.mark.django_db


class Unstarted(Ledger):
    """A ledger whose thread is only asked for."""

    woken = 0

    def wake(self) -> None:
        """Count."""
        self.woken += 1


@pytest.fixture
def own():
    return Unstarted()


@pytest.fixture
def running(own):
    visit = Visit()
    calls = [visit.begin(number=number) for number in range(3)]
    for call in calls:
        call.post._submit = own.submit
    return calls


def rows():
    return PendingRequest.objects.count()


def test_it_is_woken_once_for_all_who_speak_within_a_moment(own, running):
    for call in running:
        call.say().say()
    assert own.woken == 1


def test_it_writes_nothing_before_and_comes_back_in_time(own, running):
    first, *_ = running
    first.say()
    first.post.write_at = time.monotonic() + 60
    own.tick()
    assert rows() == 0
    first.post.write_at = time.monotonic() + FIRST_WRITE_DELAY_SECONDS
    assert 0 <= own._pause() <= FIRST_WRITE_DELAY_SECONDS
    first.post.write_at = time.monotonic()
    assert own._pause() == 0
    own.tick()
    assert rows() == 1
    assert own._pause() > FIRST_WRITE_DELAY_SECONDS


def test_while_it_waits_nobody_else_who_speaks_wakes_it(own, running):
    first, second, _ = running
    first.say()
    first.post.write_at = time.monotonic() + 60
    own.tick()
    second.say()
    assert own.woken == 1


def test_who_cannot_wait_wakes_it_and_is_written_at_once(own, running):
    first, second, _ = running
    first.say()
    first.post.write_at = time.monotonic() + 60
    own.tick()
    second.post.want_rows()
    assert own.woken == 2
    own.tick()
    assert rows() == 1
    assert second.row


def test_what_could_not_be_written_is_tried_again_after_the_usual_pause(own, running):
    first, *_ = running
    own.tick()
    first.post.want_rows()
    own._to_write[first.post] = None
    assert own._pause() > FIRST_WRITE_DELAY_SECONDS


def test_of_a_call_that_has_ended_it_writes_nothing(own, running):
    first, *_ = running
    first.say()
    first.post.end(first.call, PendingRequest.State.ANSWERED, b"{}")
    first.post.write_at = 0.0
    own.tick()
    assert rows() == 0


class Ticking(Ledger):
    """A ledger that counts how often it looks, and does nothing else."""

    ticks = 0

    def tick(self) -> None:
        """Count."""
        self.ticks += 1

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that the thread is to do."""
        end = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.001)


@pytest.fixture
def ticking():
    made = Ticking()
    yield made
    made.close()


def test_calls_that_come_and_go_do_not_wake_it_one_by_one(ticking, monkeypatch):
    monkeypatch.setattr(ledger, "PAUSE_SECONDS", 60)
    ticking.changes.tick()
    ticking.start_looking()
    ticking.until(lambda: ticking.ticks == 1)
    for _ in range(20):
        ticking.start_looking()
        time.sleep(0.001)
    assert ticking.ticks == 1


def test_it_rests_once_nothing_has_been_in_flight_for_a_while(ticking, monkeypatch):
    monkeypatch.setattr(ledger, "PAUSE_SECONDS", 0.001)
    ticking.start_looking()
    ticking.until(lambda: ticking.is_resting)
    rested = ticking.ticks
    time.sleep(0.05)
    assert ticking.ticks == rested
    ticking.start_looking()
    ticking.until(lambda: ticking.ticks > rested)
