"""A tool that borrows the client's model: the site has none of its own, and needs none."""

from __future__ import annotations

from mcp_types import TextContent

from django_mcp import Context, ToolError, mcp
from example_project.support.mcp.lookup import find_ticket
from example_project.support.mcp.prompts import TONES, Tone, reading_list
from example_project.support.mcp.queries import TicketId
from example_project.support.mcp.resources import guide
from example_project.support.mcp.schemas import Draft
from example_project.support.models import Ticket

NO_MODEL = (
    "This client does not lend its model, so there is no draft. Read the ticket with read_ticket "
    "and desk://guide, write the reply yourself, and show it to your user."
)


@mcp.tool(title="Draft a reply", read_only=True, permission="support.change_ticket")
def draft_reply(ctx: Context, ticket_id: TicketId, tone: Tone = "friendly") -> Draft:
    """Have your own model draft a reply to a ticket, by the rules of the house. Sends nothing.

    Show the draft to your user. Only when they agree, send it with reply_to_ticket.

    Args:
        tone: How it should sound.
    """
    ticket = find_ticket(ctx.user, ticket_id)
    answer = ctx.sample(
        f"{_conversation(ticket)}\n\n{reading_list(ticket)}\n\nWrite the desk's next reply.",
        system_prompt=f"You write for a support desk; return the reply alone. {TONES[tone]}\n\n"
        f"{guide()}",
        max_tokens=1000,
        fallback=None,
    )
    if answer is None:
        raise ToolError(NO_MODEL)
    if not isinstance(answer.content, TextContent):
        raise ToolError("The client's model has answered with something else than text.")
    return Draft(ticket_id=ticket.pk, draft=answer.content.text, written_by=answer.model)


def _conversation(ticket: Ticket) -> str:
    # Without the notes among agents: what a model has not read it cannot tell the customer.
    comments = ticket.comments.filter(internal=False).with_authors()
    said = [(ticket.customer.name, ticket.body), *((each.author, each.body) for each in comments)]
    return "\n\n".join([ticket.subject, *(f"{author} wrote:\n{body}" for author, body in said)])
