"""Calls whose process has died, as it left them in the database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser

from django_mcp.auth import Principal
from django_mcp.clock import DatabaseNow
from django_mcp.models import PendingRequest, Session
from django_mcp.protocol.messages import Notification, notification
from django_mcp.store.delivery.outbox import Process, write_batches
from django_mcp.store.delivery.records import CallRecord, QuestionRecord
from django_mcp.store.delivery.stream_writer import StreamWriter

DEAD = Process("d" * 32, "-" + "d" * 32)


class Abandoned:
    """One POST of the only session, whose calls have begun and have said one word."""

    def __init__(self, *request_ids: Any, asks: bool = False) -> None:
        session = Session.objects.get()
        self.post = StreamWriter(
            server="delivery",
            principal=Principal(AnonymousUser()),
            session_id=str(session.pk),
            durable=True,
            submit=lambda post: None,
        )
        self.calls = [CallRecord(each, "tools/call", "gone") for each in request_ids]
        for call in self.calls:
            self.post.begin(call)
        self.say("begun")
        if asks:
            self.question = QuestionRecord(
                self.calls[0], "elicitation/create", {"message": "?"}, 60
            )
            self.post.ask(self.question)
        self.write()

    def say(self, text: str) -> None:
        """Say a word, which is not yet written."""
        params = {"level": "info", "data": text}
        self.post.notify(notification(Notification("notifications/message", params)))

    def write(self) -> Any:
        """Write what its owner has to write; return what has become of it."""
        (kept,) = write_batches([self.post.take()], DEAD)
        return kept

    def die(self, *calls: CallRecord) -> None:
        """Let the leases of these calls, or of all, run out."""
        keys = [call.id for call in calls or self.calls]
        owned = PendingRequest.objects.filter(owner=DEAD.id)
        if not calls:
            keys += owned.values_list("pk", flat=True)
        owned.filter(pk__in=keys).update(lease_until=DatabaseNow() - timedelta(seconds=1))

    def live(self) -> None:
        """Let the leases last for a minute."""
        owned = PendingRequest.objects.filter(owner=DEAD.id)
        owned.update(lease_until=DatabaseNow() + timedelta(minutes=1))

    @property
    def beginning(self) -> str:
        """The event id before its first message."""
        from django_mcp.http.event_stream import EventId  # noqa: PLC0415

        return str(EventId(self.post.id, 0))
