"""Tells those who watch a ticket of what it is not told by the ticket itself.

`model=Ticket` on the resource covers the ticket's own row; `desk.py` covers `update()`.
"""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from django_mcp import mcp
from example_project.support.models import Comment, Refund, Ticket


@receiver([post_save, post_delete], sender=Comment)
@receiver([post_save, post_delete], sender=Refund)
def part_changed(instance: Comment | Refund, **kwargs: Any) -> None:
    """The conversation and the refunds are part of what a ticket shows."""
    mcp.notify_resource_updated(f"ticket://{instance.ticket_id}")


@receiver(post_save, sender=Ticket)
def ticket_moved(update_fields: frozenset[str] | None, **kwargs: Any) -> None:
    """The list of resources has the open tickets alone, so that a status changes it."""
    if update_fields is None or "status" in update_fields:
        mcp.notify_resources_changed()
