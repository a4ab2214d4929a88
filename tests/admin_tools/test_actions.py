"""Actions: confirmed, applied by the admin, with what it says; never half of one that asks more."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import ERROR

from tests.model_tools.desk.models import Ticket
from tests.model_tools.support import described, ticket

from .support import ACTIONS, STAFF, OwnAdmin, PlainAdmin, boss, client_for, staff

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows():
    return [ticket(1), ticket(2)]


def act(rows, action, user=None, **options):
    options.setdefault("confirm", False)
    client = client_for(PlainAdmin, user or boss(), actions=ACTIONS, **options)
    return client.tool(action, ids=[row.pk for row in rows])


def statuses():
    return set(Ticket.objects.values_list("status", flat=True))


def test_what_an_action_says_is_its_result_and_is_logged(rows):
    answer = act(rows, "close")
    assert answer.assert_ok().text == "2 closed"
    assert statuses() == {"closed"}
    assert LogEntry.objects.count() == 2
    assert LogEntry.objects.latest("pk").change_message == (
        "close. (via MCP, client django_mcp.testing)"
    )


def test_messages_are_log_messages_of_the_client(rows):
    client = client_for(
        PlainAdmin, boss(), actions=ACTIONS, confirm=False, revision="2025-11-25", log_level="debug"
    )
    answers = [client.tool(name, ids=[rows[0].pk]) for name in ("warn", "close")]
    assert [answer.text for answer in answers] == ["warning: Not all", "1 closed"]
    logged = [
        (each["params"]["level"], each["params"]["data"])
        for answer in answers
        for each in answer.said
        if each["method"] == "notifications/message"
    ]
    assert logged == [("warning", "Not all"), ("info", "1 closed")]


@pytest.mark.parametrize("action", ["page", "html"])
def test_an_action_that_asks_by_a_page_is_refused_and_undone(rows, action):
    act(rows, action).assert_failed("on a page that only a browser shows. Nothing has been done.")
    assert statuses() == {"open"}
    assert not LogEntry.objects.exists()


def test_other_answers(rows):
    act(rows, "elsewhere").assert_ok().assert_contains("It goes on at /somewhere/else/")
    assert act(rows, "here").assert_ok().text == "Done with 2."
    act(rows, "export").assert_ok().assert_contains("T-1\nT-2")
    assert statuses() == {"closed"}


def test_actions_are_confirmed_first(rows):
    client = client_for(PlainAdmin, boss(), actions=["close"], answers=[None])
    client.tool("close", ids=[rows[0].pk]).assert_ok()
    assert client.asked[0].message == "Close tickets? T-1 Subject 1"
    tool = described(client, "close")
    assert tool["annotations"] == {"readOnlyHint": False, "destructiveHint": True}
    assert tool["description"] == "Close tickets."
    act(rows, "close", confirm=True).assert_failed("Nothing has been done yet")
    act(rows, "close", confirm=["delete"]).assert_ok()


def test_an_action_needs_one_of_its_permissions(rows):
    viewer = staff("view_ticket")
    client = client_for(PlainAdmin, viewer, actions=ACTIONS, confirm=False)
    tools = [each["name"] for each in client.list_tools()]
    assert "by_permission" not in tools
    assert "close" in tools, "an action that names none is there for all who see the list"
    client.tool("by_permission", ids=[rows[0].pk]).assert_error(-32602, "Unknown tool")
    one = staff("view_ticket", "delete_ticket", username="one")
    act(rows, "by_permission", one).assert_ok()
    assert set(Ticket.objects.values_list("remark", flat=True)) == {"marked"}
    assert (
        described(client_for(PlainAdmin, one, actions=["by_permission"]), "by_permission")[
            "description"
        ]
        == "Mark tickets"
    )


def test_an_action_needs_its_permission_for_each_row(rows):
    class Owned(PlainAdmin):
        def has_change_permission(self, request, obj=None):
            own = obj is None or obj.assignee_id == request.user.pk
            return own and super().has_change_permission(request, obj)

    sam = staff("view_ticket", "change_ticket")
    Ticket.objects.filter(pk=rows[0].pk).update(assignee=sam)
    client = client_for(Owned, sam, actions=["by_permission"], confirm=False)
    client.tool("by_permission", ids=[rows[0].pk]).assert_ok()
    ids = [row.pk for row in rows]
    client.tool("by_permission", ids=ids).assert_failed("You may not do this with T-2")
    assert Ticket.objects.filter(remark="marked").count() == 1


def test_rows_that_are_hidden_are_not_acted_upon():
    class Acting(OwnAdmin):
        actions = ["close"]

        def close(self, request, queryset):
            self.message_user(request, str(queryset.update(status="closed")), ERROR)

    sam = staff(*STAFF)
    mine, other, hidden = ticket(1, assignee=sam), ticket(2), ticket(3, remark="hidden")
    client = client_for(Acting, sam, actions=["close"], confirm=False)
    for row in (other, hidden):
        client.tool("close", ids=[mine.pk, row.pk]).assert_failed("No Ticket matches")
    assert statuses() == {"open"}
    client.tool("close", ids=[mine.pk]).assert_contains("error: 1")
