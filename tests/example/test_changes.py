"""What clients that watch a ticket, or the list of them, are told."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from django_mcp.testing import announcements
from example_project.support import desk
from example_project.support.models import Comment, Refund, Ticket

pytestmark = pytest.mark.django_db

Status = Ticket.Status
LIST = "resources"


@pytest.fixture
def ticket(customer) -> Ticket:
    return Ticket.objects.create(
        subject="Late", body="Very.", customer=customer.customer, paid=Decimal("40.00")
    )


def announced(act: Callable[[], object]) -> set[str]:
    with announcements() as found:
        act()
    return set(found)


def test_an_assignment_changes_the_ticket_alone(ticket, agent):
    uri = f"ticket://{ticket.pk}"
    assert announced(lambda: desk.assign(ticket, assignee=agent)) == {uri}


def test_a_status_changes_the_list_of_open_tickets_too(ticket):
    moved = announced(lambda: desk.set_status(ticket, status=Status.SOLVED))
    assert moved == {f"ticket://{ticket.pk}", LIST}


def test_replies_pass_the_turn_and_notes_do_not(ticket, agent):
    uri = f"ticket://{ticket.pk}"
    assert announced(lambda: desk.reply(ticket, author=agent, body="Soon.")) == {uri, LIST}
    note = announced(lambda: desk.reply(ticket, author=agent, body="Hm.", internal=True))
    assert note == {uri}


def test_a_comment_that_is_corrected_or_removed(ticket, agent):
    uri = f"ticket://{ticket.pk}"
    comment = desk.reply(ticket, author=agent, body="Soon.")
    comment.body = "Tomorrow."
    assert announced(comment.save) == {uri}
    assert announced(comment.delete) == {uri}


def test_a_refund_is_announced(ticket, agent):
    paid = announced(
        lambda: desk.refund(
            ticket,
            by=agent,
            amount=Decimal(1),
            reason=Refund.Reason.LATE,
            refundable=Decimal(40),
        )
    )
    assert paid == {f"ticket://{ticket.pk}"}


def test_many_tickets_at_once(ticket, agent, customer):
    other = Ticket.objects.create(subject="-", body="-", customer=customer.customer)
    both = Ticket.objects.filter(pk__in=[ticket.pk, other.pk])
    expected = {f"ticket://{ticket.pk}", f"ticket://{other.pk}", LIST}
    assert announced(lambda: desk.assign_all(both, assignee=agent)) == expected
    assert announced(lambda: desk.set_status_of_all(both, status=Status.SOLVED)) == expected
    assert announced(lambda: desk.close_all(both, by=agent)) == expected


def test_tickets_come_and_go(customer):
    with announcements() as found:
        ticket = Ticket.objects.create(subject="-", body="-", customer=customer.customer)
        uri = f"ticket://{ticket.pk}"
        assert set(found) == {uri, LIST}
        found.clear()
        ticket.delete()
    assert set(found) == {uri, LIST}


@pytest.mark.parametrize("action", ["take", "solve", "close"])
def test_actions_of_the_admin(client, ticket, action):
    client.force_login(User.objects.get(username="admin"))
    address = reverse("admin:support_ticket_changelist")
    chosen = {"action": action, "_selected_action": [ticket.pk]}
    assert announced(lambda: client.post(address, chosen)) >= {f"ticket://{ticket.pk}"}


def test_a_comment_in_the_admin(client, ticket):
    client.force_login(User.objects.get(username="admin"))
    fields = {"ticket": ticket.pk, "body": "From the admin."}
    address = reverse("admin:support_comment_add")
    assert announced(lambda: client.post(address, fields)) == {f"ticket://{ticket.pk}"}
    assert Comment.objects.get(ticket=ticket).body == "From the admin."
