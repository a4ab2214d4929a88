"""Requests that listen until their clients go (2026-07-28), as rows."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db import transaction
from django.db.models import QuerySet

from ...models import ChangeCounter, PendingRequest, Subscription
from ...protocol.topics import Topic
from ..changes.subscription_rows import subscription
from ..database import alias, reporting_outages, with_retries
from ..delivery.records import CallRecord
from ..delivery.request_rows import call_row
from ..delivery.stream_writer import StreamWriter
from ..parent_rows import refusing_deleted_user

State = PendingRequest.State


def begin_listening(
    call: CallRecord, writer: StreamWriter, resources: Sequence[Topic], **owned: str
) -> int:
    """Give a request that listens its rows; return the number of the last change before it.

    Raises if the user has been deleted in the meantime.
    """
    with reporting_outages(), refusing_deleted_user(writer.principal):
        return with_retries(lambda: _begin_listening(call, writer, resources, **owned))


def _begin_listening(
    call: CallRecord, writer: StreamWriter, resources: Sequence[Topic], **owned: str
) -> int:
    with transaction.atomic(using=alias()):
        row = call_row(call, writer, state=State.RUNNING, **owned)
        row.save(force_insert=True, using=alias())
        _rows().bulk_create(
            subscription(writer.server, each, request_id=call.id) for each in resources
        )
        counters = ChangeCounter.objects.using(alias()).filter(pk=writer.server)
        return counters.values_list("serial", flat=True).first() or 0


def end_listening(request: uuid.UUID) -> None:
    """Remove the subscriptions of a request that listens no more."""
    _rows().filter(request__pk=request).delete()


def _rows() -> QuerySet[Subscription]:
    return Subscription.objects.using(alias())
