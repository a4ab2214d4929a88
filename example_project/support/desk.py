"""What happens to tickets, whoever asks for it: a tool, the admin or a command.

Permissions are the caller's business. Every write names its columns, so that two people who
work on one ticket do not undo each other's changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from django_mcp import mcp
from example_project.support.models import Comment, Customer, Refund, Ticket

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from django.db.models import QuerySet


class ClosedTicket(Exception):
    """A closed ticket takes no replies; the desk reopens it first."""


class Outdated(Exception):
    """Somebody has refunded something, or corrected the sum, since it was looked at."""


def agents() -> QuerySet[User]:
    """The users to whom a ticket can be given."""
    return User.objects.with_perm("support.assign_ticket").order_by("username")


def speaker(user: User) -> User | Customer:
    """As whom a user writes: agents as themselves, customers as the customer that they are."""
    if user.has_perm("support.view_all_tickets"):
        return user
    return Customer.objects.get(user=user)


@transaction.atomic
def reply(ticket: Ticket, *, author: User | Customer, body: str, internal: bool = False) -> Comment:
    """Add a comment; a public one also passes the turn to the other side."""
    # The ticket before its comment: of two writers the second waits here, holding nothing.
    _pass_turn(ticket, status=_turn_after(author, internal=internal))
    if isinstance(author, Customer):
        return ticket.comments.create(customer=author, body=body)
    return ticket.comments.create(user=author, body=body, internal=internal)


def assign(ticket: Ticket, *, assignee: User | None) -> None:
    """Give the ticket to an agent, or back to the queue."""
    ticket.assignee = assignee
    _save(ticket, "assignee")


def set_status(ticket: Ticket, *, status: Ticket.Status) -> None:
    """Move the ticket to the status, from whichever it has."""
    ticket.status = status
    _save(ticket, "status")


def set_status_of_all(tickets: QuerySet[Ticket], *, status: Ticket.Status) -> int:
    """The same for many at once; says how many there were."""
    return _update_all(tickets, status=status)


def assign_all(tickets: QuerySet[Ticket], *, assignee: User) -> int:
    """Give many tickets to an agent; says how many there were."""
    return _update_all(tickets, assignee=assignee)


@transaction.atomic
def close_all(tickets: QuerySet[Ticket], *, by: User) -> int:
    """Close many tickets and note it in their history; says how many there were."""
    # Locked in one order, so that two who close the same tickets wait rather than deadlock.
    locked = list(tickets.select_for_update().order_by("pk"))
    LogEntry.objects.log_actions(by.pk, locked, CHANGE, "Closed with others.")
    keys = [ticket.pk for ticket in locked]
    return _update_all(Ticket.objects.filter(pk__in=keys), status=Ticket.Status.CLOSED)


@transaction.atomic
def refund(
    ticket: Ticket, *, by: User, amount: Decimal, reason: Refund.Reason, refundable: Decimal
) -> Refund:
    """Pay some of it back, provided that `refundable` is still what is left."""
    # The ticket before its refund: of two who refund the second waits here, and then looks.
    _touch(ticket)
    ticket.refresh_from_db(fields=["paid"])
    if ticket.refundable != refundable:
        raise Outdated
    return ticket.refunds.create(user=by, amount=amount, reason=reason)


def _turn_after(author: User | Customer, *, internal: bool) -> Ticket.Status | None:
    if internal:
        return None
    return Ticket.Status.OPEN if isinstance(author, Customer) else Ticket.Status.PENDING


def _pass_turn(ticket: Ticket, *, status: Ticket.Status | None) -> None:
    changes = {"updated": timezone.now()} | ({"status": status} if status else {})
    tickets = Ticket.objects.filter(pk=ticket.pk)
    if status is not None:
        tickets = tickets.exclude(status=Ticket.Status.CLOSED)
    if not tickets.update(**changes):
        raise ClosedTicket
    if status is not None:
        _announce([ticket.pk])
    for name, value in changes.items():
        setattr(ticket, name, value)


def _touch(ticket: Ticket) -> None:
    ticket.updated = timezone.now()
    Ticket.objects.filter(pk=ticket.pk).update(updated=ticket.updated)


@transaction.atomic
def _update_all(tickets: QuerySet[Ticket], **changes: object) -> int:
    keys = list(tickets.values_list("pk", flat=True))
    number = tickets.update(**changes, updated=timezone.now())
    _announce(keys)
    return number


def _announce(keys: Iterable[int]) -> None:
    """Say what Django does not: `update()` sends no signals."""
    for key in keys:
        mcp.notify_resource_updated(f"ticket://{key}")
    mcp.notify_resources_changed()


def _save(ticket: Ticket, *columns: str) -> None:
    ticket.updated = timezone.now()
    ticket.save(update_fields=[*columns, "updated"])
