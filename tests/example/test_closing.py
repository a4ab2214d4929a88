from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from django_mcp import Context
from django_mcp.running.peers import BufferedPeer
from django_mcp.testing import MCPClient
from example_project.support import desk
from example_project.support.mcp.bulk import BATCH
from example_project.support.models import Ticket

pytestmark = pytest.mark.django_db

Status = Ticket.Status


@pytest.fixture
def tickets(customer) -> list[int]:
    """Three batches, the last one not full."""
    rows = [
        Ticket.objects.create(
            subject=f"Number {n}", body="-", customer=customer.customer, status=Status.SOLVED
        )
        for n in range(2 * BATCH + 3)
    ]
    return [ticket.pk for ticket in rows]


def closed(keys: list[int]) -> list[int]:
    tickets = Ticket.objects.filter(pk__in=keys, status=Status.CLOSED)
    return list(tickets.order_by("pk").values_list("pk", flat=True))


def history(keys: list[int]) -> list[int]:
    entries = LogEntry.objects.filter(content_type__model="ticket", object_id__in=map(str, keys))
    return sorted(int(entry.object_id or 0) for entry in entries)


def progress(said: list[dict[str, Any]]) -> list[tuple[float, float]]:
    return [
        (each["params"]["progress"], each["params"]["total"])
        for each in said
        if each["method"] == "notifications/progress"
    ]


def logged(said: list[dict[str, Any]]) -> list[str]:
    return [each["params"]["data"] for each in said if each["method"] == "notifications/message"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_closes_in_batches_and_says_so(agent, tickets, revision):
    client = MCPClient(revision=revision, log_level="info").as_user(agent)
    answer = client.tool("close_tickets", ticket_ids=tickets)
    assert answer.structured == {"closed": 53, "left_out": []}
    assert closed(tickets) == tickets == history(tickets)
    steps = progress(answer.said)
    assert [steps[0], steps[-1]] == [(25, 53), (53, 53)]
    assert [line.partition(" tickets")[0] for line in logged(answer.said)] == [
        "25 of 53", "50 of 53", "53 of 53",
    ]  # fmt: skip


def test_conditions_are_all_to_hold(as_agent, tickets):
    old, young, reopened = tickets[:3]
    Ticket.objects.filter(pk=reopened).update(status=Status.OPEN)
    Ticket.objects.filter(pk__in=[old, reopened]).update(
        updated=timezone.now() - timedelta(days=31)
    )
    arguments = {"ticket_ids": [old, young, reopened], "status": "solved", "idle_days": 30}
    answer = as_agent.tool("close_tickets", **arguments).assert_ok()
    assert json.loads(answer.text) == {"closed": 1, "left_out": [young, reopened]}
    assert closed(tickets) == [old]


def test_closes_all_of_a_status(as_agent, tickets):
    solved = Ticket.objects.filter(status=Status.SOLVED).count()
    answer = as_agent.tool("close_tickets", status="solved").assert_ok()
    assert json.loads(answer.text)["closed"] == solved > len(tickets)
    assert not Ticket.objects.filter(status=Status.SOLVED).exists()


def test_a_number_that_no_database_knows_is_told(as_agent):
    as_agent.tool("close_tickets", ticket_ids=[2**70]).assert_failed("ticket_ids.0: Input should")


def test_wants_to_be_told_which(as_agent, tickets):
    as_agent.tool("close_tickets").assert_failed("Say which")
    assert closed(tickets) == []


def test_what_is_closed_or_not_there_is_left_out(as_agent, tickets):
    as_agent.tool("close_tickets", ticket_ids=tickets[:1]).assert_ok()
    answer = as_agent.tool("close_tickets", ticket_ids=[*tickets[:2], 99_999_999]).assert_ok()
    assert json.loads(answer.text) == {"closed": 1, "left_out": [tickets[0], 99_999_999]}
    assert history(tickets) == tickets[:2]


def test_what_has_changed_in_the_meantime_is_spared(as_agent, tickets, monkeypatch):
    """A customer answers while the first batch is closed; the ticket is in the second."""
    close_all = desk.close_all

    def answered(*args: Any, **kwargs: Any) -> int:
        answer = Ticket.objects.get(pk=tickets[-1])
        desk.reply(answer, author=answer.customer, body="Still broken.")
        monkeypatch.setattr(desk, "close_all", close_all)
        return close_all(*args, **kwargs)

    monkeypatch.setattr(desk, "close_all", answered)
    answer = as_agent.tool("close_tickets", ticket_ids=tickets, status="solved").assert_ok()
    assert json.loads(answer.text)["closed"] == len(tickets) - 1
    assert closed(tickets) == tickets[:-1]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_what_was_closed_before_a_cancellation_stays_closed(agent, tickets, revision, monkeypatch):
    """The client cancels as soon as it has heard of the second batch."""
    cancelled = property(lambda ctx: len(said(ctx._exchange.peer)) == 2)
    monkeypatch.setattr(Context, "cancelled", cancelled)
    client = MCPClient(revision=revision, log_level="info").as_user(agent)
    answer = client.tool("close_tickets", ticket_ids=tickets)
    assert closed(tickets) == tickets[:50] == history(tickets)
    assert logged(answer.said)[-1].startswith("50 of 53 tickets are closed")
    monkeypatch.undo()
    again = client.tool("close_tickets", ticket_ids=tickets)
    assert again.structured == {"closed": 3, "left_out": tickets[:50]}


def said(peer: BufferedPeer) -> list[bytes]:
    return [each for each in peer.notifications if b"notifications/message" in each]
