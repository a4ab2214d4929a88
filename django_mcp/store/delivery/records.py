"""What becomes rows of a POST: calls, messages and questions, batch by batch."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ...current_partition import current_partition
from ...ids import NewId, new_id
from ...models import OutgoingMessage, PendingRequest
from ...protocol.messages import RequestId, encode

MessageKind = OutgoingMessage.Kind
RequestState = PendingRequest.State


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message in its place on a stream."""

    seq: int
    kind: str
    body: str
    """The JSON-RPC message, a single line of JSON."""


class CallRecord:
    """A request from the client in flight. Its own key, not the request's id, identifies it."""

    id = NewId()

    def __init__(self, request_id: RequestId, method: str, name: str) -> None:
        """``name`` is the name or URI of what it asks for, or empty."""
        self.request_id = request_id
        self.method = method
        self.name = name
        self.started = time.monotonic()
        """By this process's clock; the row is dated by the database's."""
        self.partition = current_partition()
        """Where its rows are."""

    @property
    def age(self) -> timedelta:
        """How long it has been running."""
        return timedelta(seconds=time.monotonic() - self.started)

    @property
    def request_text(self) -> str:
        """The request's id as JSON, since ``1`` and ``"1"`` are two ids."""
        return encode(self.request_id).decode()


@dataclass(slots=True, eq=False)
class QuestionRecord:
    """A request to the client in flight."""

    call: CallRecord
    method: str
    params: dict[str, Any]
    seconds: float
    """How long its answer may take."""
    id: uuid.UUID = field(default_factory=new_id)
    has_timed_out: bool = False
    """Whether nobody waits for its answer any more, which may be before it is written."""

    @property
    def request_id(self) -> str:
        """Its JSON-RPC id, unique in the session: a swapped answer finds its own question."""
        return f"ask-{self.id.hex}"


@dataclass(slots=True)
class WriteResult:
    """What has become of a :class:`~django_mcp.store.delivery.stream_writer.WriteBatch`."""

    messages: list[StoredMessage] = field(default_factory=list)
    cancelled: list[CallRecord] = field(default_factory=list)
    """Calls that turned out to be cancelled before they had a row."""
    ended_elsewhere: list[CallRecord] = field(default_factory=list)
    """Calls that somebody else had ended."""
    stream_has_ended: bool = False
    """The session, or the stream, had ended: no message was written, but calls may have ended."""
    is_refused: bool = False
    """The database takes nothing of it, however often that was tried."""
    is_deleted: bool = False
    """The stream's row is no more, so that nobody else can have ended it either."""


def ignore_result(result: WriteResult) -> None:
    """Do nothing: nobody waits for it."""
