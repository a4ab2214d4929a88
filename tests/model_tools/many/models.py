"""Thirty models as a site has them: a name, a state, a moment, and whose it is."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

NAMES = (
    "Address", "Batch", "Brand", "Carrier", "Category", "Channel", "Contract", "Country",
    "Coupon", "Customer", "Delivery", "Discount", "Invoice", "Lead", "Offer", "Order",
    "Parcel", "Partner", "Payment", "Product", "Project", "Purchase", "Refund", "Region",
    "Shelf", "Shipment", "Stock", "Supplier", "Task", "Warehouse",
)  # fmt: skip


class Status(models.TextChoices):
    DRAFT = "draft", "Draft"
    OPEN = "open", "Open"
    DONE = "done", "Done"


class Record(models.Model):
    name = models.CharField(max_length=60)
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    created = models.DateTimeField(auto_now_add=True, db_index=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)

    class Meta:
        abstract = True
        ordering = ["-created"]

    def __str__(self) -> str:
        return self.name


MODELS: list[Any] = [type(name, (Record,), {"__module__": __name__}) for name in NAMES]
