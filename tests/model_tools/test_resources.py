"""Rows as resources, with their changes announced."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django import forms

from django_mcp import Context, ModelTools
from django_mcp.testing import MCPClient, announcements

from .desk.models import Device, Ticket
from .support import client_for, found, nobody, serve, ticket, user_with, viewer

pytestmark = pytest.mark.django_db


class TicketForm(forms.ModelForm):
    class Meta:
        model = Ticket
        fields = ["subject"]


def close(ctx: Context, queryset: Any) -> None:
    queryset.update(status="closed")


class TicketTools(ModelTools):
    fields = ["number", "subject"]
    lookup_field = "number"
    update = TicketForm
    delete = True
    actions = [close]
    confirm = False
    resources = True

    def get_queryset(self, ctx):
        return super().get_queryset(ctx).filter(is_public=True)


def test_a_row_is_read_by_its_uri():
    client = client_for(TicketTools, viewer())
    ticket(1)
    ticket(2, is_public=False)
    (template,) = client.list_resource_templates()
    assert (template["uriTemplate"], template["mimeType"]) == (
        "ticket://{number}",
        "application/json",
    )
    read = json.loads(client.read("ticket://T-1").result["contents"][0]["text"])
    assert read == {"number": "T-1", "subject": "Subject 1"}
    for uri in ("ticket://T-2", "ticket://T-3"):
        client.read(uri).assert_error(-32602)
    anonymous = MCPClient(client.server, revision="2026-07-28").as_user(nobody())
    anonymous.read("ticket://T-1").assert_error(-32602)
    assert anonymous.list_resource_templates() == []
    assert anonymous.list_resources() == []


def test_rows_are_listed_page_by_page(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "PAGE_SIZE": 2}
    client = client_for(TicketTools, viewer())
    for number in range(5):
        ticket(number, is_public=number != 3)
    listed = client.list_resources()
    assert [each["uri"] for each in listed] == [f"ticket://T-{number}" for number in (0, 1, 2, 4)]
    assert listed[0]["title"] == "T-0 Subject 0"


def test_rows_that_are_hidden_one_by_one_are_not_listed():
    class Mine(TicketTools):
        def has_view_permission(self, user, obj=None):
            return obj is None or obj.subject == user.username

    client = client_for(Mine, viewer(username="anna"))
    for number, subject in enumerate(["anna", "otto", "anna"]):
        ticket(number, subject=subject)
    assert [each["uri"] for each in client.list_resources()] == ["ticket://T-0", "ticket://T-2"]


def test_changes_are_announced_however_they_are_made():
    user = user_with("view_ticket", "change_ticket", "delete_ticket")
    server = serve(TicketTools)
    client = MCPClient(server, revision="2026-07-28").as_user(user)
    one = ticket()
    with announcements() as announced:
        found(client, "update_ticket", number="T-1", subject="New")
    assert announced == ["ticket://T-1"]
    with announcements() as announced:
        client.tool("close", ids=["T-1"]).assert_ok()
    assert announced == ["ticket://T-1"]
    with announcements() as announced:
        client.tool("delete_tickets", ids=["T-1"]).assert_ok()
    assert announced == ["ticket://T-1", "resources"]
    assert one.pk


def test_any_key_is_part_of_a_uri():
    class Devices(ModelTools):
        fields = ["id", "name"]
        resources = True

    client = client_for(Devices, user_with("view_device"), Device)
    made = sorted((Device.objects.create(name="x") for _ in range(3)), key=lambda each: each.pk)
    uris = {each["uri"] for each in client.list_resources()}
    assert uris == {f"device://{each.pk}" for each in made}
    client.read(f"device://{made[0].pk}").assert_contains('"name":"x"')
    client.read("device://1").assert_error(-32602)
