from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from example_project.support import statistics
from example_project.support.demo_data.seeding import clear
from example_project.support.models import Customer, Ticket

pytestmark = pytest.mark.django_db

Status = Ticket.Status


@pytest.fixture
def wednesday(monkeypatch) -> datetime:
    """Some Wednesday that is today, on an empty desk."""
    clear()
    today = datetime(2026, 3, 4, 15, 30, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: today)
    return today


def arrive(created: datetime, status: Status = Status.OPEN) -> None:
    customer, _ = Customer.objects.get_or_create(name="A", email="a@example.com")
    Ticket.objects.create(subject="s", body="b", customer=customer, status=status, created=created)


def test_empty_desk_has_zeros(wednesday):
    assert statistics.by_status(Ticket.objects.all()) == {
        Status.OPEN: 0, Status.PENDING: 0, Status.SOLVED: 0, Status.CLOSED: 0,
    }  # fmt: skip
    weeks = statistics.by_week(Ticket.objects.all(), weeks=3)
    assert [str(week.monday) for week in weeks] == ["2026-02-16", "2026-02-23", "2026-03-02"]
    assert all(set(week.by_status.values()) == {0} for week in weeks)


def test_weeks_begin_on_monday_at_midnight(wednesday):
    monday = datetime(2026, 3, 2, tzinfo=UTC)
    arrive(monday)
    arrive(monday - timedelta(seconds=1), Status.CLOSED)
    arrive(wednesday)
    last, present = statistics.by_week(Ticket.objects.all(), weeks=2)
    assert (last.by_status[Status.CLOSED], last.by_status[Status.OPEN]) == (1, 0)
    assert (present.by_status[Status.CLOSED], present.by_status[Status.OPEN]) == (0, 2)


def test_older_weeks_count_in_the_total_only(wednesday):
    arrive(wednesday - timedelta(weeks=9), Status.SOLVED)
    (present,) = statistics.by_week(Ticket.objects.all(), weeks=1)
    assert set(present.by_status.values()) == {0}
    assert statistics.by_status(Ticket.objects.all())[Status.SOLVED] == 1
