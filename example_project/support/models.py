"""Customers, their tickets, what is said and refunded, and the knowledge base."""

from __future__ import annotations

from decimal import Decimal

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from example_project.support.querysets import (
    ArticleQuerySet,
    CommentQuerySet,
    TicketQuerySet,
)


class Customer(models.Model):
    """Somebody who writes to the desk; `user` is set for those who may also log in."""

    name = models.CharField(max_length=120)
    email = models.EmailField(unique=True)
    company = models.CharField(max_length=120, blank=True)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="customer",
    )
    created = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name", "pk"]
        indexes = [models.Index(fields=["name"], name="customer_name")]

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


class Ticket(models.Model):
    """A question or complaint, from its arrival until it is closed."""

    class Status(models.TextChoices):
        """Whose turn it is: the desk's, the customer's, nobody's for now, nobody's for good."""

        OPEN = "open", "Open"
        PENDING = "pending", "Pending"
        SOLVED = "solved", "Solved"
        CLOSED = "closed", "Closed"

    class Priority(models.IntegerChoices):
        """Numbers, so that the database sorts them."""

        LOW = 1, "Low"
        NORMAL = 2, "Normal"
        HIGH = 3, "High"
        URGENT = 4, "Urgent"

    subject = models.CharField(max_length=200)
    body = models.TextField()
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    priority = models.PositiveSmallIntegerField(choices=Priority, default=Priority.NORMAL)
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="tickets")
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="assigned_tickets",
    )
    paid = models.DecimalField(
        max_digits=8,
        decimal_places=2,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="What the customer has paid for what this is about, in EUR",
    )
    created = models.DateTimeField(default=timezone.now, editable=False, db_index=True)
    updated = models.DateTimeField(default=timezone.now, editable=False)

    objects = TicketQuerySet.as_manager()

    class Meta:
        ordering = ["-created", "-pk"]
        indexes = [
            models.Index(fields=["status", "-created"], name="ticket_status_created"),
            models.Index(fields=["customer", "-created"], name="ticket_customer_created"),
            models.Index(fields=["assignee", "status"], name="ticket_assignee_status"),
        ]
        permissions = [
            ("view_all_tickets", "Can see the tickets of every customer"),
            ("assign_ticket", "Can give a ticket to an agent, and be given one"),
            ("view_statistics", "Can see the figures of the desk"),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.subject}"

    @property
    def priority_name(self) -> str:
        """The priority as a word in lower case, for those who read rather than sort."""
        return self.Priority(self.priority).name.lower()

    @property
    def refundable(self) -> Decimal:
        """What is left to refund, as the database has it now."""
        # Summed up here: SQLite would add the amounts as floating-point numbers.
        refunded = sum(self.refunds.values_list("amount", flat=True), Decimal())
        return (self.paid or Decimal()) - refunded


class Comment(models.Model):
    """What an agent or the customer added to a ticket; internal ones are for agents only."""

    ticket = models.ForeignKey(Ticket, on_delete=models.CASCADE, related_name="comments")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="ticket_comments",
    )
    customer = models.ForeignKey(
        Customer, on_delete=models.CASCADE, null=True, blank=True, related_name="comments"
    )
    body = models.TextField()
    internal = models.BooleanField(default=False)
    created = models.DateTimeField(default=timezone.now, editable=False)

    objects = CommentQuerySet.as_manager()

    class Meta:
        ordering = ["created", "pk"]
        indexes = [models.Index(fields=["ticket", "created"], name="comment_ticket_created")]
        permissions = [("add_internal_comment", "Can write and read internal notes")]
        constraints = [
            # Both may be empty: the account of an agent who left can be deleted.
            models.CheckConstraint(
                condition=Q(user__isnull=True) | Q(customer__isnull=True),
                name="comment_has_one_author",
                violation_error_message="A comment is by a user or by the customer, not by both.",
            ),
            models.CheckConstraint(
                condition=Q(internal=False) | Q(customer__isnull=True),
                name="comment_of_customer_is_public",
                violation_error_message="A customer cannot write an internal note.",
            ),
        ]

    def __str__(self) -> str:
        return f"Comment {self.pk} on ticket #{self.ticket_id}"

    @property
    def author(self) -> str:
        """Who wrote it, in a word or a name."""
        if self.customer is not None:
            return self.customer.name
        return self.user.get_username() if self.user is not None else "former agent"

    @property
    def from_customer(self) -> bool:
        """Whether the other side wrote it."""
        return self.customer_id is not None


class Refund(models.Model):
    """Money that went back to the customer. Nobody changes or deletes one."""

    class Reason(models.TextChoices):
        """Why, for the books."""

        DAMAGED = "damaged", "Damaged or wrong goods"
        LATE = "late", "Came too late"
        BILLING = "billing", "Charged wrongly"
        GOODWILL = "goodwill", "Goodwill"

    ticket = models.ForeignKey(Ticket, on_delete=models.PROTECT, related_name="refunds")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="refunds"
    )
    amount = models.DecimalField(max_digits=8, decimal_places=2, help_text="In EUR")
    reason = models.CharField(max_length=10, choices=Reason)
    created = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["created", "pk"]
        constraints = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="refund_is_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} EUR for ticket #{self.ticket_id}"


class Article(models.Model):
    """A page of the knowledge base, in Markdown."""

    slug = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=160)
    body = models.TextField()
    tags = models.CharField(max_length=160, blank=True, help_text="Words with commas between them")
    updated = models.DateTimeField(auto_now=True)

    objects = ArticleQuerySet.as_manager()

    class Meta:
        ordering = ["title", "pk"]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        """Its page in the admin: the desk has no other."""
        return reverse("admin:support_article_change", args=[self.pk])

    @property
    def tag_list(self) -> list[str]:
        """The tags, one by one."""
        return [tag.strip() for tag in self.tags.split(",") if tag.strip()]
