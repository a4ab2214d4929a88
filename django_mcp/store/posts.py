"""POSTs in flight: what their calls say and how they end, on the way into the database.

A POST's stream has one writer, the process that runs its calls. It numbers the messages in memory
and hands them to the outbox, which keeps them in batches. A call that says nothing and ends soon
never gets here.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..conf import get_settings
from ..models import OutgoingMessage, PendingRequest, new_id
from ..protocol.messages import RequestId, encode

if TYPE_CHECKING:
    from ..server.ports import Principal

logger = logging.getLogger("django_mcp.store")

Kind = OutgoingMessage.Kind
State = PendingRequest.State


@dataclass(frozen=True, slots=True)
class Message:
    """A message in its place on a stream."""

    seq: int
    kind: str
    body: str
    """The JSON-RPC message, a single line of JSON."""


@dataclass(slots=True, eq=False)
class Call:
    """A request from the client in flight. Its own key, not the request's id, identifies it."""

    request_id: RequestId
    method: str
    name: str
    id: uuid.UUID = field(default_factory=new_id)
    started: float = field(default_factory=time.monotonic)
    """By this process's clock; the row is dated by the database's."""

    @property
    def age(self) -> timedelta:
        """How long it has been running."""
        return timedelta(seconds=time.monotonic() - self.started)

    @property
    def request_text(self) -> str:
        """The request's id as JSON, since ``1`` and ``"1"`` are two ids."""
        return encode(self.request_id).decode()


@dataclass(slots=True, eq=False)
class Question:
    """A request to the client in flight."""

    call: Call
    method: str
    params: dict[str, Any]
    seconds: float
    """How long its answer may take."""
    id: uuid.UUID = field(default_factory=new_id)

    @property
    def request_id(self) -> str:
        """Its JSON-RPC id, unique in the session: a swapped answer finds its own question."""
        return f"ask-{self.id.hex}"


@dataclass(slots=True)
class Batch:
    """What one POST wants kept, in one transaction with others."""

    post: Post
    opens: bool = False
    begun: list[Call] = field(default_factory=list)
    ended: dict[Call, str] = field(default_factory=dict)
    messages: list[tuple[Message, Call | None]] = field(default_factory=list)
    """Messages; a response is kept only if its call had not been ended by somebody else."""
    questions: list[Question] = field(default_factory=list)
    closes: bool = False
    next_seq: int = 1

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.opens or self.begun or self.ended or self.messages or self.closes)


@dataclass(slots=True)
class Kept:
    """What has become of a :class:`Batch`."""

    messages: list[Message] = field(default_factory=list)
    cancelled: list[Call] = field(default_factory=list)
    """Calls that turned out to be cancelled before they had a row."""
    settled: list[Call] = field(default_factory=list)
    """Calls that somebody else had ended."""
    lost: bool = False
    """The session, or the stream, has ended: nothing was kept."""


class Post:
    """One POST whose calls run in this process. Safe to use from any thread.

    ``durable`` says that the client can come back for what is said: it belongs to a session, and
    the answer may be a stream. ``reader`` is the channel of the process that shows the stream.
    """

    def __init__(
        self,
        *,
        server: str,
        principal: Principal,
        session_id: str | None,
        durable: bool,
        submit: Callable[[Post], None],
    ) -> None:
        self.id = new_id()
        self.server = server
        self.principal = principal
        self.session_id = session_id
        self.durable = durable
        self.epoch = 1
        self.reader = ""
        self.has_asked = False
        self.is_kept = False
        """Whether it has rows, as far as this process knows."""
        self.listener: Callable[[Kept], None] = lambda kept: None
        self._submit = submit
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._open = False
        self._next = 1
        self._bytes = 0
        self._is_full = False
        self._has_ended = False
        self._batch = Batch(self)

    @property
    def is_open(self) -> bool:
        """Whether it has rows, or is about to have them."""
        return self._open

    def begin(self, call: Call) -> None:
        """Note a call; it has a row if the POST has."""
        with self._lock:
            self._calls.append(call)
            if self._open:
                self._batch.begun.append(call)
        if self._open:
            self._submit(self)

    @contextmanager
    def registering(self) -> Iterator[None]:
        """Let somebody else write the rows of what has begun; if that fails, there are none."""
        self._open = True
        try:
            yield
        except BaseException:
            self._open = False
            raise

    def open(self) -> None:
        """Ask for rows, from now on: a call has spoken, or lasts."""
        with self._lock:
            if self._open or self._has_ended:
                return
            self._open = self._batch.opens = True
            self._batch.begun += self._calls
        self._submit(self)

    def say(self, notification: dict[str, Any]) -> None:
        """Send a notification on the stream; after the last response there is none any more."""
        self.open()
        with self._lock:
            if self._has_ended or not self._has_room():
                return
            self._put(Kind.NOTIFICATION, notification, None)
        self._submit(self)

    def ask(self, question: Question) -> None:
        """Send a request to the client on the stream."""
        self.open()
        message = {
            "jsonrpc": "2.0",
            "id": question.request_id,
            "method": question.method,
            "params": question.params,
        }
        with self._lock:
            self.has_asked = True
            self._batch.questions.append(question)
            self._put(Kind.REQUEST, message, None)
        self._submit(self)

    def end(self, call: Call, state: str, response: bytes, *, last: bool = True) -> None:
        """End a call; ``last`` closes the stream.

        Without rows there is nothing to end: the response is the caller's to send.
        """
        with self._lock:
            self._calls.remove(call)
            self._has_ended = last
            if not self._open:
                return
            self._batch.ended[call] = state
            if self.durable:
                self._append(Kind.RESPONSE, response.decode(), call)
            self._batch.closes = last
        self._submit(self)

    def take(self) -> Batch:
        """Return what is to be written, and begin anew. Called by the outbox."""
        with self._lock:
            batch, self._batch = self._batch, Batch(self)
            batch.next_seq = self._next
        return batch

    def give_back(self, batch: Batch) -> None:
        """Put first again what could not be written now."""
        with self._lock:
            later = self._batch
            batch.opens = batch.opens or later.opens
            batch.begun += later.begun
            batch.ended |= later.ended
            batch.messages += later.messages
            batch.questions += later.questions
            batch.closes = batch.closes or later.closes
            self._batch = batch

    def _has_room(self) -> bool:
        """Return whether there is room for a notification; for a request or response there is."""
        settings = get_settings()
        if self._next <= settings.queue_messages and self._bytes <= settings.queue_bytes:
            return True
        if not self._is_full:
            self._is_full = True
            logger.warning("A call says too much: its notifications are dropped from here on")
        return False

    def _put(self, kind: str, message: dict[str, Any], call: Call | None) -> None:
        self._append(kind, encode(message).decode(), call)

    def _append(self, kind: str, body: str, call: Call | None) -> None:
        self._batch.messages.append((Message(self._next, kind, body), call))
        self._next += 1
        self._bytes += len(body)
