"""How many tickets there are, by status and by the week in which they came in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING

from django.db.models import Count
from django.db.models.functions import TruncWeek
from django.utils import timezone

from example_project.support.models import Ticket

if TYPE_CHECKING:
    from example_project.support.querysets import TicketQuerySet


def no_tickets() -> dict[Ticket.Status, int]:
    """A zero for every status."""
    return dict.fromkeys(Ticket.Status, 0)


@dataclass(slots=True)
class Week:
    """The tickets that came in during a week, by the status that they have today."""

    monday: date
    by_status: dict[Ticket.Status, int] = field(default_factory=no_tickets)


def by_status(tickets: TicketQuerySet) -> dict[Ticket.Status, int]:
    """The number of tickets in each status."""
    rows = tickets.order_by().values_list("status").annotate(number=Count("pk"))
    return no_tickets() | {Ticket.Status(status): number for status, number in rows}


def by_week(tickets: TicketQuerySet, *, weeks: int) -> list[Week]:
    """The last weeks up to the present one, oldest first, empty ones included."""
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    this_monday = today - timedelta(days=today.weekday())
    mondays = [this_monday - timedelta(weeks=back) for back in range(weeks - 1, -1, -1)]
    table = {monday.date(): Week(monday=monday.date()) for monday in mondays}
    rows = (
        tickets.filter(created__gte=mondays[0])
        .order_by()
        .annotate(week=TruncWeek("created"))
        .values_list("week", "status")
        .annotate(number=Count("pk"))
    )
    for week, status, number in rows:
        table[week.date()].by_status[Ticket.Status(status)] = number
    return list(table.values())
