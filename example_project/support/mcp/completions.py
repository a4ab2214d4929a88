"""Suggestions for what a person types. A prompt's `tone` needs none: it is a Literal."""

from __future__ import annotations

from django.db.models import CharField
from django.db.models.functions import Cast

from django_mcp import Context, mcp
from example_project.support.models import Article, Ticket

# What the protocol sends at most.
LIMIT = 100


@mcp.completion("triage", "ticket_id")
@mcp.completion("draft_reply", "ticket_id")
@mcp.completion("ticket://{id}", "id")
def complete_ticket(ctx: Context, value: str) -> list[str]:
    """The newest open tickets that the caller may see, by the beginning of their number."""
    tickets = Ticket.objects.visible_to(ctx.user).filter(status=Ticket.Status.OPEN)
    if value:
        key = Cast("pk", output_field=CharField(max_length=20))
        tickets = tickets.annotate(key=key).filter(key__startswith=value)
    return [str(pk) for pk in tickets.order_by("-pk").values_list("pk", flat=True)[:LIMIT]]


@mcp.completion("article://{slug}", "slug")
def complete_article(value: str) -> list[str]:
    """The articles whose slug begins so, then those that contain it."""
    slugs = Article.objects.filter(slug__icontains=value).values_list("slug", flat=True)
    return sorted(slugs, key=lambda slug: (not slug.startswith(value.lower()), slug))[:LIMIT]
