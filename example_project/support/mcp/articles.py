"""Tools that belong together, as a class: the knowledge base, also at `/mcp/x/articles`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from django_mcp import Context, Fields, Load, Page, Toolset, mcp, tool
from example_project.support.forms import ArticleForm
from example_project.support.mcp.lookup import find_article
from example_project.support.mcp.schemas import ArticleMatch, ArticleText, PlainText
from example_project.support.models import Article, Ticket
from example_project.support.querysets import TicketQuerySet
from example_project.support.similarity import Match, similar_articles

EXCERPT_LENGTH = 200
ArticleTitles = Annotated[Any, Fields(Article, ["slug", "title", "updated"])]


def own_tickets(ctx: Context) -> TicketQuerySet:
    """The tickets that the caller may see."""
    return Ticket.objects.visible_to(ctx.user)


@mcp.toolset
class Articles(Toolset):
    """The knowledge base: what has been written about already."""

    permission = "support.view_article"

    @tool(title="Search articles", read_only=True)
    def search_articles(
        self,
        text: Annotated[PlainText, Field(min_length=2, max_length=2000)],
        limit: Annotated[int, Field(ge=1, le=20)] = 5,
    ) -> list[ArticleMatch]:
        """Find knowledge base articles about a subject, best first; empty if there are none.

        Args:
            text: Words or a whole question. Few precise words work better than many.
            limit: How many articles to return at most.
        """
        return [_described(match) for match in similar_articles(text, limit=limit)]

    @tool(title="Suggest articles for a ticket", read_only=True)
    def suggest_articles(
        self,
        ticket: Annotated[Ticket, Load(own_tickets)],  # type: ignore[valid-type]
        limit: Annotated[int, Field(ge=1, le=20)] = 3,
    ) -> list[ArticleMatch]:
        """Find knowledge base articles that are about the same thing as a ticket, best first.

        A score above 0.2 is usually worth reading; cite an article only after you have read it.

        Args:
            ticket: The ticket's number, without the #
            limit: How many articles to return at most.
        """
        text = f"{ticket.subject}\n{ticket.body}"
        return [_described(match) for match in similar_articles(text, limit=limit)]

    @tool(title="List the articles", read_only=True)
    def list_articles(self) -> Page[ArticleTitles]:
        """List all articles by their titles, page by page. For a question, use search_articles."""
        return Page.of(Article.objects)

    @tool(title="Read an article", read_only=True)
    def read_article(self, slug: Annotated[PlainText, Field(max_length=80)]) -> ArticleText:
        """Read a knowledge base article, whole, in Markdown.

        Args:
            slug: Its name, as search_articles and suggest_articles give it.
        """
        return ArticleText.model_validate(find_article(slug))


mcp.form(
    ArticleForm,
    ArticleForm.save,
    name="write_article",
    title="Write an article",
    permission="support.add_article",
    read_only=False,
    destructive=False,
    toolset="articles",
)

# The command has more options; `--days` alone is for clients.
mcp.command(
    "stale_articles",
    arguments=["--days"],
    permission="support.change_article",
    read_only=True,
    toolset="articles",
)


def _described(match: Match) -> ArticleMatch:
    article = match.article
    return ArticleMatch(
        slug=article.slug,
        title=article.title,
        uri=f"article://{article.slug}",
        score=match.score,
        excerpt=" ".join(article.body.split())[:EXCERPT_LENGTH],
    )
