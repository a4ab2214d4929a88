from __future__ import annotations

import json

import pytest
from mcp_types import CreateMessageResult, ImageContent

from django_mcp.testing import MCPClient
from example_project.support import desk
from example_project.support.models import Comment, Ticket

pytestmark = pytest.mark.django_db


@pytest.fixture
def ticket(customer, agent) -> Ticket:
    ticket = Ticket.objects.create(
        subject="Charged twice for invoice INV-1",
        body="Two payments of 9.00 EUR.",
        customer=customer.customer,
    )
    desk.reply(ticket, author=agent, body="He complains every month.", internal=True)
    desk.reply(ticket, author=agent, body="Which bank is it?")
    desk.reply(ticket, author=ticket.customer, body="The one at the harbour.")
    return ticket


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25", "2026-07-28"])
def test_the_clients_model_reads_the_conversation_and_nothing_is_sent(agent, ticket, revision):
    client = MCPClient(revision=revision, answers=["Dear Ada, sorry."]).as_user(agent)
    answer = client.tool("draft_reply", ticket_id=ticket.pk, tone="apologetic").assert_ok()
    assert json.loads(answer.text) == {
        "ticket_id": ticket.pk,
        "draft": "Dear Ada, sorry.",
        "written_by": "scripted",
        "sent": False,
    }
    (asked,) = client.asked
    name = ticket.customer.name
    said = [
        "Charged twice", f"{name} wrote:\nTwo payments", "agent wrote:\nWhich bank",
        f"{name} wrote:\nThe one at the harbour.", "article://why-was-i-charged-twice",
    ]  # fmt: skip
    places = [asked.message.index(each) for each in said]
    assert places == sorted(places)
    assert "honest apology" in asked.params["systemPrompt"]
    assert "end with *Harbour support*" in asked.params["systemPrompt"]
    assert Comment.objects.filter(ticket=ticket).count() == 3
    ticket.refresh_from_db()
    assert ticket.status == Ticket.Status.OPEN


def test_notes_do_not_leave_the_desk(agent, ticket):
    client = MCPClient(answers=["-"]).as_user(agent)
    client.tool("draft_reply", ticket_id=ticket.pk).assert_ok()
    assert "complains" not in json.dumps(client.asked[0].params)


def test_clients_without_a_model_are_told_what_to_do(as_agent, ticket):
    answer = as_agent.tool("draft_reply", ticket_id=ticket.pk)
    answer.assert_failed("This client does not lend its model").assert_contains("read_ticket")


def test_what_is_no_text_is_no_draft(agent, ticket):
    image = ImageContent(type="image", data="aGk=", mime_type="image/png")
    drawn = CreateMessageResult(role="assistant", content=image, model="brush")
    client = MCPClient(answers=[drawn]).as_user(agent)
    client.tool("draft_reply", ticket_id=ticket.pk).assert_failed("something else than text")


def test_unknown_ticket(as_agent):
    as_agent.tool("draft_reply", ticket_id=99_999_999).assert_failed("There is no ticket")
