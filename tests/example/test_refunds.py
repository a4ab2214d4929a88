from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from django_mcp.testing import CANCEL, DECLINE, MCPClient
from example_project.support import desk
from example_project.support.forms import RefundForm
from example_project.support.models import Refund, Ticket

pytestmark = pytest.mark.django_db

UNSUPPORTED = -32021


@pytest.fixture(params=["2025-06-18", "2025-11-25", "2026-07-28"])
def revision(request) -> str:
    return str(request.param)


@pytest.fixture
def ticket(customer) -> Ticket:
    return Ticket.objects.create(
        subject="Broken",
        body="It arrived broken.",
        customer=customer.customer,
        paid=Decimal("40.00"),
    )


def asked(agent: Any, revision: str, *answers: Any) -> MCPClient:
    return MCPClient(revision=revision, answers=answers).as_user(agent)


def refunds(ticket: Ticket) -> list[tuple[Any, ...]]:
    return list(ticket.refunds.values_list("amount", "reason", "user__username"))


def test_pays_back_what_the_form_says(agent, ticket, revision):
    client = asked(agent, revision, {"amount": 12.5, "reason": "damaged"})
    answer = client.tool("refund_ticket", ticket_id=ticket.pk).assert_ok()
    answer.assert_contains("Refunded 12.50 EUR").assert_contains("27.50 EUR are left")
    assert refunds(ticket) == [(Decimal("12.50"), "damaged", "agent")]
    (question,) = client.asked
    assert "40.00 of 40.00 EUR are left to refund" in question.message
    schema = question.params["requestedSchema"]
    assert schema["required"] == ["amount", "reason"]
    assert schema["properties"]["amount"]["type"] == "number"


@pytest.mark.parametrize("amount", [40.01, 0, -5, 1.234])
def test_asks_again_with_the_forms_errors(agent, ticket, revision, amount):
    client = asked(
        agent, revision, {"amount": amount, "reason": "late"}, {"amount": 40, "reason": "late"}
    )
    answer = client.tool("refund_ticket", ticket_id=ticket.pk).assert_ok()
    answer.assert_contains("Refunded 40.00 EUR")
    first, second = client.asked
    assert second.message.startswith(f"{first.message}\n\nAmount: ")
    assert [row[0] for row in refunds(ticket)] == [40]


def test_unknown_reasons_do_not_fit(agent, ticket, revision):
    bad = {"amount": 1, "reason": "because"}
    client = asked(agent, revision, bad, bad, bad)
    client.tool("refund_ticket", ticket_id=ticket.pk).assert_failed("No answer fits. Reason: ")
    assert refunds(ticket) == []


@pytest.mark.parametrize("answer", [DECLINE, CANCEL])
def test_who_does_not_agree_refunds_nothing(agent, ticket, revision, answer):
    client = asked(agent, revision, answer)
    client.tool("refund_ticket", ticket_id=ticket.pk).assert_ok().assert_contains(
        "Nothing was refunded"
    )
    assert len(client.asked) == 1
    assert refunds(ticket) == []


def test_no_more_than_was_paid(agent, ticket, revision):
    first = asked(agent, revision, {"amount": 30, "reason": "late"})
    first.tool("refund_ticket", ticket_id=ticket.pk).assert_ok()
    second = asked(
        agent, revision, {"amount": 30, "reason": "late"}, {"amount": 10, "reason": "late"}
    )
    second.tool("refund_ticket", ticket_id=ticket.pk).assert_contains("0.00 EUR are left")
    assert second.asked[1].message.endswith("Amount: Between 0.01 and 10.00 EUR, please.")
    third = asked(agent, revision)
    answer = third.tool("refund_ticket", ticket_id=ticket.pk)
    answer.assert_failed("There is nothing left to refund")
    assert ticket.refundable == 0


def test_what_was_not_paid_is_not_refunded(agent, customer, revision):
    ticket = Ticket.objects.create(subject="How?", body="-", customer=customer.customer)
    answer = asked(agent, revision).tool("refund_ticket", ticket_id=ticket.pk)
    answer.assert_failed("There is nothing left to refund")


def test_money_that_goes_while_the_person_thinks_is_not_paid_twice(agent, ticket, revision):
    """A colleague refunds the same ticket while the form is open."""

    def meanwhile(question: Any) -> dict[str, Any]:
        if not refunds(ticket):
            desk.refund(
                ticket,
                by=agent,
                amount=Decimal(35),
                reason=Refund.Reason.GOODWILL,
                refundable=Decimal(40),
            )
        return {"amount": 5, "reason": "late"}

    client = MCPClient(revision=revision, answers=meanwhile).as_user(agent)
    answer = client.tool("refund_ticket", ticket_id=ticket.pk)
    if client.revision.modern:
        # The function runs again, and has another question: with what is left by then.
        assert "5.00 of 40.00 EUR" in client.asked[1].message
        answer.assert_ok()
    else:
        answer.assert_failed("has just changed, so nothing was paid now")
        assert [row[0] for row in refunds(ticket)] == [35]


def test_an_answer_that_is_sent_twice_pays_once(agent, ticket):
    """The client has lost the answer to its retry, and retries again."""
    client = MCPClient(revision="2026-07-28", capabilities={"elicitation": {"form": {}}}).as_user(
        agent
    )
    call = {"name": "refund_ticket", "arguments": {"ticket_id": ticket.pk}}
    asked = client.request("tools/call", **call).result
    content = {"amount": 10, "reason": "late"}
    retry = {
        **call,
        "requestState": asked["requestState"],
        "inputResponses": {"elicit-1": {"action": "accept", "content": content}},
    }
    client.request("tools/call", **retry).assert_ok().assert_contains("Refunded 10.00 EUR")
    again = client.request("tools/call", **retry).result
    assert again["resultType"] == "input_required"
    assert "30.00 of 40.00 EUR" in again["inputRequests"]["elicit-1"]["params"]["message"]
    assert [row[0] for row in refunds(ticket)] == [10]


@pytest.mark.parametrize("sum_", [Decimal(39), Decimal(41)])
def test_the_sum_must_still_be_what_was_shown(agent, ticket, sum_):
    with pytest.raises(desk.Outdated):
        desk.refund(ticket, by=agent, amount=Decimal(1), reason=Refund.Reason.LATE, refundable=sum_)
    assert refunds(ticket) == []


def test_a_corrected_sum_is_seen(agent, ticket):
    Ticket.objects.filter(pk=ticket.pk).update(paid=Decimal(5))
    with pytest.raises(desk.Outdated):
        desk.refund(
            ticket,
            by=agent,
            amount=Decimal(10),
            reason=Refund.Reason.LATE,
            refundable=Decimal(40),
        )
    assert refunds(ticket) == []


def test_clients_that_cannot_be_asked_pay_nothing(agent, ticket):
    modern = MCPClient(revision="2026-07-28").as_user(agent)
    modern.tool("refund_ticket", ticket_id=ticket.pk).assert_error(UNSUPPORTED)
    for revision in ("2025-03-26", "2025-11-25"):
        legacy = MCPClient(revision=revision).as_user(agent)
        answer = legacy.tool("refund_ticket", ticket_id=ticket.pk)
        answer.assert_failed("This client cannot be asked")
    assert refunds(ticket) == []


def test_the_form_is_a_form(ticket):
    form = RefundForm({"amount": "5", "reason": "late"}, refundable=ticket.refundable)
    assert form.is_valid()
    form = RefundForm({"amount": "50", "reason": "late"}, refundable=ticket.refundable)
    assert form.errors == {"amount": ["Between 0.01 and 40.00 EUR, please."]}


def test_cents_add_up(agent, ticket):
    for _ in range(3):
        ticket.refunds.create(user=agent, amount="0.10", reason="late")
    assert str(ticket.refundable) == "39.70"


def test_the_database_refuses_negative_refunds(agent, ticket):
    with pytest.raises(IntegrityError), transaction.atomic():
        ticket.refunds.create(user=agent, amount="-1.00", reason="late")


def test_refunds_are_shown_in_the_admin_and_not_changed_there(client, agent, ticket):
    refund = ticket.refunds.create(user=agent, amount=Decimal("12.50"), reason="late")
    client.force_login(agent)
    page = client.get(f"/admin/support/ticket/{ticket.pk}/change/").text
    assert str(refund) == f"12.50 EUR for ticket #{ticket.pk}"
    assert "Came too late" in page
    assert 'name="refunds-0-amount"' not in page
    assert 'name="refunds-TOTAL_FORMS" value="1"' in page  # no empty one to fill in
