"""Whoever calls, whichever model, each of the five tools: what is hidden is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User

from django_mcp import MCPServer
from django_mcp.testing import MCPClient

from .desk.models import Customer, Tag, Ticket
from .support import MODERN, nobody, ticket, user_with

pytestmark = pytest.mark.django_db

UNKNOWN_TOOL, UNKNOWN_MODEL, DENIED, DONE = "unknown tool", "unknown model", "denied", "done"


class TicketAdmin(admin.ModelAdmin):
    fields = ["number", "subject", "customer"]
    actions = ["close"]

    @admin.action(permissions=["change"])
    def close(self, request, queryset):
        queryset.update(status="closed")


site = admin.AdminSite("matrix")
site.register(Ticket, TicketAdmin)
site.register(Customer, fields=["name"])
site.register(Tag, fields=["name"])

PEOPLE = {
    "anonymous": nobody,
    "outsider": lambda: user_with("view_ticket", "change_ticket", "delete_ticket"),
    "retired": lambda: user_with("view_ticket", is_staff=True, is_active=False),
    "staff": lambda: user_with(is_staff=True),
    "other": lambda: user_with("view_tag", "change_tag", is_staff=True),
    "viewer": lambda: user_with("view_ticket", is_staff=True),
    "adder": lambda: user_with("view_ticket", "add_ticket", is_staff=True),
    "changer": lambda: user_with("change_ticket", is_staff=True),
    "deleter": lambda: user_with("view_ticket", "delete_ticket", is_staff=True),
    "superuser": lambda: User.objects.create_superuser("root"),
}
MAY = {
    "viewer": set(),
    "adder": {"create"},
    "changer": {"update", "action"},
    "deleter": {"delete"},
    "superuser": {"create", "update", "delete", "action"},
}
"""What they may change of tickets, who see them."""
SEES = {"other": {"desk.Tag"}, "superuser": {"desk.Ticket", "desk.Customer", "desk.Tag"}}
"""The models that they see, if that is not tickets alone or, of who sees none, nothing."""

CALLS: dict[str, Any] = {
    "describe_model": lambda row: {},
    "find": lambda row: {},
    "get": lambda row: {"id": row.pk},
    "create": lambda row: {"values": {"number": "N", "subject": "s", "customer": row.customer_id}},
    "update": lambda row: {"ids": [row.pk], "values": {"subject": "s"}},
    "delete": lambda row: {"ids": [row.pk]},
    "action": lambda row: {"ids": [row.pk], "action": "close"},
}
READING = ("describe_model", "find", "get")


def seen_by(who: str) -> set[str]:
    return SEES.get(who, {"desk.Ticket"} if who in MAY else set())


def expected(who: str, call: str) -> str:
    """What comes of a call about tickets."""
    sees = seen_by(who)
    if not sees or (call not in READING and not MAY.get(who)):
        return UNKNOWN_TOOL
    if "desk.Ticket" not in sees:
        return UNKNOWN_MODEL
    return DONE if call in READING or call in MAY[who] else DENIED


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("who", PEOPLE)
def test_everybody_and_every_tool(who, call):
    one = ticket()
    server = MCPServer("matrix")
    server.admin_site(
        site,
        models=["desk.*"],
        write={"desk.Ticket": ["create", "update", "delete"]},
        actions=["close"],
        confirm=False,
    )
    client = MCPClient(server, revision=MODERN).as_user(PEOPLE[who]())
    tool = call if call in READING else "change"
    do = {} if call in READING else {"do": call}
    outcome = expected(who, call)
    listed = {each["name"] for each in client.list_tools()}
    assert (tool in listed) is (outcome is not UNKNOWN_TOOL)
    answer = client.tool(tool, model="desk.Ticket", **do, **CALLS[call](one))
    if outcome is UNKNOWN_TOOL:
        answer.assert_error(-32602, f"Unknown tool: {tool}")
    elif outcome is UNKNOWN_MODEL:
        answer.assert_failed("Unknown model 'desk.Ticket'. There are desk.Tag.")
    elif outcome is DENIED:
        words = "there are none" if call == "action" else f"You may not {call} rows of desk.Ticket"
        answer.assert_failed(words)
    else:
        answer.assert_ok()
    if outcome is not DONE:
        (after,) = Ticket.objects.all()
        assert (after.subject, after.status) == (one.subject, one.status)
        assert one.subject not in repr(answer)


@pytest.mark.parametrize("who", PEOPLE)
def test_everybody_is_listed_what_he_sees(who):
    ticket()
    server = MCPServer("matrix")
    server.admin_site(site, models=["desk.*"])
    client = MCPClient(server, revision=MODERN).as_user(PEOPLE[who]())
    answer, sees = client.tool("list_models"), seen_by(who)
    if not sees:
        answer.assert_error(-32602, "Unknown tool: list_models")
        return
    assert {*answer.result["structuredContent"]["models"]} == sees
    for label in ("desk.Ticket", "desk.Customer", "desk.Tag"):
        found = client.tool("find", model=label)
        if label in sees:
            found.assert_ok()
        else:
            found.assert_failed(f"Unknown model {label!r}")
