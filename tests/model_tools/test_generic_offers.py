"""What must not happen by five tools for many models, and how they are registered."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session

from django_mcp import MCPServer, RegistrationError
from django_mcp.contrib.tokens.models import Token
from django_mcp.testing import MCPClient

from .desk.models import Customer, Ticket
from .generic_desk import (
    TICKETS,
    TicketAdmin,
    client_for,
    names,
    site,
    staff,
    superuser,
)
from .support import MODERN, found, nobody, ticket

pytestmark = pytest.mark.django_db


def test_no_hash_of_a_password_is_shown_found_or_set():
    root = User.objects.create_superuser("root", password="open sesame")
    client = client_for(root, {"write": ["update", "delete"]}, ["auth.User"])
    described = found(client, "describe_model", model="auth.User")
    assert "password" not in str(described)
    row = found(client, "get", model="auth.User", id=root.pk)
    listed = found(client, "find", model="auth.User")
    for each in (row, listed):
        assert root.password not in str(each)
    assert "password" not in row
    lookups = ("password", "password__startswith", "password__regex", "user_ptr__password")
    for name in lookups:
        client.tool("find", model="auth.User", filters={name: "md5"}).assert_failed(
            "Unknown filter"
        )
    client.tool("find", model="auth.User", ordering="password").assert_failed("ordering: Input")
    assert found(client, "find", model="auth.User", search=root.password[:6])["items"] == []
    change = {"model": "auth.User", "do": "update", "ids": [root.pk], "values": {"password": "x"}}
    client.tool("change", **change).assert_failed("values: 'password' is unknown")
    root.refresh_from_db()
    assert root.check_password("open sesame")


class WithToken(forms.ModelForm):
    api_token = forms.CharField()


def test_a_form_that_wants_a_secret_is_refused_with_what_to_do_instead():
    other = admin.AdminSite("other")
    other.register(Customer, fields=["name", "api_token"], form=WithToken)
    other.register(Ticket, TicketAdmin)
    create = {"models": ["desk.*"], "write": ["create"]}
    message = "looks as if it were a secret, and must be filled in.*exclude=\\['desk.Customer'\\]"
    with pytest.raises(RegistrationError, match=message):
        MCPServer("desk").admin_site(other, **create)
    MCPServer("desk").admin_site(other, **create, exclude=["desk.Customer"])
    server = MCPServer("desk")
    server.admin_site(other, models=["desk.*"], write={"desk.Ticket": ["create"]})
    assert "change" in {tool.key for tool in server.tools}


def test_rows_that_the_admin_does_not_show_to_somebody_are_not_there():
    class OwnTickets(TicketAdmin):
        def get_queryset(self, request):
            return super().get_queryset(request).filter(assignee=request.user)

    own = admin.AdminSite("own")
    own.register(Ticket, OwnTickets)
    anna = staff("view_ticket", "change_ticket", "delete_ticket", username="anna")
    mine, other = ticket(1, assignee=anna), ticket(2)
    server = MCPServer("own")
    server.admin_site(own, models=["*"], write=["update", "delete"], actions=["close"])
    client = MCPClient(server, revision=MODERN).as_user(anna)
    rows = found(client, "find", model="desk.Ticket", count=True)
    assert ([row["id"] for row in rows["items"]], rows["count"]) == ([mine.pk], 1)
    missing = "No Ticket matches the given query"
    client.tool("get", model="desk.Ticket", id=other.pk).assert_failed(missing)
    for each in (
        {"do": "update", "values": {"subject": "x"}},
        {"do": "delete"},
        {"do": "action", "action": "close"},
    ):
        call = {"model": "desk.Ticket", "ids": [other.pk], **each}
        client.tool("change", **call).assert_failed(missing)
        both = {**call, "ids": [mine.pk, other.pk]}
        if each["do"] != "update":
            client.tool("change", **both).assert_failed("matches the given query")
    other.refresh_from_db()
    assert (other.subject, other.status) == ("Subject 2", "open")


def test_what_is_read_only_for_somebody_is_not_written_by_him():
    class Guarded(TicketAdmin):
        def get_readonly_fields(self, request, obj=None):
            return [] if request.user.is_superuser else ["price"]

    guarded = admin.AdminSite("guarded")
    guarded.register(Ticket, Guarded)
    server = MCPServer("guarded")
    server.admin_site(guarded, models=["desk.Ticket"], write=["update"])
    one = ticket(price=3)
    change = {"model": "desk.Ticket", "do": "update", "ids": [one.pk], "values": {"price": "1"}}
    client = MCPClient(server, revision=MODERN).as_user(staff("change_ticket"))
    client.tool("change", **change).assert_failed("price: You may not set this.")
    one.refresh_from_db()
    assert one.price == 3
    MCPClient(server, revision=MODERN).as_user(superuser()).tool("change", **change).assert_ok()


# How they are registered


def test_tools_have_a_prefix_scopes_and_other_options():
    server = MCPServer("desk")
    server.admin_site(site, models=["desk.*"])
    server.admin_site(
        site,
        models=["auth.*"],
        prefix="people_",
        write=["update"],
        scopes=["read"],
        write_scopes=["write"],
        toolset="people",
    )
    tools = {tool.key: tool for tool in server.tools}
    assert [*tools] == [
        *("describe_model", "find", "get", "list_models"),
        *("people_change", "people_describe_model", "people_find", "people_get"),
        "people_list_models",
    ]
    assert tools["people_find"].scopes == ("read",)
    assert tools["people_change"].scopes == ("read", "write")
    assert tools["people_get"].toolsets == {"people"}
    assert "people_describe_model" in tools["people_change"].description["description"]
    hints = [tools[name].description["annotations"] for name in ("find", "people_change")]
    assert hints == [{"readOnlyHint": True}, {"destructiveHint": True}]


def test_only_what_may_be_done_is_an_argument():
    root = superuser()

    def arguments(**options: Any) -> set[str]:
        client = client_for(root, options)
        (tool,) = (each for each in client.list_tools() if each["name"] == "change")
        return {
            *tool["inputSchema"]["properties"],
            *tool["inputSchema"]["properties"]["do"]["enum"],
        }

    assert arguments(write=["create", "update"]) == {
        *("model", "do", "create", "update", "ids", "values", "clear", "row_version")
    }
    assert arguments(write=["delete"], actions=["close"]) == {
        *("model", "do", "delete", "action", "ids", "confirm")
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": ["shop.*"]}, "models= has 'shop.*', which is no model here"),
        ({"models": ["desk.Tag"]}, "models= has 'desk.Tag', which is no model here"),
        ({"models": ["desk.*"], "exclude": ["desk.Tag"]}, "exclude= has 'desk.Tag'"),
        (
            {"models": ["desk.*"], "write": ["destroy"]},
            "write has 'destroy'. It takes some of crea",
        ),
        ({"models": ["desk.*"], "write": "update"}, "write= takes several, as in ['update']"),
        (
            {"models": ["desk.*"], "write": {"auth.*": ["update"]}},
            "write= has 'auth.*', which is no",
        ),
        (
            {"models": ["desk.*"], "actions": ["close", "open"]},
            "actions= has 'open', which none of",
        ),
        ({"models": ["desk.*"], "actions": {"desk.Ticket": ["open"]}}, "it has no action 'open'"),
    ],
)
def test_mistakes_are_told_when_the_site_starts(options, message):
    with pytest.raises(RegistrationError, match=re.escape(message)):
        MCPServer("desk").admin_site(site, **options)


def test_an_admin_site_is_needed():
    with pytest.raises(RegistrationError, match="takes an admin site, as in"):
        MCPServer("desk").admin_site(TicketAdmin, models=["*"])


def test_sessions_and_tokens_are_not_among_all_models():
    every = admin.AdminSite("every")
    for model in (Ticket, Session, Token):
        every.register(model)
    server = MCPServer("every")
    server.admin_site(every, models=["*"])
    client = MCPClient(server, revision=MODERN).as_user(superuser())
    assert found(client, "list_models") == {"models": {"desk.Ticket": "tickets"}}
    with pytest.raises(RegistrationError, match="looks as if it were a secret"):
        MCPServer("named").admin_site(every, models=["sessions.Session"])


@pytest.mark.parametrize("permission", ["desk.close_ticket", lambda user: user.username == "in"])
def test_callers_may_need_a_permission_beside_those_of_the_admin(permission):
    options = {**TICKETS, "permission": permission}
    let_in = client_for(staff("change_ticket", "close_ticket", username="in"), options)
    assert names(let_in) == ["change", "describe_model", "find", "get", "list_models"]
    for user in (staff("change_ticket"), staff("close_ticket")):
        client = client_for(user, options)
        assert names(client) == []
        for tool in ("find", "change"):
            client.tool(tool, model="desk.Ticket").assert_error(-32602, f"Unknown tool: {tool}")


def test_a_permission_is_named_with_its_app():
    with pytest.raises(RegistrationError, match="permission= takes a Django permission"):
        client_for(nobody(), {"permission": "close_ticket"})


def test_an_admin_that_wants_a_whole_request_hides_its_own_actions_alone(caplog):
    class Picky(admin.ModelAdmin):
        fields = ["name"]
        actions = ["close"]

        def get_actions(self, request):
            if not hasattr(request, "session"):
                raise AttributeError("session")
            return super().get_actions(request)

        def close(self, request, queryset):
            pass

    picky = admin.AdminSite("picky")
    picky.register(Customer, Picky)
    picky.register(Ticket, TicketAdmin)
    options = {"models": ["desk.*"], "actions": {"desk.*": ["close"]}}
    server = MCPServer("picky")
    server.admin_site(picky, **options)
    one = ticket()
    seeing = staff("change_ticket", "change_customer")
    client = MCPClient(server, revision=MODERN).as_user(seeing)
    act = {"model": "desk.Ticket", "do": "action", "action": "close", "ids": [one.pk]}
    client.tool("change", **act).assert_failed("Close the tickets? T-1")
    client = MCPClient(server, revision=MODERN).as_user(staff("change_customer"))
    assert "change" not in names(client)
    assert "cannot be asked without a whole request" in caplog.text
