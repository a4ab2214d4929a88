"""Faults that ``--plant`` plants in the workers, to see that the suite would notice them."""

from __future__ import annotations

import os
from typing import Any

from django_mcp.models import OutgoingMessage, PendingRequest, Session, Stream
from django_mcp.server.questions import mrtr
from django_mcp.store.changes import change_log
from django_mcp.store.delivery import outbox
from django_mcp.store.delivery.stream_readers import StreamReaders
from django_mcp.store.in_flight import recovery


def never_settles() -> None:
    """Leave what the dead have left. Their clients wait for ever."""
    recovery.end_abandoned = lambda: []


def unfenced() -> None:
    """End calls without compare-and-set: whoever was settled while it slept speaks all the same."""

    def end_calls(batch: Any) -> list[Any]:
        ended = [call.id for call in batch.ended]
        PendingRequest.objects.filter(pk__in=ended).update(state="answered")
        return []

    def advance(batch: Any) -> bool:
        if not batch.opens and batch.writer.durable and batch.messages:
            stream = Stream.objects.get(pk=batch.writer.id)
            ahead = max(0, stream.next_seq - batch.messages[0][0].seq)
            batch.messages[:] = [
                (type(each)(each.seq + ahead, each.kind, each.body), call)
                for each, call in batch.messages
            ]
            closed = stream.created if batch.closes else None
            following = batch.messages[-1][0].seq + 1
            Stream.objects.filter(pk=stream.pk).update(next_seq=following, closed=closed)
        return True

    outbox._end_calls = end_calls
    outbox._advance = advance


def forgets_results() -> None:
    """Show responses, but do not keep them for whoever comes back."""
    insert = outbox._insert_messages
    response = OutgoingMessage.Kind.RESPONSE
    outbox._insert_messages = lambda rows: insert([row for row in rows if row.kind != response])


def forgets_sessions() -> None:
    """Know only the sessions that were opened since this process began."""
    Session.objects.update(state=Session.State.ENDED)


def broadcasts() -> None:
    """Show what one call says on every stream of the process."""

    def offer(self: StreamReaders, stream: Any, messages: Any, *, epoch: int, closed: bool) -> None:
        for reader in self.all():
            if messages and not reader.is_get_stream:
                reader.deliver(messages)
            if closed and reader.stream == stream:
                self._finish(reader)

    StreamReaders.offer = offer  # type: ignore[method-assign]


def keeps_changes_to_itself() -> None:
    """Tell of a change only whoever listens at the process that made it."""
    write, after = change_log.write, change_log.after
    made: set[Any] = set()

    def wrote(server: str, topics: Any) -> Any:
        topics = list(topics)
        made.update(change_log.key_of(topic) for topic in topics)
        return write(server, topics)

    def own_after(numbers: Any) -> Any:
        found = after(numbers)
        for news in found.values():
            news.changed = {key: serial for key, serial in news.changed.items() if key in made}
        return found

    change_log.write, change_log.after = wrote, own_after


def keeps_states_to_itself() -> None:
    """Seal what a call has asked so far so that no other process can read it."""
    mrtr._SALT += str(os.getpid())
