"""Tools that change something. Each returns the ticket as it is afterwards."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from django_mcp import Context, ToolError, mcp
from example_project.support import desk
from example_project.support.mcp.lookup import NOBODY, find_agent, find_ticket
from example_project.support.mcp.queries import TicketId
from example_project.support.mcp.schemas import PlainText, TicketDetail, TicketSummary
from example_project.support.models import Ticket


@mcp.tool(
    title="Reply to a ticket",
    read_only=False,
    destructive=False,
    idempotent=False,
    permission="support.add_comment",
)
def reply_to_ticket(
    ctx: Context,
    ticket_id: TicketId,
    body: Annotated[PlainText, Field(min_length=1, max_length=10_000)],
    internal: bool = False,
) -> TicketDetail:
    """Add a message to a ticket, in the name of the caller.

    A public reply reaches the customer at once and cannot be taken back: show it to your user
    before you send it. An agent's reply makes the ticket pending, a customer's opens it again.
    Closed tickets take no replies, only internal notes. Calling it twice writes it twice.

    Args:
        body: The message, as plain text.
        internal: True for a note among agents, which the customer does not see and which leaves
            the status alone. Only agents may write one.
    """
    if internal and not ctx.user.has_perm("support.add_internal_comment"):
        raise ToolError("Only agents write internal notes. Leave `internal` out to reply.")
    ticket = find_ticket(ctx.user, ticket_id)
    try:
        desk.reply(ticket, author=desk.speaker(ctx.user), body=body, internal=internal)
    except desk.ClosedTicket:
        raise ToolError(
            f"Ticket {ticket_id} is closed and takes no replies. An agent can set its status to "
            "open first."
        ) from None
    return TicketDetail.model_validate(find_ticket(ctx.user, ticket_id))


@mcp.tool(
    title="Assign a ticket",
    read_only=False,
    destructive=False,
    idempotent=True,
    permission="support.assign_ticket",
)
def assign_ticket(
    ctx: Context,
    ticket_id: TicketId,
    assignee: Annotated[PlainText, Field(min_length=1, max_length=150)],
) -> TicketSummary:
    """Give a ticket to an agent, or back to the queue. The customer is not told.

    Args:
        assignee: Username of an agent, "me" for the caller, or "nobody" to put it back.
    """
    ticket = find_ticket(ctx.user, ticket_id)
    agent = None if assignee == NOBODY else find_agent(ctx.user, assignee)
    desk.assign(ticket, assignee=agent)
    return TicketSummary.model_validate(ticket)


@mcp.tool(
    title="Set a ticket's status",
    read_only=False,
    destructive=False,
    idempotent=True,
    permission="support.change_ticket",
)
def set_ticket_status(ctx: Context, ticket_id: TicketId, status: Ticket.Status) -> TicketSummary:
    """Move a ticket to another status, from whichever it has.

    "open": the desk must act. "pending": we wait for the customer. "solved": done, the customer
    may answer and open it again. "closed": done for good, replies are refused. A public reply
    sets "pending" by itself, so there is no need to do it here as well.
    """
    ticket = find_ticket(ctx.user, ticket_id)
    desk.set_status(ticket, status=status)
    return TicketSummary.model_validate(ticket)
