"""``change``, the one of five tools for many models that writes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from .desk.models import Comment, Company, Customer, Invoice, Ticket
from .generic_desk import (
    TICKETS,
    client_for,
    superuser,
)
from .support import customer, found, ticket

pytestmark = pytest.mark.django_db


def test_rows_are_created_and_updated_through_the_form():
    one = customer()
    client = client_for(superuser(), TICKETS)
    values = {"number": "N-1", "subject": "New", "customer": one.pk, "price": "2.5"}
    client.tool("change", model="desk.Ticket", do="create", values=values).assert_ok()
    made = Ticket.objects.get(number="N-1")
    assert (made.status, made.customer) == ("open", one)
    change = {"model": "desk.Ticket", "do": "update", "ids": [made.pk]}
    client.tool("change", **change, values={"subject": "Newer"}, clear=["price"]).assert_ok()
    made.refresh_from_db()
    assert (made.subject, made.price, made.number) == ("Newer", None, "N-1")
    entry = LogEntry.objects.latest("pk")
    assert entry.change_message == "Changed Subject and Price. (via MCP, client django_mcp.testing)"
    client.tool("change", **change, values={"status": "lost"}).assert_failed("status: Input should")
    long = {"subject": "x" * 101}
    client.tool("change", **change, values=long).assert_failed("subject: Ensure this value has at")


def test_what_some_clients_fill_in_for_nothing_is_nothing():
    client = client_for(superuser(), TICKETS)
    values = {"number": "N-1", "subject": "New", "customer": customer().pk, "due": ""}
    empty = {"ids": [], "clear": [], "row_version": "", "action": "", "confirm": None}
    client.tool("change", model="desk.Ticket", do="create", values=values, **empty).assert_ok()
    assert Ticket.objects.get().due is None


def test_an_update_of_what_has_changed_meanwhile_is_refused():
    one = ticket()
    client = client_for(superuser(), TICKETS)
    version = found(client, "get", model="desk.Ticket", id=one.pk)["row_version"]
    Ticket.objects.filter(pk=one.pk).update(subject="Somebody else's")
    change = {"model": "desk.Ticket", "do": "update", "ids": [one.pk], "values": {"subject": "M"}}
    client.tool("change", **change, row_version=version).assert_failed("has changed since it was")
    one.refresh_from_db()
    assert one.subject == "Somebody else's"
    version = found(client, "get", model="desk.Ticket", id=one.pk)["row_version"]
    client.tool("change", **change, row_version=version).assert_ok()


def test_a_deletion_is_confirmed_after_a_look_at_what_goes_along():
    one = ticket()
    Comment.objects.create(ticket=one, author=User.objects.create(username="a"), text="Hello")
    client = client_for(superuser(), TICKETS)
    deletion = {"model": "desk.Ticket", "do": "delete", "ids": [one.pk]}
    shown = client.tool("change", **deletion).assert_failed("Delete 1 ticket: T-1 Subject 1? With")
    assert "With that would go: comments (1)" in shown.text
    word = re.search(r'confirm="(\w+)"', shown.text)[1]  # type: ignore[index]
    client.tool("change", **deletion, confirm="other").assert_failed("Nothing has been done yet")
    assert Ticket.objects.count() == 1
    client.tool("change", **deletion, confirm=word).assert_contains('"deleted":1')
    assert Ticket.objects.count() == 0


def test_a_client_that_shows_forms_asks_its_user():
    one = ticket()
    client = client_for(superuser(), TICKETS, answers=[None])
    deletion = {"model": "desk.Ticket", "do": "delete", "ids": [one.pk]}
    client.tool("change", **deletion).assert_ok()
    assert client.asked[0].message == "Delete 1 ticket: T-1 Subject 1?"
    assert Ticket.objects.count() == 0


def test_what_is_protected_stays():
    one = ticket()
    Invoice.objects.create(ticket=one, amount=3)
    client = client_for(superuser(), TICKETS)
    deletion = {"model": "desk.Ticket", "do": "delete", "ids": [one.pk]}
    client.tool("change", **deletion).assert_failed("This cannot be deleted: Invoice: 3")


def test_actions_that_were_named_are_done_after_a_confirmation():
    one = ticket()
    client = client_for(superuser(), TICKETS)
    act = {"model": "desk.Ticket", "do": "action", "ids": [one.pk]}
    client.tool("change", **act).assert_failed("Say which action. Of desk.Ticket there are close.")
    for name in ("publish", "delete_selected", "open"):
        client.tool("change", **act, action=name).assert_failed(f"Unknown action {name!r}. Of desk")
    shown = client.tool("change", **act, action="close").assert_failed("Close the tickets? T-1")
    word = re.search(r'confirm="(\w+)"', shown.text)[1]  # type: ignore[index]
    client.tool("change", **act, action="close", confirm=word).assert_contains("1 closed")
    one.refresh_from_db()
    assert one.status == "closed"


@pytest.mark.django_db(transaction=True)
def test_where_requests_are_transactions_questions_are_asked_before_one_begins(atomic_requests):
    one = ticket()
    client = client_for(superuser(), TICKETS, answers=[None])
    act = {"model": "desk.Ticket", "do": "action", "action": "close", "ids": [one.pk]}
    client.tool("change", **act).assert_ok()
    assert client.asked[0].message == "Close the tickets? T-1 Subject 1"
    one.refresh_from_db()
    assert one.status == "closed"


def test_an_answer_counts_for_one_call():
    one = ticket()
    client = client_for(superuser(), TICKETS, capabilities={"elicitation": {}})
    act = {"model": "desk.Ticket", "do": "action", "action": "close", "ids": [one.pk]}
    asked = client.tool("change", **act).result
    (key,) = asked["inputRequests"]
    answered = {
        "requestState": asked["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {}}},
    }

    def send() -> Any:
        return client.request("tools/call", name="change", arguments=act, **answered)

    send().assert_ok()
    Ticket.objects.update(status="open")
    send().assert_failed("This answer has been used")
    assert Ticket.objects.get().status == "open"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"do": "create", "ids": [0]}, "ids: create takes values, not this."),
        (
            {"do": "delete", "ids": [0], "values": {"a": 1}},
            "values: delete takes ids, confirm, not",
        ),
        (
            {"do": "update", "ids": [0], "action": "close"},
            "action: update takes ids, values, clear",
        ),
        (
            {"do": "update", "values": {"subject": "x"}},
            "ids: update takes the id of one row, not 0",
        ),
        ({"do": "update", "ids": [0, 1], "values": {"subject": "x"}}, "the id of one row, not 2."),
        ({"do": "delete"}, "ids: List should have at least 1 item"),
        ({"do": "update", "ids": [0]}, "Say what is to be changed: one of number, subject"),
        ({"do": "update", "ids": [0], "values": {"id": 2}}, "values: 'id' is unknown. To update"),
        ({"do": "update", "ids": [0], "values": {"row_version": "x"}}, "'row_version' is unknown"),
        (
            {"do": "create", "values": {"secret_note": "x"}},
            "'secret_note' is unknown. To create rows",
        ),
        ({"do": "destroy"}, "do: Input should be 'create', 'update', 'delete' or 'action'"),
        ({"do": "update", "ids": [1], "values": {"subject": "x"}}, "No Ticket matches"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(arguments, message):
    one = ticket()
    if "ids" in arguments:
        arguments = {**arguments, "ids": [one.pk + each for each in arguments["ids"]]}
    client = client_for(superuser(), TICKETS)
    client.tool("change", model="desk.Ticket", **arguments).assert_failed(message)
    assert Ticket.objects.get().subject == "Subject 1"


def test_what_nothing_of_a_model_takes_is_not_ignored():
    one = customer()
    client = client_for(superuser(), {"write": ["update", "delete"], "confirm": False})
    change = {"model": "desk.Customer", "ids": [one.pk]}
    client.tool("change", **change, do="update", clear=["name"]).assert_failed(
        "clear: unknown argument (this takes id, row_version, name)"
    )
    client.tool("change", **change, do="delete", confirm="yes").assert_failed(
        "confirm: unknown argument (this takes ids)"
    )
    assert Customer.objects.get().name == "Ada"


def test_a_model_that_is_only_read_refuses_all_changes():
    one = customer()
    client = client_for(superuser(), TICKETS)
    calls = [
        {"do": "create", "values": {"name": "B"}},
        {"do": "update", "ids": [one.pk], "values": {"name": "B"}},
        {"do": "delete", "ids": [one.pk]},
    ]
    for each in calls:
        client.tool("change", model="desk.Customer", **each).assert_failed(
            f"You may not {each['do']} rows of desk.Customer. You may only read them."
        )
    act = {"do": "action", "action": "close", "ids": [one.pk]}
    client.tool("change", model="desk.Customer", **act).assert_failed(
        "Of desk.Customer there are n"
    )
    assert Company.objects.count() == 0
    assert Customer.objects.get().name == "Ada"
