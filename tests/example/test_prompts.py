from __future__ import annotations

import json

import pytest

from django_mcp.testing import Answer
from example_project.support.models import Ticket

pytestmark = pytest.mark.django_db

INVALID_PARAMS = -32602


@pytest.fixture
def ticket(customer) -> Ticket:
    return Ticket.objects.create(
        subject="Charged twice for invoice INV-1",
        body="Two payments of 9.00 EUR.",
        customer=customer.customer,
        priority=Ticket.Priority.HIGH,
    )


def values(answer: Answer) -> list[str]:
    completed: list[str] = answer.result["completion"]["values"]
    return completed


def test_prompts_are_for_agents(as_agent, as_customer, ticket):
    listed = {prompt["name"]: prompt for prompt in as_agent.list_prompts()}
    assert set(listed) == {"triage", "draft_reply"}
    arguments = {each["name"]: each for each in listed["draft_reply"]["arguments"]}
    assert arguments["ticket_id"]["required"] is True
    assert not arguments["tone"].get("required")
    assert arguments["tone"]["description"] == "How it should sound."
    assert as_customer.list_prompts() == []
    as_customer.prompt("triage", ticket_id=str(ticket.pk)).assert_error(INVALID_PARAMS)


def test_triage_carries_the_ticket(as_agent, ticket):
    attached, task = as_agent.prompt("triage", ticket_id=str(ticket.pk)).result["messages"]
    where, _, data = attached["content"]["text"].partition("\n\n")
    assert where == f"This is ticket://{ticket.pk}:"
    assert json.loads(data)["subject"] == "Charged twice for invoice INV-1"
    assert "it has the priority high now" in task["content"]["text"]
    assert "admin, agent, agent2, agent3" in task["content"]["text"]


@pytest.mark.parametrize("prompt", ["triage", "draft_reply"])
def test_prompts_are_text_which_every_client_takes(as_agent, ticket, prompt):
    messages = as_agent.prompt(prompt, ticket_id=str(ticket.pk)).result["messages"]
    assert {message["content"]["type"] for message in messages} == {"text"}


@pytest.mark.parametrize(
    ("tone", "sentence"),
    [({}, "warmly and plainly"), ({"tone": "brief"}, "no more than four sentences")],
)
def test_draft_reply(as_agent, ticket, tone, sentence):
    answer = as_agent.prompt("draft_reply", ticket_id=str(ticket.pk), **tone)
    answer.assert_contains(sentence).assert_contains("article://why-was-i-charged-twice")


def test_unknown_ticket(as_agent):
    answer = as_agent.prompt("triage", ticket_id="99999999")
    answer.assert_error(INVALID_PARAMS, "There is no ticket 99999999 that you may see.")


def test_a_draft_says_that_there_is_nothing_to_read(as_agent, customer):
    ticket = Ticket.objects.create(subject="Xyzzy", body="Plugh.", customer=customer.customer)
    answer = as_agent.prompt("draft_reply", ticket_id=str(ticket.pk))
    answer.assert_contains("The knowledge base seems to have nothing on it.")


def test_unknown_tone(as_agent, ticket):
    answer = as_agent.prompt("draft_reply", ticket_id=str(ticket.pk), tone="rude")
    answer.assert_error(INVALID_PARAMS, "tone")


@pytest.mark.parametrize("reference", ["triage", "draft_reply"])
def test_ticket_ids_are_completed(as_agent, ticket, reference):
    suggested = values(as_agent.complete(reference, "ticket_id", str(ticket.pk)))
    assert suggested == [str(ticket.pk)]


def test_open_tickets_by_the_beginning_of_their_number(as_agent):
    newest = Ticket.objects.filter(status="open").order_by("-pk")
    keys = [str(pk) for pk in newest.values_list("pk", flat=True)]
    assert values(as_agent.complete("triage", "ticket_id")) == keys[:100]
    beginning = keys[0][:2]
    expected = [key for key in keys if key.startswith(beginning)]
    assert values(as_agent.complete("triage", "ticket_id", beginning)) == expected
    assert values(as_agent.complete("triage", "ticket_id", "x")) == []


def test_customers_are_offered_their_own_tickets(as_customer, customer, ticket):
    opened = Ticket.objects.filter(status="open", customer__user=customer)
    suggested = values(as_customer.complete("ticket://{id}", "id"))
    assert suggested == [str(t.pk) for t in opened.order_by("-pk")]
    assert str(ticket.pk) in suggested


def test_completion_of_a_hidden_prompt_is_refused(as_customer):
    as_customer.complete("triage", "ticket_id").assert_error(INVALID_PARAMS)


def test_slugs_that_begin_so_come_first(as_customer):
    suggested = values(as_customer.complete("article://{slug}", "slug", "re"))
    beginning = [slug for slug in suggested if slug.startswith("re")]
    assert beginning == suggested[: len(beginning)]
    assert suggested[0] == "receipt-printer-blank"
    assert "correct-an-invoice" in suggested


def test_tones_come_from_the_annotation(as_agent):
    tones = ["friendly", "formal", "apologetic", "brief"]
    assert values(as_agent.complete("draft_reply", "tone")) == tones
    assert values(as_agent.complete("draft_reply", "tone", "f")) == ["friendly", "formal"]
