"""Clients that leave rows behind, by the ways that rows come into being."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.contrib.auth.models import AnonymousUser

from django_mcp.auth import Principal
from django_mcp.conf import get_settings
from django_mcp.models import OutgoingMessage, PendingRequest, Session, Stream
from django_mcp.protocol.lifecycle import Sender, SessionInfo
from django_mcp.protocol.messages import Notification, encode, notification
from django_mcp.protocol.topics import Topic, TopicKind
from django_mcp.protocol.versions import NEWEST_LEGACY
from django_mcp.rates import Rate
from django_mcp.store.access import rate_counters
from django_mcp.store.access.redeemed_states import redeem
from django_mcp.store.changes import change_log
from django_mcp.store.changes.subscription_rows import subscribe
from django_mcp.store.delivery import outbox, stream_rows
from django_mcp.store.delivery.outbox import Process, write_batches
from django_mcp.store.delivery.records import CallRecord, QuestionRecord, WriteResult
from django_mcp.store.delivery.stream_writer import StreamWriter
from django_mcp.store.in_flight.listening import begin_listening, end_listening
from django_mcp.store.inbox import cancel
from django_mcp.store.sessions import session_rows
from django_mcp.store.sessions.finding import digest

from .aging import forget, let_pass

SERVER = "shop"
NOBODY = Principal(AnonymousUser())
ALIVE = Process("alive", "")
DEAD = Process("dead", "")


def resource(number: int) -> Topic:
    """Return the topic of a resource."""
    return Topic(TopicKind.RESOURCE, f"order://{number}")


class Running:
    """A POST with one call, as the process that runs it has it."""

    method = "tools/call"

    def __init__(
        self,
        session: str | None,
        process: Process = ALIVE,
        number: Any = 1,
        principal: Principal = NOBODY,
    ) -> None:
        self.process = process
        self.post = StreamWriter(
            server=SERVER,
            principal=principal,
            session_id=session,
            durable=session is not None,
            submit=lambda post: None,
        )
        self.call = CallRecord(number, self.method, "lasts")
        self.post.begin(self.call)

    def say(self, text: str = "a word") -> Running:
        """Say something, which is not written yet."""
        params = {"level": "info", "data": text}
        self.post.notify(notification(Notification("notifications/message", params)))
        return self

    def ask(self) -> Running:
        """Ask something, and have it written."""
        self.post.ask(QuestionRecord(self.call, "elicitation/create", {"message": "?"}, 60))
        self.write()
        return self

    def write(self) -> WriteResult:
        """Write what there is to write."""
        (kept,) = write_batches([self.post.take()], self.process)
        assert isinstance(kept, WriteResult), kept
        return kept

    def end(self) -> WriteResult:
        """Answer."""
        answer = encode({"jsonrpc": "2.0", "id": self.call.request_id, "result": {}})
        self.post.end(self.call, PendingRequest.State.ANSWERED, answer)
        return self.write()

    @property
    def row(self) -> PendingRequest:
        """Its row."""
        return PendingRequest.objects.get(pk=self.call.id)

    @property
    def stream(self) -> Stream:
        """The row of its stream."""
        return Stream.objects.get(pk=self.post.id)

    def bodies(self) -> list[str]:
        """Return what can be fetched of it."""
        rows = OutgoingMessage.objects.filter(stream=self.post.id).order_by("seq")
        return list(rows.values_list("body", flat=True))


class Visit:
    """A client's session."""

    def __init__(self, principal: Principal = NOBODY) -> None:
        sender = Sender({"name": "visitor", "version": "1"}, {})
        self.principal = principal
        self.info, self.secret = session_rows.open_session(SERVER, principal, NEWEST_LEGACY, sender)

    @property
    def row(self) -> Session:
        """Its row."""
        return Session.objects.get(pk=self.info.id)

    def call(self, process: Process = ALIVE, number: Any = 1) -> Running:
        """Begin a call, which says a word."""
        running = self.begin(process, number).say()
        running.write()
        return running

    def begin(self, process: Process = ALIVE, number: Any = 1) -> Running:
        """Begin a call, which has no row yet."""
        return Running(self.info.id, process, number, self.principal)

    def listen(self) -> Stream:
        """Return its own stream."""
        return stream_rows.open_own(self.info)

    def hear(self, *words: str) -> None:
        """Get messages into its own stream."""
        bodies = [encode({"jsonrpc": "2.0", "method": word}).decode() for word in words]
        outbox.write_notifications(self.listen().pk, bodies)

    def subscribe(self, *topics: Topic) -> None:
        """Want to hear of resources."""
        for topic in topics:
            subscribe(SERVER, self.info, topic)

    def cancel(self, request_id: Any) -> None:
        """Cancel a call that has no row."""
        cancel(SERVER, self.info, request_id, "early")

    def find(self) -> SessionInfo:
        """Find it as a request does that names it."""
        return session_rows.find_session(SERVER, self.secret, self.principal)

    def use(self) -> None:
        """Send a request that leaves no row."""
        session_rows.touch_session(self.info)

    def leave(self) -> None:
        """End it."""
        session_rows.end_session(SERVER, digest(self.secret), self.principal)


class Listening(Running):
    """A request of the modern era that listens to resources."""

    method = "subscriptions/listen"

    def __init__(
        self, *topics: Topic, process: Process = ALIVE, principal: Principal = NOBODY
    ) -> None:
        super().__init__(None, process, principal=principal)
        with self.post.registering():
            begin_listening(self.call, self.post, topics, owner=process.id, channel="")

    def end(self) -> WriteResult:
        """End it, as its client goes."""
        kept = super().end()
        end_listening(self.call.id)
        return kept


def plant(number: int) -> None:
    """Leave some of everything; all of it is due when that is over."""
    seconds = get_settings().retention_seconds + 60
    for index in range(number):
        visit = Visit()
        visit.subscribe(resource(index))
        visit.hear("unread")
        visit.cancel(index)
        visit.call().ask().end()
        Listening(resource(index)).end()
        change_log.write(SERVER, [resource(index)])
        rate_counters.spend(str(index), Rate(1, 60))
        redeem(uuid4())
    let_pass(seconds=seconds)
    assert forget("expired sessions, which end") == number
    let_pass(seconds=seconds)
