"""What is kept of a POST, before it is rows: calls, messages and questions, batch by batch."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ...ids import NewId, new_id
from ...models import OutgoingMessage, PendingRequest
from ...protocol.messages import RequestId, encode

if TYPE_CHECKING:
    from .stream_writer import Post

Kind = OutgoingMessage.Kind
State = PendingRequest.State


@dataclass(frozen=True, slots=True)
class Message:
    """A message in its place on a stream."""

    seq: int
    kind: str
    body: str
    """The JSON-RPC message, a single line of JSON."""


@dataclass(eq=False)
class Call:
    """A request from the client in flight. Its own key, not the request's id, identifies it."""

    id = NewId()
    request_id: RequestId
    method: str
    name: str
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


@dataclass(slots=True, eq=False)
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
    unsure: bool = False
    """Whether it may have been kept already: the database's answer has not come."""
    refusals: int = 0
    """How often a database that can be reached has not taken it."""
    is_abridged: bool = False
    """Whether what it may have refused has been left out."""

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
    gone: bool = False
    """The stream's row is no more, so that nobody else can have ended it either."""


def unheard(kept: Kept) -> None:
    """Take no note: what nobody waits for, its listener need not hear."""
