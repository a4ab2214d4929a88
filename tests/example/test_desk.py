from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError, transaction

from example_project.support import desk
from example_project.support.models import Comment, Customer, Ticket

pytestmark = pytest.mark.django_db

Status = Ticket.Status


@pytest.fixture
def ticket(customer) -> Ticket:
    return Ticket.objects.create(subject="Late", body="Very.", customer=customer.customer)


def test_public_reply_of_an_agent_passes_the_turn(ticket, agent):
    before = ticket.updated
    desk.reply(ticket, author=agent, body="Soon.")
    ticket.refresh_from_db()
    assert ticket.status == Status.PENDING
    assert ticket.updated > before


def test_internal_note_leaves_the_status_alone(ticket, agent):
    comment = desk.reply(ticket, author=agent, body="Hm.", internal=True)
    ticket.refresh_from_db()
    assert ticket.status == Status.OPEN
    assert (comment.internal, comment.author) == (True, "agent")


def test_answer_of_the_customer_opens_the_ticket_again(ticket):
    desk.set_status(ticket, status=Status.SOLVED)
    comment = desk.reply(ticket, author=ticket.customer, body="Not yet.")
    ticket.refresh_from_db()
    assert ticket.status == Status.OPEN
    assert comment.from_customer
    assert comment.author == ticket.customer.name


def test_closed_ticket_takes_notes_only(ticket, agent):
    # As another process does it, behind the back of the object at hand.
    Ticket.objects.filter(pk=ticket.pk).update(status=Status.CLOSED)
    with pytest.raises(desk.ClosedTicket):
        desk.reply(ticket, author=agent, body="Too late.")
    assert not ticket.comments.exists()
    desk.reply(ticket, author=agent, body="For the record.", internal=True)
    assert ticket.comments.count() == 1


def test_two_people_do_not_undo_each_others_changes(ticket, agent):
    mine, theirs = (Ticket.objects.get(pk=ticket.pk) for _ in range(2))
    desk.assign(mine, assignee=agent)
    desk.set_status(theirs, status=Status.SOLVED)
    ticket.refresh_from_db()
    assert (ticket.assignee, ticket.status) == (agent, Status.SOLVED)


def test_agents_are_those_who_may_be_given_tickets():
    User.objects.filter(username="agent3").update(is_active=False)
    assert [user.username for user in desk.agents()] == ["admin", "agent", "agent2"]


def test_who_sees_which_ticket(agent, customer):
    other = User.objects.get(username="customer2")
    everything = Ticket.objects.count()
    assert Ticket.objects.visible_to(agent).count() == everything
    mine = set(Ticket.objects.visible_to(customer))
    theirs = set(Ticket.objects.visible_to(other))
    assert mine == set(Ticket.objects.filter(customer__user=customer))
    assert mine
    assert theirs
    assert not mine & theirs
    assert not Ticket.objects.visible_to(AnonymousUser()).exists()


def test_search_wants_every_word_in_any_case(ticket):
    ticket.subject, ticket.body = "Parcel HB-1 Lost", "With the blue ZEBRA in it."
    ticket.save()
    assert list(Ticket.objects.containing("zebra parcel")) == [ticket]
    assert not Ticket.objects.containing("zebra horse").exists()


@pytest.mark.parametrize("internal", [True, False])
def test_database_refuses_impossible_comments(ticket, agent, internal):
    author = {"customer": ticket.customer} if internal else {
        "customer": ticket.customer, "user": agent,
    }  # fmt: skip
    with pytest.raises(IntegrityError), transaction.atomic():
        Comment.objects.create(ticket=ticket, body="?", internal=internal, **author)


def test_comment_outlives_its_agent(ticket):
    leaver = User.objects.create_user("leaver")
    comment = desk.reply(ticket, author=leaver, body="Bye.")
    leaver.delete()
    comment.refresh_from_db()
    assert comment.author == "former agent"
    assert not comment.from_customer


def test_rows_are_shown_by_what_people_know_them_by(ticket, agent):
    comment = desk.reply(ticket, author=agent, body="Soon.")
    assert str(ticket) == f"#{ticket.pk} Late"
    assert str(comment) == f"Comment {comment.pk} on ticket #{ticket.pk}"
    customer = Customer(name="Ada Berg", email="ada@example.com")
    assert str(customer) == "Ada Berg <ada@example.com>"
    assert ticket.priority_name == "normal"
