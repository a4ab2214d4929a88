"""The desk in Django's admin: lists that cost the same few queries at any length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.utils import timezone

from example_project.support import desk
from example_project.support.models import Article, Comment, Customer, Refund, Ticket
from example_project.support.querysets import count_of

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest

    InlineOfComments = admin.StackedInline[Comment, Ticket]
    InlineOfRefunds = admin.TabularInline[Refund, Ticket]
    AdminOfTickets = admin.ModelAdmin[Ticket]
    AdminOfCustomers = admin.ModelAdmin[Customer]
    AdminOfComments = admin.ModelAdmin[Comment]
    AdminOfArticles = admin.ModelAdmin[Article]
else:
    # Only the type stubs know these classes as generic.
    InlineOfComments = admin.StackedInline
    InlineOfRefunds = admin.TabularInline
    AdminOfTickets = AdminOfCustomers = AdminOfComments = AdminOfArticles = admin.ModelAdmin


class CommentInline(InlineOfComments):
    """What was said, below the ticket."""

    model = Comment
    extra = 0
    fields = ["body", ("user", "customer"), ("internal", "created")]
    readonly_fields = ["created"]
    autocomplete_fields = ["user", "customer"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Comment]:
        return super().get_queryset(request).select_related("user", "customer", "ticket")


class RefundInline(InlineOfRefunds):
    """What was paid back. Refunds are made by a tool that asks for them, and only shown here."""

    model = Refund
    fields = ["amount", "reason", "user", "created"]
    readonly_fields = ["created"]
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Ticket | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Ticket | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Refund]:
        return super().get_queryset(request).select_related("user", "ticket")


@admin.register(Ticket)
class TicketAdmin(AdminOfTickets):
    """The queue."""

    list_display = [
        "id", "subject", "status", "priority", "customer_name", "assignee", "comment_count",
        "created",
    ]  # fmt: skip
    list_display_links = ["id", "subject"]
    list_filter = [
        "status",
        "priority",
        ("assignee", admin.RelatedOnlyFieldListFilter),
        "created",
    ]
    list_select_related = ["customer", "assignee"]
    search_fields = ["subject", "body", "customer__name", "customer__email"]
    search_help_text = "Words of the subject or text, or the customer's name or address"
    autocomplete_fields = ["customer", "assignee"]
    readonly_fields = ["created", "updated"]
    date_hierarchy = "created"
    list_per_page = 50
    show_full_result_count = False
    inlines = [CommentInline, RefundInline]
    actions = ["take", "solve", "close"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Ticket]:
        comments = count_of(Comment.objects.all(), by="ticket")
        return super().get_queryset(request).annotate(number_of_comments=comments)

    def save_model(
        self, request: HttpRequest, obj: Ticket, form: ModelForm[Ticket], change: bool
    ) -> None:
        obj.updated = timezone.now()
        super().save_model(request, obj, form, change)

    @admin.display(description="customer", ordering="customer__name")
    def customer_name(self, ticket: Ticket) -> str:
        """The name alone: the address makes the column too wide."""
        return ticket.customer.name

    @admin.display(description="comments", ordering="number_of_comments")
    def comment_count(self, ticket: Any) -> int:
        """Counted by the list's own query."""
        return int(ticket.number_of_comments)

    @admin.action(description="Give to me", permissions=["change"])
    def take(self, request: HttpRequest, tickets: QuerySet[Ticket]) -> None:
        """Assign all selected to the person who asks."""
        assert request.user.is_authenticated
        number = desk.assign_all(tickets, assignee=request.user)
        self.message_user(request, f"{number} tickets are yours now.", messages.SUCCESS)

    @admin.action(description="Mark as solved", permissions=["change"])
    def solve(self, request: HttpRequest, tickets: QuerySet[Ticket]) -> None:
        """Mark all selected as solved."""
        self._move(request, tickets, status=Ticket.Status.SOLVED)

    @admin.action(description="Close", permissions=["change"])
    def close(self, request: HttpRequest, tickets: QuerySet[Ticket]) -> None:
        """Close all selected."""
        self._move(request, tickets, status=Ticket.Status.CLOSED)

    def _move(
        self, request: HttpRequest, tickets: QuerySet[Ticket], *, status: Ticket.Status
    ) -> None:
        number = desk.set_status_of_all(tickets, status=status)
        self.message_user(request, f"{number} tickets are {status.value} now.", messages.SUCCESS)


@admin.register(Customer)
class CustomerAdmin(AdminOfCustomers):
    """Who writes to the desk."""

    list_display = ["name", "email", "company", "user", "unfinished_tickets", "created"]
    list_filter = ["created"]
    list_select_related = ["user"]
    search_fields = ["name", "email", "company"]
    autocomplete_fields = ["user"]
    readonly_fields = ["created"]
    list_per_page = 50
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Customer]:
        unfinished = count_of(Ticket.objects.unfinished(), by="customer")
        return super().get_queryset(request).annotate(number_unfinished=unfinished)

    @admin.display(description="unfinished tickets", ordering="number_unfinished")
    def unfinished_tickets(self, customer: Any) -> int:
        """Counted by the list's own query."""
        return int(customer.number_unfinished)


@admin.register(Comment)
class CommentAdmin(AdminOfComments):
    """Every comment, to search in."""

    list_display = ["id", "ticket", "author", "internal", "excerpt", "created"]
    list_filter = ["internal", "created"]
    list_select_related = ["ticket", "user", "customer"]
    search_fields = ["body", "ticket__subject"]
    autocomplete_fields = ["ticket", "user", "customer"]
    readonly_fields = ["created"]
    list_per_page = 50
    show_full_result_count = False

    @admin.display(description="text")
    def excerpt(self, comment: Comment) -> str:
        """The beginning of it."""
        return comment.body[:80]


@admin.register(Article)
class ArticleAdmin(AdminOfArticles):
    """The knowledge base."""

    list_display = ["title", "slug", "tags", "updated"]
    list_filter = ["updated"]
    search_fields = ["title", "body", "tags"]
    prepopulated_fields = {"slug": ["title"]}
    readonly_fields = ["updated"]
