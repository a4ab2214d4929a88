"""A tool that asks a person, since what costs money is not for a model to decide; and what the API
for the bookkeeping shows of refunds.
"""

from __future__ import annotations

from functools import partial

from django_mcp import Context, QuestionCancelled, QuestionDeclined, ToolError, mcp
from example_project.support import desk
from example_project.support.api import RefundViewSet
from example_project.support.forms import RefundForm
from example_project.support.mcp.lookup import find_ticket
from example_project.support.mcp.queries import TicketId

mcp.viewset(
    RefundViewSet,
    actions=["list"],
    title="List refunds",
    description="List refunds, the last first. `search` looks at customers, subjects and reasons.",
)
mcp.viewset(
    RefundViewSet,
    actions=["retrieve"],
    title="Read a refund",
    description="Read one refund as the books have it, by its id in list_refunds.",
)


# A question is refused where a transaction is open, as on a site that has ATOMIC_REQUESTS.
@mcp.tool(
    title="Refund a ticket",
    read_only=False,
    destructive=True,
    idempotent=False,
    permission="support.add_refund",
    atomic=False,
)
def refund_ticket(ctx: Context, ticket_id: TicketId) -> str:
    """Pay a customer back. Your user is asked for the amount and the reason, and may say no.

    The money leaves at once. Do not ask for the amount yourself: the form does, and knows what
    is left to refund.
    """
    ticket = find_ticket(ctx.user, ticket_id)
    refundable = ticket.refundable
    if refundable <= 0:
        raise ToolError(f"There is nothing left to refund for ticket {ticket_id}.")
    try:
        # The sum is part of the question: an answer that is sent twice does not fit the second
        # time, since by then there is less to refund.
        answer = ctx.elicit(
            f"How much shall {ticket.customer.name} get back? "
            f"{refundable} of {ticket.paid} EUR are left to refund.\n\nTicket {ticket}",
            partial(RefundForm, refundable=refundable),
        )
    except (QuestionDeclined, QuestionCancelled):
        return "Nothing was refunded: your user does not want to. Leave it at that."
    try:
        refund = desk.refund(ticket, by=ctx.user, refundable=refundable, **answer)
    except desk.Outdated:
        raise ToolError(
            f"What is left to refund for ticket {ticket_id} has just changed, so nothing was paid "
            "now. Call again, and your user is asked with the new sum."
        ) from None
    return (
        f"Refunded {refund.amount:.2f} EUR to {ticket.customer.name} "
        f"({refund.get_reason_display()}). {ticket.refundable} EUR are left to refund."
    )
