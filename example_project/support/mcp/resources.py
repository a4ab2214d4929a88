"""Tickets and articles by URI, and the rules of the house."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mcp_types import ResourceLink

from django_mcp import Context, content, mcp
from example_project.support.mcp.lookup import readable_tickets
from example_project.support.mcp.schemas import TicketDetail
from example_project.support.models import Article, Ticket

GUIDE = Path(__file__).with_name("guide.md")


@mcp.resource("desk://guide", title="How this desk works", mime_type="text/markdown")
def guide() -> str:
    """The house rules: what the statuses mean, when to answer publicly, what never to promise."""
    return GUIDE.read_text(encoding="utf-8")


def open_tickets(ctx: Context, after: str | None = None) -> Iterator[ResourceLink]:
    """The open tickets of the caller, newest first; `after` is the last URI of the page before."""
    tickets = Ticket.objects.visible_to(ctx.user).filter(status=Ticket.Status.OPEN).order_by("-pk")
    if after is not None:
        number = after.removeprefix("ticket://")
        tickets = tickets.filter(pk__lt=number) if number.isdecimal() else tickets.none()
    for ticket in tickets.iterator(chunk_size=200):
        yield content.resource_link(
            f"ticket://{ticket.pk}",
            name=f"ticket-{ticket.pk}",
            title=f"#{ticket.pk} {ticket.subject}",
            mime_type="application/json",
        )


@mcp.resource(
    "ticket://{id}",
    title="A ticket",
    permission="support.view_ticket",
    list=open_tickets,
    model=Ticket,
)
def ticket(ctx: Context, id: int) -> TicketDetail:
    """A ticket with its conversation, as read_ticket returns it. Subscribe to hear of changes."""
    return TicketDetail.model_validate(readable_tickets(ctx.user).get(pk=id))


def all_articles() -> Iterator[ResourceLink]:
    """The whole knowledge base."""
    for article in Article.objects.order_by("slug"):
        yield content.resource_link(
            f"article://{article.slug}",
            name=article.slug,
            title=article.title,
            mime_type="text/markdown",
        )


@mcp.resource(
    "article://{slug}",
    title="A knowledge base article",
    mime_type="text/markdown",
    permission="support.view_article",
    list=all_articles,
    ttl=300,
)
def article(slug: str) -> str:
    """An article of the knowledge base, in Markdown."""
    page = Article.objects.get(slug=slug)
    return f"# {page.title}\n\n{page.body}\n"
