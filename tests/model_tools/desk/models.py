"""A desk with tickets: every kind of field and relation that tools of models meet."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.contenttypes.fields import GenericForeignKey
from django.db import models
from django.utils import timezone


class EncryptedCharField(models.CharField):
    """As packages for encryption name theirs."""


class Company(models.Model):
    name = models.CharField(max_length=60)

    def __str__(self) -> str:
        return self.name


class Customer(models.Model):
    name = models.CharField(max_length=60)
    email = models.EmailField(blank=True)
    company = models.ForeignKey(Company, on_delete=models.SET_NULL, null=True, blank=True)
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True
    )

    def __str__(self) -> str:
        return self.name


class Tag(models.Model):
    name = models.CharField(max_length=60)

    def __str__(self) -> str:
        return self.name


class Ticket(models.Model):
    class Status(models.TextChoices):
        OPEN = "open", "Open"
        WAITING = "waiting", "Waits for the customer"
        CLOSED = "closed", "Closed"

    class Priority(models.IntegerChoices):
        LOW = 1, "Low"
        HIGH = 2, "High"

    number = models.CharField(max_length=20, unique=True)
    subject = models.CharField(max_length=100)
    body = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    priority = models.IntegerField(choices=Priority, default=Priority.LOW)
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="tickets")
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    watchers = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="watched_tickets"
    )
    tags = models.ManyToManyField(Tag, blank=True, related_name="tickets")
    price = models.DecimalField(max_digits=9, decimal_places=3, null=True, blank=True)
    is_public = models.BooleanField(default=True)
    due = models.DateField(null=True, blank=True)
    created = models.DateTimeField(default=timezone.now)
    updated = models.DateTimeField(auto_now=True)
    secret_note = models.CharField(max_length=60, blank=True)
    remark = models.CharField(max_length=60, blank=True)
    vault = EncryptedCharField(max_length=60, blank=True)

    class Meta:
        permissions = [("close_ticket", "Can close tickets")]

    def __str__(self) -> str:
        return f"{self.number} {self.subject}"

    @property
    def is_late(self) -> bool:
        return self.due is not None and self.due < timezone.now().date()


class Comment(models.Model):
    ticket = models.ForeignKey(Ticket, on_delete=models.CASCADE, related_name="comments")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    text = models.TextField()
    internal = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.text


class Invoice(models.Model):
    ticket = models.ForeignKey(Ticket, on_delete=models.PROTECT, related_name="invoices")
    amount = models.DecimalField(max_digits=8, decimal_places=2)

    def __str__(self) -> str:
        return str(self.amount)


class Device(models.Model):
    """Has a key that is no number, and values by which rows are in order, all of which may lack."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    name = models.CharField(max_length=20, null=True)  # noqa: DJ001 - nulls are what is tested
    rank = models.IntegerField(null=True)
    weight = models.FloatField(null=True)
    length = models.DecimalField(max_digits=20, decimal_places=6, null=True)
    seen = models.DateTimeField(null=True)
    day = models.DateField(null=True)
    hour = models.TimeField(null=True)
    lasted = models.DurationField(null=True)
    owner = models.ForeignKey(Customer, on_delete=models.CASCADE, null=True)

    def __str__(self) -> str:
        return str(self.pk)


class Place(models.Model):
    name = models.CharField(max_length=20)

    def __str__(self) -> str:
        return self.name


class Cafe(Place):
    """Has its rows in two tables, and the key of the other one."""

    stars = models.IntegerField(default=1)
    opens = models.TimeField(null=True, blank=True)
    lasts = models.DurationField(null=True, blank=True)
    weight = models.FloatField(null=True, blank=True)
    rate = models.DecimalField(max_digits=9, decimal_places=2, default=1)
    gross = models.GeneratedField(
        expression=models.F("rate") * 1.2345,
        output_field=models.DecimalField(max_digits=9, decimal_places=2),
        db_persist=True,
    )
    address = models.GenericIPAddressField(null=True, blank=True)


class Note(models.Model):
    content_type = models.ForeignKey("contenttypes.ContentType", on_delete=models.CASCADE)
    object_id = models.PositiveIntegerField()
    about = GenericForeignKey("content_type", "object_id")
    text = models.CharField(max_length=60)

    def __str__(self) -> str:
        return self.text
