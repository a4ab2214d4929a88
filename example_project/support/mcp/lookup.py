"""Finds what a caller means, or says in a sentence for the model why it cannot be found.

What may not be seen and what does not exist get the same answer.
"""

from __future__ import annotations

from django.contrib.auth.models import User

from django_mcp import ToolError
from example_project.support import desk
from example_project.support.models import Article, Ticket
from example_project.support.querysets import Caller, TicketQuerySet

ME = "me"
NOBODY = "nobody"


def readable_tickets(user: Caller) -> TicketQuerySet:
    """The caller's tickets with all that belongs to them, in a fixed number of queries."""
    return Ticket.objects.visible_to(user).with_people().with_comments_for(user)


def find_ticket(user: Caller, ticket_id: int) -> Ticket:
    """The ticket, if the caller may see it."""
    ticket = readable_tickets(user).filter(pk=ticket_id).first()
    if ticket is None:
        raise ToolError(f"There is no ticket {ticket_id} that you may see. Search for it first.")
    return ticket


def find_article(slug: str) -> Article:
    """The article of that slug."""
    article = Article.objects.filter(slug=slug).first()
    if article is None:
        raise ToolError(f"There is no article {slug!r}. search_articles finds those there are.")
    return article


def find_agent(user: User, name: str) -> User:
    """The agent of that username; "me" is the caller."""
    agents = {agent.username: agent for agent in desk.agents()}
    wanted = user.username if name == ME else name
    if wanted not in agents:
        raise ToolError(f"{wanted!r} is no agent. The agents are: {', '.join(agents)}.")
    return agents[wanted]
