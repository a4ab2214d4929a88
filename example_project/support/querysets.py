"""Who may see which row: the one place, for tools, resources, prompts and completions alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from django.apps import apps
from django.db import models
from django.db.models import Count, OuterRef, Prefetch, Q, Subquery
from django.db.models.functions import Coalesce

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

    from example_project.support.models import Article, Comment, Ticket  # noqa: F401

Caller: TypeAlias = "User | AnonymousUser"


def count_of(rows: models.QuerySet[Any], *, by: str) -> Coalesce:
    """The number of rows whose foreign key `by` points to the outer row.

    A subquery, since a database works it out for the rows of the page alone; a join would
    have to group the whole table first.
    """
    counts = rows.order_by().filter(**{by: OuterRef("pk")}).values(by).annotate(n=Count("pk"))
    return Coalesce(Subquery(counts.values("n")), 0)


class TicketQuerySet(models.QuerySet["Ticket"]):
    """Tickets, by caller, state and text."""

    def visible_to(self, user: Caller) -> TicketQuerySet:
        """All for the desk, their own for customers, none for anybody else."""
        if not user.is_authenticated:
            return self.none()
        if user.has_perm("support.view_all_tickets"):
            return self
        return self.filter(customer__user=user)

    def unfinished(self) -> TicketQuerySet:
        """Those that somebody still has to do something about."""
        return self.filter(status__in=["open", "pending"])

    def containing(self, text: str) -> TicketQuerySet:
        """Those whose subject or body has every one of the words."""
        tickets = self
        for word in text.split():
            tickets = tickets.filter(Q(subject__icontains=word) | Q(body__icontains=word))
        return tickets

    def with_people(self) -> TicketQuerySet:
        """Customer and assignee in the same query."""
        return self.select_related("customer", "assignee")

    def with_comments_for(self, user: Caller) -> TicketQuerySet:
        """What the caller may read of the comments, as `visible_comments`."""
        comments = apps.get_model("support", "Comment").objects.visible_to(user).with_authors()
        return self.prefetch_related(
            Prefetch("comments", queryset=comments, to_attr="visible_comments")
        )


class CommentQuerySet(models.QuerySet["Comment"]):
    """Comments, by caller."""

    def visible_to(self, user: Caller) -> CommentQuerySet:
        """Internal notes are for those who may write them."""
        if user.is_authenticated and user.has_perm("support.add_internal_comment"):
            return self
        return self.filter(internal=False)

    def with_authors(self) -> CommentQuerySet:
        """Both kinds of author in the same query."""
        return self.select_related("user", "customer")


class ArticleQuerySet(models.QuerySet["Article"]):
    """Articles, by text."""

    def containing_any(self, words: list[str]) -> ArticleQuerySet:
        """Those that have at least one of the words anywhere."""
        if not words:
            return self.none()
        condition = Q()
        for word in words:
            condition |= Q(title__icontains=word) | Q(tags__icontains=word)
            condition |= Q(body__icontains=word)
        return self.filter(condition)
