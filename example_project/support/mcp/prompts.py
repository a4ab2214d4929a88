"""Tasks that a person starts from the client's menu."""

from __future__ import annotations

from typing import Literal

from mcp_types import PromptMessage

from django_mcp import Context, content, mcp
from example_project.support import desk
from example_project.support.mcp.lookup import find_ticket
from example_project.support.mcp.schemas import TicketDetail
from example_project.support.models import Ticket
from example_project.support.similarity import WORTH_READING, similar_articles

Tone = Literal["friendly", "formal", "apologetic", "brief"]

TONES: dict[Tone, str] = {
    "friendly": "Write warmly and plainly, as one shopkeeper to another.",
    "formal": "Write formally and completely, without contractions.",
    "apologetic": "Begin with an honest apology for what went wrong; make no excuses.",
    "brief": "Write no more than four sentences.",
}


@mcp.prompt(title="Triage a ticket", permission="support.change_ticket")
def triage(ctx: Context, ticket_id: int) -> list[PromptMessage]:
    """Judge a ticket's urgency, decide who should have it, and say what to do next.

    Args:
        ticket_id: The ticket's number.
    """
    ticket = find_ticket(ctx.user, ticket_id)
    agents = ", ".join(desk.agents().values_list("username", flat=True))
    return [
        _attached(ticket),
        content.user(
            f"Triage ticket {ticket.pk} by the rules of desk://guide.\n\n"
            "1. Say in one sentence what the customer needs.\n"
            "2. Say which priority fits and why; it has the priority "
            f"{ticket.priority_name} now.\n"
            f"3. Say who should have it. The agents are: {agents}.\n"
            "4. Say what the next step is, and whether an article answers the question.\n\n"
            "Change nothing yet: show me your judgement and ask before you assign the ticket or "
            "write a note."
        ),
    ]


@mcp.prompt(title="Draft a reply", permission="support.change_ticket")
def draft_reply(ctx: Context, ticket_id: int, tone: Tone = "friendly") -> list[PromptMessage]:
    """Write a reply to a ticket that an agent can check and send.

    Args:
        ticket_id: The ticket's number.
        tone: How it should sound.
    """
    ticket = find_ticket(ctx.user, ticket_id)
    return [
        _attached(ticket),
        content.user(
            f"Draft a public reply to ticket {ticket.pk} by the rules of desk://guide. "
            f"{TONES[tone]}\n\n"
            f"{reading_list(ticket)}\n\n"
            "Show me the draft. Do not send it with reply_to_ticket before I agree."
        ),
    ]


def _attached(ticket: Ticket) -> PromptMessage:
    # As text: LangChain and LlamaIndex take no prompt that has anything else in it.
    text = TicketDetail.model_validate(ticket).model_dump_json(indent=2)
    return content.user(f"This is ticket://{ticket.pk}:\n\n{text}")


def reading_list(ticket: Ticket) -> str:
    """The articles that seem to be about it."""
    matches = similar_articles(f"{ticket.subject}\n{ticket.body}", limit=3)
    lines = [
        f"- {match.article.title} (article://{match.article.slug})"
        for match in matches
        if match.score >= WORTH_READING
    ]
    if not lines:
        return "The knowledge base seems to have nothing on it."
    return "\n".join(["Articles that may help; read them before you cite them:", *lines])
