"""Whoever calls, whichever tool, of whichever admin: what is hidden is refused, too."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User

from django_mcp import MCPServer, RegistrationError
from django_mcp.testing import MCPClient
from tests.model_tools.desk.models import Ticket
from tests.model_tools.support import MODERN, nobody, ticket, user_with

from .support import STAFF, OwnAdmin, PlainAdmin, boss, client_for, site_with, staff

pytestmark = pytest.mark.django_db

UNKNOWN, MISSING, DENIED, DONE = "unknown", "missing", "denied", "done"
USERS = ("view_user", "change_user", "add_user", "delete_user")


class ClosingAdmin(OwnAdmin):
    actions = ["close"]

    @admin.action(permissions=["change"])
    def close(self, request, queryset):
        queryset.update(status="closed")


KINDS: dict[str, Any] = {"plain": PlainAdmin, "own": ClosingAdmin}
CALLS: dict[str, Any] = {
    "find_tickets": lambda row: {},
    "get_ticket": lambda row: {"id": row.pk},
    "create_ticket": lambda row: {"number": "N", "subject": "s", "customer": row.customer_id},
    "update_ticket": lambda row: {"id": row.pk, "subject": "s"},
    "delete_tickets": lambda row: {"ids": [row.pk]},
    "close": lambda row: {"ids": [row.pk]},
}
READING = ("find_tickets", "get_ticket")
PEOPLE: dict[str, Any] = {
    "anonymous": nobody,
    "customer": lambda: user_with(*STAFF, username="customer"),
    "inactive": lambda: staff(*STAFF, username="inactive", is_active=False),
    "bare": lambda: staff(username="bare"),
    "viewer": lambda: staff("view_ticket", username="viewer"),
    "changer": lambda: staff("change_ticket", username="changer"),
    "adder": lambda: staff("add_ticket", username="adder"),
    "other": lambda: staff(*STAFF, username="other"),
    "owner": lambda: staff(*STAFF, username="owner"),
    "boss": boss,
}


def expected(who: str, tool: str, kind: str) -> str:
    """The outcome for a ticket that the owner has been assigned."""
    if who in ("anonymous", "customer", "inactive", "bare"):
        return UNKNOWN
    may = {
        "viewer": READING,
        "changer": (*READING, "update_ticket", "close"),
        "adder": ("create_ticket",),
    }.get(who, tuple(CALLS))
    if kind == "plain" and tool == "close" and who in ("viewer", "changer"):
        return DONE  # an action that names no permission
    if tool not in may:
        return UNKNOWN
    is_own = kind == "plain" or who in ("owner", "boss")
    return DONE if is_own or tool in ("find_tickets", "create_ticket") else MISSING


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("who", PEOPLE)
def test_everybody_and_every_tool(who, tool, kind):
    user = PEOPLE[who]()
    owner = user if who == "owner" else staff(username="the owner")
    one = ticket(assignee=owner)
    before = Ticket.objects.values().get(pk=one.pk)
    options = {"write": ["create", "update", "delete"], "actions": ["close"], "confirm": False}
    client = client_for(KINDS[kind], user, **options)
    outcome = expected(who, tool, kind)
    assert (tool in {each["name"] for each in client.list_tools()}) is (outcome is not UNKNOWN)
    answer = client.tool(tool, **CALLS[tool](one))
    if outcome is UNKNOWN:
        answer.assert_error(-32602, f"Unknown tool: {tool}")
    elif outcome is MISSING:
        answer.assert_failed("No Ticket matches the given query.")
    else:
        answer.assert_ok()
    if outcome is not DONE:
        assert list(Ticket.objects.values()) == [before]
    if tool == "find_tickets" and outcome is DONE:
        shows = kind == "plain" or who in ("owner", "boss")
        assert (one.number in answer.text) is shows


def test_who_may_see_a_row_and_not_change_it():
    class Viewing(PlainAdmin):
        def has_change_permission(self, request, obj=None):
            return obj is None or obj.assignee_id == request.user.pk

        def has_delete_permission(self, request, obj=None):
            return self.has_change_permission(request, obj)

    sam = staff("view_ticket", username="sam")
    one = ticket()
    client = client_for(Viewing, sam, write=["update", "delete"], confirm=False)
    client.tool("get_ticket", id=one.pk).assert_ok()
    for tool in ("update_ticket", "delete_tickets"):
        client.tool(tool, **CALLS[tool](one)).assert_failed("You may not do this with T-1")
    Ticket.objects.update(assignee=sam)
    client.tool("update_ticket", id=one.pk, subject="Mine").assert_ok()


class OpenSite(admin.AdminSite):
    """Lets in who is in a group, whether staff or not."""

    def has_permission(self, request):
        return request.user.groups.filter(name="desk").exists()


def test_the_site_says_who_comes_in():
    site = site_with((Ticket, PlainAdmin), name="desk", kind=OpenSite)
    members = {
        "staff": staff("view_ticket", username="staff"),
        "member": user_with("view_ticket", username="member"),
        "stranger": user_with(username="stranger"),
    }
    group = Group.objects.create(name="desk")
    for name in ("member", "stranger"):
        members[name].groups.add(group)
    ticket()
    shown = {}
    for name, user in members.items():
        client = client_for(PlainAdmin, user, site=site)
        shown[name] = len(client.list_tools())
        answer = client.tool("find_tickets")
        if name == "member":
            answer.assert_ok()
        else:
            answer.assert_error(-32602, "Unknown tool")
    assert shown == {"staff": 0, "member": 2, "stranger": 0}


def test_a_site_that_needs_more_than_a_user_hides_its_tools():
    """Whether a tool is shown is asked of a user alone; a site that wants more has it refused."""

    class Inside(admin.AdminSite):
        def has_permission(self, request):
            return super().has_permission(request) and request.META["HTTP_X_INSIDE"] == "yes"

    site = site_with((Ticket, PlainAdmin), kind=Inside)
    client = client_for(PlainAdmin, boss(), site=site)
    assert client.list_tools() == []
    client.tool("find_tickets").assert_error(-32602)


def test_what_a_request_says_is_asked_again_when_it_is_there():
    class Inside(admin.AdminSite):
        def has_permission(self, request):
            return super().has_permission(request) and not request.path.startswith(refused)

    site = site_with((Ticket, PlainAdmin), kind=Inside)
    client = client_for(PlainAdmin, boss(), site=site)
    refused = "/nowhere"
    client.tool("find_tickets").assert_ok()
    refused = "/"
    client.tool("find_tickets").assert_failed("You may not do this.")


def users(*codenames: str, username: str = "sam", **options: Any) -> MCPClient:
    site = site_with((User, UserAdmin), (Group, GroupAdmin))
    server = MCPServer("users")
    for model in (User, Group):
        server.admin(site.get_model_admin(model), **options)
    who = boss() if username == "boss" else staff(*codenames, username=username)
    return MCPClient(server, revision=MODERN).as_user(who)


@pytest.mark.parametrize("allow_secret", [[], ["usable_password"]])
def test_no_hash_of_a_password_is_ever_shown(allow_secret):
    one = User.objects.create_user("ada", password="correct horse")
    client = users(username="boss", write=["create", "update"], allow_secret=allow_secret)
    answers = [
        client.tool("find_users"),
        client.tool("get_user", id=one.pk),
        client.tool("update_user", id=one.pk, first_name="Ada"),
        client.tool("find_users", search="ada"),
    ]
    for answer in answers:
        text = answer.assert_ok().text
        assert "ada" in text
        assert one.password not in text
        assert "md5$" not in text
        assert '"password"' not in text
    one.refresh_from_db()
    assert (one.first_name, one.check_password("correct horse")) == ("Ada", True)
    for name in ("password", "password__startswith"):
        client.tool("find_users", **{name: "md5"}).assert_failed("unknown argument")
    client.tool("update_user", id=one.pk, password="x").assert_failed("unknown argument")


def test_a_user_without_a_password_can_be_added():
    client = users(username="boss", write=["create"], allow_secret=["usable_password"])
    client.tool("create_user", username="zoe", usable_password="false").assert_ok()
    assert not User.objects.get(username="zoe").has_usable_password()
    client.tool("create_user", username="kim").assert_failed("password")


def test_users_and_groups_have_the_permissions_of_theirs():
    one = User.objects.create_user("ada")
    group = Group.objects.create(name="desk")
    client = users(*USERS, write=["update"])
    assert [each["name"] for each in client.list_tools()] == [
        "find_users",
        "get_user",
        "update_user",
    ]
    client.tool("update_user", id=one.pk, groups=[group.pk], is_active=False).assert_ok()
    one.refresh_from_db()
    assert (one.is_active, list(one.groups.all())) == (False, [group])
    client.tool("find_groups").assert_error(-32602, "Unknown tool")
    client = users("view_group", username="kim")
    assert client.tool("get_group", id=group.pk).assert_ok().result["structuredContent"] == {
        "id": group.pk,
        "name": "desk",
        "permissions": [],
    }


def test_a_permission_beside_those_of_the_admin():
    one = staff("view_ticket", username="one")
    two = staff("view_ticket", "close_ticket", username="two")
    three = user_with("view_ticket", "close_ticket", username="three")
    options = {"permission": "desk.close_ticket", "actions": ["close"]}
    shown = [
        len(client_for(PlainAdmin, user, **options).list_tools()) for user in (one, two, three)
    ]
    assert shown == [0, 3, 0]
    client_for(PlainAdmin, one, **options).tool("find_tickets").assert_error(-32602, "Unknown tool")
    with pytest.raises(RegistrationError, match=r'such as "desk\.close_ticket"'):
        client_for(PlainAdmin, one, permission="close_ticket")
