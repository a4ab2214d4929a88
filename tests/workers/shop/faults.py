"""Faults that a test plants in the workers, to see that it would notice them."""

from __future__ import annotations

import time
from typing import Any

from django_mcp.models import CallCount, OutgoingMessage, Session, Stream
from django_mcp.store import ledger
from django_mcp.store.access import rate_counters
from django_mcp.store.delivery import outbox, stream_rows
from django_mcp.store.delivery.stream_readers import StreamReader, StreamReaders
from django_mcp.store.sessions import session_use

from .gates import gates


def pauses() -> None:
    """Wait between storing the response of a held call and showing it. No fault: an occasion."""
    write = ledger.write_batches

    def written(batches: Any, process: Any) -> Any:
        found = write(batches, process)
        for call in (call for batch in batches for call in batch.ended):
            if call.name in ("hold", "ahold"):
                gates().wait(f"stored-{call.request_id}")
        return found

    ledger.write_batches = written


def prompt() -> None:
    """Write the use of sessions after a second at most. No fault: tests need not wait for it."""
    session_use.LONGEST_PERIOD_SECONDS = 1.0  # type: ignore[misc]


AGES = 0.05
"""Seconds between reading and writing back: so many that whoever else is there comes in between."""


def unlocked() -> None:
    """Number the messages of a session's own stream by reading, adding and writing back."""

    def put(stream: Any, bodies: Any) -> str | None:
        row = Stream.objects.get(pk=stream)
        time.sleep(AGES)
        first, row.next_seq = row.next_seq, row.next_seq + len(bodies)
        row.save(update_fields=["next_seq"])
        for index, body in enumerate(bodies):
            OutgoingMessage.objects.update_or_create(
                stream_id=stream, seq=first + index, defaults={"kind": "notification", "body": body}
            )
        return row.reader

    outbox.write_notifications = put


def overwrites() -> None:
    """Keep what a session has to say in one place: who writes there replaces what is there."""
    insert = outbox._insert_messages

    def replace(rows: Any) -> None:
        rows = list(rows)
        written = {row.stream_id for row in rows}
        sessions = Stream.objects.filter(pk__in=written).values_list("session", flat=True)
        others = Stream.objects.filter(session__in=list(sessions)).exclude(pk__in=written)
        OutgoingMessage.objects.filter(stream__in=list(others)).delete()
        insert(rows)

    outbox._insert_messages = replace


def whole() -> None:
    """Keep sessions in memory: count there, and save them whole."""
    known: dict[str, Session] = {}

    def write_use(requests: Any, *, at_once: bool = False) -> dict[str, float]:
        for session, number in requests.items():
            row = known.setdefault(session, Session.objects.get(pk=session))
            row.request_count += number
            row.save()
        return {}

    session_use.write_use = write_use


def unpolled() -> None:
    """Never look unless rung."""
    ledger.PAUSE_SECONDS = 3600


def deaf() -> None:
    """Never look unless rung, and never ring anybody."""
    unpolled()
    ledger.Doorbell.wake = lambda self, channels: None  # type: ignore[method-assign]


def resends() -> None:
    """Deliver to every connection of a stream, whichever is the newest."""
    stream_rows.mark_delivered = lambda stream, epoch, seq: True
    StreamReaders._may_deliver = lambda self, reader, row: row is not None  # type: ignore[method-assign]


def blob() -> None:
    """Keep the queue of a stream as one value: read it, change it, write it whole."""

    def put(stream: Any, bodies: Any) -> str | None:
        row = Stream.objects.get(pk=stream)
        queue = list(row.messages.order_by("seq").values_list("body", flat=True)) + list(bodies)
        time.sleep(AGES)
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

    outbox.write_notifications = put


def late() -> None:
    """Look for what is there first, and join after that: nobody looks again for the newcomer."""
    look = StreamReaders.look
    coming: list[StreamReader] = []

    def look_and_join(self: StreamReaders) -> None:
        newcomers = list(coming)
        look(self)
        for reader in newcomers:
            coming.remove(reader)
            if not reader.gone:
                add(self, reader)

    add = StreamReaders.add
    StreamReaders.add = lambda self, reader: coming.append(reader)  # type: ignore[method-assign]
    StreamReaders.look = look_and_join  # type: ignore[method-assign]


def skips() -> None:
    """Read what is there first, and join at what is the end by then, after something has come."""
    look = StreamReaders.look
    known: list[StreamReader] = []

    def look_and_join(self: StreamReaders) -> None:
        newcomers = [each for each in self.all() if each.own and each not in known]
        look(self)
        for reader in newcomers:
            known.append(reader)
            rows = Stream.objects.filter(pk=reader.stream)
            while not reader.gone and rows.get().next_seq <= reader.cursor + 1:
                time.sleep(0.01)
            reader.cursor = rows.get().next_seq - 1

    StreamReaders.look = look_and_join  # type: ignore[method-assign]


def looks_first() -> None:
    """Count calls by reading the row, and writing it back with one more."""

    def count(key: str, rate: Any) -> bool:
        row = CallCount.objects.filter(key=key).first()
        if row is None or row.number >= rate.number:
            return False
        time.sleep(0.005)
        CallCount.objects.filter(key=key).update(number=row.number + 1)
        return True

    rate_counters._count = count


def looks_first_in_cache() -> None:
    """Count calls in the cache in the same way."""

    def spend(cache: Any, key: str, rate: Any) -> float:
        number = cache.get(key, 0)
        time.sleep(0.005)
        cache.set(key, number + 1)
        return 0.0 if number < rate.number else 1.0

    rate_counters._spend_in_cache = spend
