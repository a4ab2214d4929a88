"""Deletions and actions: somebody sees what would be done, and says yes to that alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.auth.models import User

from django_mcp import Context, ModelTools, RegistrationError
from django_mcp.testing import DECLINE, MCPClient

from .desk.models import Comment, Invoice, Tag, Ticket
from .support import (
    MODERN,
    client_for,
    described,
    found,
    nobody,
    serve,
    ticket,
    user_with,
)

pytestmark = pytest.mark.django_db
REVISIONS = ("2025-11-25", MODERN)


def close_tickets(ctx: Context, queryset: Any, reason: str = "") -> str:
    """Close tickets for good."""
    closed = queryset.update(status="closed", remark=reason)
    return f"{closed} closed by {ctx.user}"


@admin.action(permissions=["close"], description="Open them again.")
def reopen(ctx: Context, queryset: Any) -> None:
    for each in queryset:
        each.status = "open"
        each.save()


class TicketTools(ModelTools):
    fields = ["id", "subject"]
    delete = True
    actions = [close_tickets, reopen, "hide"]

    def has_close_permission(self, user, obj=None):
        return user.has_perm("desk.close_ticket")

    def hide(self, ctx, queryset, *, days: int):
        queryset.update(is_public=False, priority=days)


ALL = ("view_ticket", "change_ticket", "delete_ticket", "delete_comment", "close_ticket")


def client_of(user: Any, answers: Any = None, revision: str = MODERN, of: Any = TicketTools) -> Any:
    return client_for(of, user, revision=revision, answers=answers)


def with_comments(number: int = 1) -> Ticket:
    one = ticket(number)
    author = User.objects.first()
    assert author is not None
    for _ in range(2):
        Comment.objects.create(ticket=one, author=author, text="")
    one.tags.add(Tag.objects.create(name="red"))
    return one


def test_deletions_and_actions_are_said_to_be_destructive():
    tools = {each["name"]: each for each in client_of(user_with(*ALL)).list_tools()}
    for name in ("delete_tickets", "close_tickets", "reopen", "hide"):
        assert tools[name]["annotations"] == {"readOnlyHint": False, "destructiveHint": True}
    assert tools["close_tickets"]["description"] == "Close tickets for good."
    assert tools["reopen"]["description"] == "Open them again."
    assert tools["hide"]["inputSchema"]["required"] == ["ids", "days"]
    assert tools["delete_tickets"]["inputSchema"]["properties"] == {
        "ids": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 50},
        "confirm": {"type": "string"},
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_person_sees_what_goes_and_says_yes(revision):
    user = user_with(*ALL)
    client = client_of(user, [None], revision)
    one, other = with_comments(), ticket(2)
    assert found(client, "delete_tickets", ids=[one.pk]) == {"deleted": 1}
    (asked,) = client.asked
    assert asked.message == (
        "Delete 1 ticket: T-1 Subject 1? With that would go 2 comments, 1 ticket-tag relationship."
    )
    assert list(Ticket.objects.all()) == [other]
    assert not Comment.objects.exists()
    (entry,) = LogEntry.objects.all()
    assert (entry.user, entry.action_flag, entry.object_repr) == (user, DELETION, "T-1 Subject 1")
    assert entry.object_id == str(one.pk)
    assert entry.change_message == "Deleted. (via MCP, client django_mcp.testing)"


@pytest.mark.parametrize("revision", REVISIONS)
def test_who_says_no_keeps_all(revision):
    client = client_of(user_with(*ALL), [DECLINE, DECLINE], revision)
    one = with_comments()
    client.tool("delete_tickets", ids=[one.pk]).assert_failed()
    client.tool("close_tickets", ids=[one.pk]).assert_failed()
    assert Ticket.objects.get().status == "open"
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_client_that_cannot_ask_is_shown_what_goes_and_given_a_word(revision):
    client = client_of(user_with(*ALL), revision=revision)
    one, two = with_comments(), ticket(2)
    answer = client.tool("delete_tickets", ids=[one.pk, two.pk])
    answer.assert_failed("Delete 2 tickets: T-1 Subject 1, T-2 Subject 2? With that would go")
    answer.assert_contains("Nothing has been done yet.")
    assert Ticket.objects.count() == 2
    word = word_in(answer)
    for arguments in (
        {"ids": [one.pk], "confirm": word},
        {"ids": [one.pk, two.pk], "confirm": "yes"},
        {"ids": [one.pk, two.pk], "confirm": "ä"},
    ):
        client.tool("delete_tickets", **arguments).assert_failed("Nothing has been done yet.")
    other = client_of(user_with(*ALL), revision=revision)
    other.tool("delete_tickets", ids=[one.pk, two.pk], confirm=word).assert_failed()
    Comment.objects.create(ticket=two, author=User.objects.all()[0], text="just now")
    changed = client.tool("delete_tickets", ids=[one.pk, two.pk], confirm=word)
    changed.assert_failed("3 comments")
    word = word_in(changed)
    assert found(client, "delete_tickets", ids=[one.pk, two.pk], confirm=word) == {"deleted": 2}
    assert not Ticket.objects.exists()


def word_in(answer: Any) -> str:
    match = re.search(r'confirm="(\w+)"', answer.text)
    assert match is not None, answer.text
    return match[1]


def test_what_has_changed_meanwhile_is_not_deleted():
    client = client_of(user_with(*ALL), answer_while_somebody_comments)
    one = with_comments()
    answer = client.tool("delete_tickets", ids=[one.pk])
    # At this revision the tool runs again, and asks anew: for other comments than were shown.
    assert ["3 comments" in asked.message for asked in client.asked] == [False, True]
    answer.assert_ok()


def answer_while_somebody_comments(asked: Any) -> None:
    if Comment.objects.count() == 2:
        Comment.objects.create(
            ticket=Ticket.objects.get(), author=User.objects.all()[0], text="wait"
        )


def test_what_has_changed_while_a_person_thinks_is_not_deleted():
    client = client_of(user_with(*ALL), answer_while_somebody_comments, "2025-11-25")
    one = with_comments()
    client.tool("delete_tickets", ids=[one.pk]).assert_failed("has changed meanwhile")
    assert Ticket.objects.count() == 1


def test_what_goes_with_a_row_needs_its_own_permission():
    user = user_with("view_ticket", "delete_ticket")
    client = client_of(user, [None])
    one = with_comments()
    answer = client.tool("delete_tickets", ids=[one.pk])
    answer.assert_failed("This would delete comments, too, and you may not.")
    assert Ticket.objects.count() == 1
    Comment.objects.all().delete()
    assert found(client, "delete_tickets", ids=[one.pk]) == {"deleted": 1}


def test_what_is_protected_stays():
    client = client_of(user_with(*ALL), [None])
    one = ticket()
    Invoice.objects.create(ticket=one, amount=1)
    answer = client.tool("delete_tickets", ids=[one.pk])
    answer.assert_failed("This cannot be deleted: 1 invoice would be left without it.")
    assert Ticket.objects.count() == 1


def test_all_or_none_are_deleted():
    class Mine(TicketTools):
        confirm = False

        def get_queryset(self, ctx):
            return super().get_queryset(ctx).filter(watchers=ctx.user)

        def delete_instance(self, ctx, instance):
            if instance.number == "T-2":
                raise RuntimeError("planted")
            super().delete_instance(ctx, instance)

    user = user_with(*ALL)
    client = client_of(user, of=Mine)
    one, two, other = ticket(1), ticket(2), ticket(3)
    for each in (one, two):
        each.watchers.add(user)
    answer = client.tool("delete_tickets", ids=[one.pk, other.pk])
    answer.assert_failed(f"No Ticket matches the given query: {other.pk}")
    client.tool("delete_tickets", ids=[one.pk, two.pk]).assert_failed("The tool failed.")
    assert Ticket.objects.count() == 3
    assert not LogEntry.objects.exists()
    assert found(client, "delete_tickets", ids=[one.pk, one.pk]) == {"deleted": 1}


@pytest.mark.parametrize("revision", REVISIONS)
def test_actions_are_done_with_all_rows_or_none(revision):
    user = user_with(*ALL)
    client = client_of(user, [None], revision)
    one, two = ticket(1), ticket(2)
    answer = client.tool("close_tickets", ids=[one.pk, two.pk], reason="spam")
    assert answer.assert_ok().text == f"2 closed by {user}"
    assert client.asked[0].message == "Close tickets? T-1 Subject 1, T-2 Subject 2"
    assert set(Ticket.objects.values_list("status", "remark")) == {("closed", "spam")}
    messages = set(LogEntry.objects.values_list("change_message", flat=True))
    assert messages == {"close_tickets. (via MCP, client django_mcp.testing)"}
    unable = client_of(user, revision=revision)
    answer = unable.tool("hide", ids=[one.pk], days=2).assert_failed("Hide? T-1 Subject 1")
    word = word_in(answer)
    unable.tool("hide", ids=[one.pk], days=1, confirm=word).assert_failed("Hide?")
    unable.tool("hide", ids=[one.pk], days=2, confirm=word).assert_contains("Done with 1.")
    assert Ticket.objects.get(pk=one.pk).is_public is False
    unable.tool("close_tickets", ids=[one.pk, 10**6]).assert_failed("matches the given query: 10")


def close_and_fail(ctx: Context, queryset: Any) -> None:
    queryset.update(status="closed")
    raise RuntimeError("planted")


def test_an_action_that_fails_changes_nothing():
    class Failing(TicketTools):
        actions = [close_and_fail]
        confirm = False

    one = ticket()
    client = client_of(user_with(*ALL), of=Failing)
    client.tool("close_and_fail", ids=[one.pk]).assert_failed("The tool failed.")
    assert Ticket.objects.get().status == "open"


def test_an_answer_counts_for_one_call():
    client = MCPClient(
        serve(TicketTools), revision=MODERN, capabilities={"elicitation": {}}
    ).as_user(user_with(*ALL))
    one = ticket()
    asked = client.tool("close_tickets", ids=[one.pk]).result
    (key,) = asked["inputRequests"]
    answered = {
        "requestState": asked["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {}}},
    }

    def send() -> Any:
        arguments = {"ids": [one.pk]}
        return client.request("tools/call", name="close_tickets", arguments=arguments, **answered)

    send().assert_ok()
    Ticket.objects.update(status="open")
    send().assert_failed("This answer has been used")
    assert Ticket.objects.get().status == "open"


def test_what_is_confirmed_can_be_chosen():
    class Some(TicketTools):
        confirm = ["delete"]

    client = client_of(user_with(*ALL), of=Some)
    one = ticket()
    client.tool("close_tickets", ids=[one.pk]).assert_ok()
    client.tool("delete_tickets", ids=[one.pk]).assert_failed("Nothing has been done yet.")
    assert "confirm" not in described(client, "close_tickets")["inputSchema"]["properties"]


PEOPLE = {
    "anonymous": (),
    "view_ticket": (),
    "change_ticket": ("close_tickets", "hide"),
    "close_ticket": ("reopen",),
    "delete_ticket": ("delete_tickets",),
}


@pytest.mark.parametrize("who", PEOPLE)
def test_who_may_do_what(who):
    user = nobody() if who == "anonymous" else user_with(who)
    client = client_of(user)
    one, arguments = ticket(), {"hide": {"days": 1}}
    for name in ("close_tickets", "hide", "reopen", "delete_tickets"):
        answer = client.tool(name, ids=[one.pk], **arguments.get(name, {}))
        if name in PEOPLE[who]:
            answer.assert_failed("Nothing has been done yet.")
        else:
            answer.assert_error(-32602, f"Unknown tool: {name}")
    listed = {tool["name"] for tool in client.list_tools()} - {"find_tickets", "get_ticket"}
    assert listed == set(PEOPLE[who])


async def slow(ctx: Context, queryset: Any) -> None: ...


def bare(ctx: Context) -> None: ...


def named(ctx: Context, queryset: Any, ids: int) -> None: ...


def vague(ctx, queryset, reason): ...


@admin.action(permissions=["sell"])
def sell(ctx: Context, queryset: Any) -> None: ...


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (slow, "is asynchronous"),
        (bare, "takes a context and a queryset"),
        (named, "'ids' of 'named' is an argument of the tool already"),
        (vague, "'reason' of 'vague' has no annotation"),
        (sell, "there is no method has_sell_permission"),
    ],
)
def test_actions_that_cannot_be_offered_are_refused(action, said):
    attributes = {"fields": ["id"], "actions": [action]}
    with pytest.raises(RegistrationError, match=said):
        serve(type("Options", (ModelTools,), attributes))
