"""Faults that a test plants in the workers, to see that it would notice them."""

from __future__ import annotations

from typing import Any

from django_mcp.models import OutgoingMessage, Stream
from django_mcp.store import ledger, outbox, streams
from django_mcp.store.readers import Readers


def unlocked() -> None:
    """Number the messages of a session's own stream by reading, adding and writing back."""

    def put(stream: Any, bodies: Any) -> str | None:
        row = Stream.objects.get(pk=stream)
        first, row.next_seq = row.next_seq, row.next_seq + len(bodies)
        row.save(update_fields=["next_seq"])
        for index, body in enumerate(bodies):
            OutgoingMessage.objects.update_or_create(
                stream_id=stream, seq=first + index, defaults={"kind": "notification", "body": body}
            )
        return row.reader

    outbox.put = put


def deaf() -> None:
    """Never look unless rung, and never ring anybody."""
    ledger.PAUSE = 3600
    ledger.Doorbell.ring = lambda self, channels: None  # type: ignore[method-assign]


def resends() -> None:
    """Deliver to every connection of a stream, whichever is the newest."""
    streams.mark_delivered = lambda stream, epoch, seq: True
    Readers._may_deliver = lambda self, reader, row: row is not None  # type: ignore[method-assign]


def blob() -> None:
    """Keep the queue of a stream as one value: read it, change it, write it whole."""

    def put(stream: Any, bodies: Any) -> str | None:
        row = Stream.objects.get(pk=stream)
        queue = list(row.messages.order_by("seq").values_list("body", flat=True)) + list(bodies)
        row.messages.all().delete()
        row.messages.bulk_create(
            (
                OutgoingMessage(stream=row, seq=seq, kind="notification", body=body)
                for seq, body in enumerate(queue, start=1)
            ),
            ignore_conflicts=True,
        )
        Stream.objects.filter(pk=stream).update(next_seq=len(queue) + 1)
        return row.reader

    outbox.put = put
