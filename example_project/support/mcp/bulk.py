"""A tool that takes its time: it says how far it is, and stops between two batches."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from django.utils import timezone
from pydantic import Field

from django_mcp import Context, ToolError, mcp
from example_project.support import desk
from example_project.support.mcp.queries import TicketId
from example_project.support.mcp.schemas import ClosedTickets
from example_project.support.models import Ticket
from example_project.support.querysets import TicketQuerySet

BATCH = 25


# Each batch is committed by itself, also on a site that has ATOMIC_REQUESTS.
@mcp.tool(
    title="Close many tickets",
    read_only=False,
    destructive=False,
    idempotent=True,
    permission="support.change_ticket",
    atomic=False,
)
def close_tickets(
    ctx: Context,
    ticket_ids: Annotated[list[TicketId], Field(max_length=1000)] | None = None,
    status: Ticket.Status | None = None,
    idle_days: Annotated[int, Field(ge=0, le=3650)] | None = None,
) -> ClosedTickets:
    """Close tickets for good, many at once: by number, or by what they have in common.

    All conditions must hold, and there must be one. Closed tickets take no replies. The call
    reports its progress. If it is cancelled, those closed so far stay closed, and the history of
    each in the admin says so; call it again to go on.

    Args:
        ticket_ids: Only these numbers.
        status: Only tickets with this status, for example "solved".
        idle_days: Only tickets on which nothing has happened for so many days.
    """
    tickets = _chosen(Ticket.objects.visible_to(ctx.user), ticket_ids, status, idle_days)
    keys = list(tickets.order_by("pk").values_list("pk", flat=True))
    closed = 0
    for start in range(0, len(keys), BATCH):
        if ctx.cancelled:
            break
        batch = keys[start : start + BATCH]
        # Under the same conditions: a customer may have answered in the meantime.
        closed += desk.close_all(tickets.filter(pk__in=batch), by=ctx.user)
        ctx.log("info", f"{closed} of {len(keys)} tickets are closed, up to number {batch[-1]}.")
        ctx.progress(start + len(batch), len(keys), f"{closed} tickets closed")
    return ClosedTickets(closed=closed, left_out=sorted({*(ticket_ids or ())} - {*keys}))


def _chosen(
    tickets: TicketQuerySet,
    ticket_ids: list[int] | None,
    status: Ticket.Status | None,
    idle_days: int | None,
) -> TicketQuerySet:
    if ticket_ids is None and status is None and idle_days is None:
        raise ToolError("Say which: give ticket_ids, status or idle_days.")
    tickets = tickets.exclude(status=Ticket.Status.CLOSED)
    if ticket_ids is not None:
        tickets = tickets.filter(pk__in=ticket_ids)
    if status is not None:
        tickets = tickets.filter(status=status)
    if idle_days is not None:
        tickets = tickets.filter(updated__lt=timezone.now() - timedelta(days=idle_days))
    return tickets
