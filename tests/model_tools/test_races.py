"""Two who change one row at the same time, each in a transaction of its own."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django import forms
from django.db import connection, transaction

from django_mcp import ModelTools
from django_mcp.model_tools.changing.row_versions import lock
from django_mcp.testing import Answer

from .desk.models import Tag, Ticket
from .support import client_for, found, ticket, user_with

BOUND = 20


class TicketForm(forms.ModelForm):
    class Meta:
        model = Ticket
        fields = ["subject", "body"]


class Slow(ModelTools):
    """The first who saves waits, with the row locked, until the other has been sent."""

    fields = ["id", "subject"]
    update = TicketForm
    saving = threading.Event()
    going_on = threading.Event()

    def save_form(self, ctx, form):
        row = form.save()
        if form.cleaned_data["subject"] == "first":
            self.saving.set()
            assert self.going_on.wait(BOUND)
        return row


@pytest.fixture(autouse=True)
def new_events():
    Slow.saving, Slow.going_on = threading.Event(), threading.Event()


def racing(client: Any, first: dict[str, Any], second: dict[str, Any]) -> list[Answer]:
    """The answers to two calls, of which the second comes while the first writes."""
    answers: dict[int, Answer] = {}

    def send(number: int, arguments: dict[str, Any]) -> None:
        try:
            answers[number] = client.tool("update_ticket", **arguments)
        finally:
            connection.close()

    one = threading.Thread(target=send, args=(1, first))
    other = threading.Thread(target=send, args=(2, second))
    one.start()
    assert Slow.saving.wait(BOUND)
    other.start()
    # It is held up by the lock: the first goes on without it.
    other.join(0.2)
    assert other.is_alive()
    Slow.going_on.set()
    for each in (one, other):
        each.join(BOUND)
        assert not each.is_alive()
    return [answers[1], answers[2]]


@pytest.mark.django_db(transaction=True)
def test_of_two_updates_of_what_was_read_once_one_is_refused():
    client = client_for(Slow, user_with("view_ticket", "change_ticket"))
    one = ticket()
    read = found(client, "get_ticket", id=one.pk)["row_version"]
    first, second = racing(
        client,
        {"id": one.pk, "subject": "first", "row_version": read},
        {"id": one.pk, "subject": "second", "row_version": read},
    )
    first.assert_ok()
    second.assert_failed("has changed since it was read, so nothing was written")
    assert Ticket.objects.get().subject == "first"


@pytest.mark.django_db(transaction=True)
def test_updates_of_different_fields_lose_nothing(repeatable_read):
    client = client_for(Slow, user_with("view_ticket", "change_ticket"))
    one = ticket()
    for answer in racing(
        client, {"id": one.pk, "subject": "first"}, {"id": one.pk, "body": "second"}
    ):
        answer.assert_ok()
    after = Ticket.objects.get()
    assert (after.subject, after.body) == ("first", "second")


@pytest.mark.django_db
def test_rows_are_locked_in_the_order_of_their_keys():
    """Of two who lock some of the same rows one waits, and never both for each other."""
    made = [ticket(number) for number in (1, 2, 3)]
    with transaction.atomic():
        assert lock(Ticket.objects.order_by("-pk")) == made


class Restless(ModelTools):
    """Somebody else tags the ticket while it is shown."""

    fields = ["id", "subject", "tags", "tagged"]
    update = TicketForm

    def tagged(self, row) -> int:
        row.tags.through.objects.get_or_create(ticket=row, tag=Tag.objects.get())
        return 1


@pytest.mark.django_db
def test_what_changes_while_it_is_shown_makes_the_version_an_old_one():
    client = client_for(Restless, user_with("view_ticket", "change_ticket"))
    one = ticket()
    Tag.objects.create(name="red")
    read = found(client, "get_ticket", id=one.pk)
    assert read["tags"] == []
    version = read["row_version"]
    again = client.tool("update_ticket", id=one.pk, subject="New", row_version=version)
    again.assert_failed("has changed since it was read")
