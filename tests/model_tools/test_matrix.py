"""Whoever calls, whichever tool: what is hidden is refused, and rows of others are not there."""

from __future__ import annotations

from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import User

from django_mcp import Context, ModelTools

from .desk.models import Ticket
from .support import client_for, customer, nobody, ticket, user_with

pytestmark = pytest.mark.django_db

UNKNOWN, MISSING, DENIED, DONE = "unknown", "missing", "denied", "done"
ALL = ("view_ticket", "add_ticket", "change_ticket", "delete_ticket")


class TicketForm(forms.ModelForm):
    class Meta:
        model = Ticket
        fields = ["number", "subject", "customer"]


def close(ctx: Context, queryset: Any) -> str:
    return str(queryset.update(status="closed"))


class TicketTools(ModelTools):
    """The staff sees all, everybody else his own; others may look at what is public."""

    fields = ["id", "subject"]
    create = update = TicketForm
    bulk_update = delete = resources = True
    actions = [close]
    confirm = False

    def get_queryset(self, ctx):
        rows = super().get_queryset(ctx)
        if ctx.user.is_staff:
            return rows
        return rows.filter(is_public=True) | rows.filter(customer__user=ctx.user)

    def has_change_permission(self, user, obj=None):
        own = obj is None or user.is_staff or obj.customer.user == user
        return own and super().has_change_permission(user, obj)

    def has_delete_permission(self, user, obj=None):
        return self.has_change_permission(user, obj) and super().has_delete_permission(user, obj)


CALLS = {
    "find_tickets": lambda row: {},
    "get_ticket": lambda row: {"id": row.pk},
    "create_ticket": lambda row: {"number": "N", "subject": "s", "customer": row.customer_id},
    "update_ticket": lambda row: {"id": row.pk, "subject": "s"},
    "update_tickets": lambda row: {"ids": [row.pk], "subject": "s"},
    "close": lambda row: {"ids": [row.pk]},
    "delete_tickets": lambda row: {"ids": [row.pk]},
}
ON_ROWS = ("get_ticket", "update_ticket", "update_tickets", "close", "delete_tickets")
CHANGING = ON_ROWS[1:]


def expected(who: str, tool: str, row: str) -> str:
    if who in ("anonymous", "plain"):
        return UNKNOWN
    if who in ("staff", "owner") or tool not in ON_ROWS:
        return DONE
    if row == "private":
        return MISSING
    return DENIED if tool in CHANGING else DONE


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("row", ["public", "private"])
@pytest.mark.parametrize("who", ["anonymous", "plain", "staff", "owner", "other"])
def test_everybody_and_every_tool(who, row, tool):
    owner = user_with(*ALL, username="owner")
    people = {
        "anonymous": nobody,
        "plain": lambda: User.objects.create(username="plain"),
        "staff": lambda: user_with(*ALL, username="staff", is_staff=True),
        "owner": lambda: owner,
        "other": lambda: user_with(*ALL, username="other"),
    }
    one = ticket(customer=customer(user=owner), is_public=row == "public")
    client = client_for(TicketTools, people[who]())
    listed = {each["name"] for each in client.list_tools()}
    outcome = expected(who, tool, row)
    assert (tool in listed) is (outcome is not UNKNOWN)
    answer = client.tool(tool, **CALLS[tool](one))
    if outcome is UNKNOWN:
        answer.assert_error(-32602, f"Unknown tool: {tool}")
    elif outcome is MISSING:
        answer.assert_failed("No Ticket matches the given query.")
    elif outcome is DENIED:
        answer.assert_failed("You may not do this with T-1")
    else:
        answer.assert_ok()
    if outcome is not DONE and tool in CHANGING:
        after = Ticket.objects.get(pk=one.pk)
        assert (after.subject, after.status) == (one.subject, one.status)
    if tool == "find_tickets" and outcome is DONE:
        shows = who in ("staff", "owner") or row == "public"
        assert (one.subject in answer.text) is shows
    if tool == "get_ticket":
        read = client.read(f"ticket://{one.pk}")
        if outcome is DONE:
            read.assert_ok()
        else:
            read.assert_error(-32602)
