"""POSTs in flight: what their calls say and how they end, on the way into the database.

A POST's stream has one writer, the process that runs its calls. It numbers the messages in memory
and hands them to the outbox, which keeps them in batches. A call that says nothing and ends soon
never gets here. One that ends within a moment of its first word gets here and has no rows: nothing
of it has been shown that its client might come back for.

Who writes what of a :class:`StreamWriter`:

=====================  ==============================  ====================================
attribute              written by                      when
=====================  ==============================  ====================================
``wants_rows``         the thread of the call          it speaks, lasts, or is to be reached
``has_rows``           the ledger's thread             its first batch is in the database
``stored``             the ledger's thread             a batch is in the database
``epoch``,             the ledger's thread             the row is made, or found again after
``reader_channel``                                     an answer of the database was lost
``write_at``           the thread of the call; the     what it says may wait; it was taken
                       ledger's as it takes a batch    to be written
=====================  ==============================  ====================================
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ...conf import get_settings
from ...current_partition import current_partition
from ...ids import NewId
from ...protocol.errors import cancelled, internal_error
from ...protocol.messages import encode, error_response
from .records import (
    CallRecord,
    MessageKind,
    QuestionRecord,
    StoredMessage,
    WriteResult,
    ignore_result,
)

if TYPE_CHECKING:
    from ...auth import Principal

logger = logging.getLogger("django_mcp.store")

FIRST_WRITE_DELAY_SECONDS: Final = 0.02
"""Seconds from a call's first word, in which it may end without having become rows."""
UNWRITTEN_BYTES: Final = 65_536
"""Bytes that it may have said then: about what a connection takes that its client does not read.

Of more, a slow client may have to come back for the rest.
"""


def bounded(notification: dict[str, Any]) -> bytes | None:
    """Return a notification as it is sent; ``None``, and a line in the log, if it is too large."""
    body = encode(notification)
    if len(body) <= get_settings().max_result_bytes:
        return body
    logger.warning("A notification has %d bytes, and is dropped; see MAX_RESULT_BYTES", len(body))
    return None


def has_room(waiting: int, size: int) -> bool:
    """Return whether one more may wait where so many do; all together have so many bytes."""
    settings = get_settings()
    return waiting < settings.queue_messages and size <= settings.queue_bytes


@dataclass(slots=True, eq=False)
class WriteBatch:
    """What one POST has to write, in one transaction with others."""

    writer: StreamWriter
    opens: bool = False
    begun: list[CallRecord] = field(default_factory=list)
    ended: dict[CallRecord, str] = field(default_factory=dict)
    messages: list[tuple[StoredMessage, CallRecord | None]] = field(default_factory=list)
    """Messages; a response is written only if its call had not been ended by somebody else."""
    questions: list[QuestionRecord] = field(default_factory=list)
    closes: bool = False
    next_seq: int = 1
    is_unsure: bool = False
    """Whether it may have been written already: the database's answer has not come."""
    attempts: int = 0
    """How often a database that can be reached has not taken it."""
    is_reduced: bool = False
    """Whether what it may have refused has been left out."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.opens or self.begun or self.ended or self.messages or self.closes)


class StreamWriter:
    """Collects what the calls of one POST send, numbers it, and has the ledger write it in batches.

    It is safe to use from any thread.

    ``durable`` says that the client can come back for what is said: it belongs to a session, and
    the answer may be a stream. ``reader_channel`` wakes the process that shows the stream.
    """

    id = NewId()

    def __init__(
        self,
        *,
        server: str,
        principal: Principal,
        session_id: str | None,
        durable: bool,
        submit: Callable[[StreamWriter], None],
    ) -> None:
        self.server = server
        self.principal = principal
        self.session_id = session_id
        self.durable = durable
        self.epoch = 1
        self.reader_channel = ""
        self.has_asked = False
        self.has_rows = False
        """Whether it has rows, as far as this process knows."""
        self.stored = 0
        """The last number of its messages that is known to be a row."""
        self.failing_since: float | None = None
        """Since when, by the monotonic clock, the database does not take what it says."""
        self.on_written: Callable[[WriteResult], object] = ignore_result
        """Called by the ledger with what has become of what was written."""
        self.write_at = 0.0
        """When, by the monotonic clock, what it has to write is to be written; 0 for at once."""
        self.unwritten: list[bytes] = []
        """What its calls have said, if they had ended before it became rows."""
        self.partition = current_partition()
        """Where its rows are."""
        self._submit = submit
        self._lock = threading.Lock()
        self._calls: list[CallRecord] = []
        self._ended: list[tuple[CallRecord, str, bytes]] = []
        """Calls of a batch that have ended while it has no rows, with their responses."""
        self._wants_rows = False
        self._next_seq = 1
        self._bytes = 0
        self._is_full = False
        self._has_ended = False
        self._registering = False
        self._next_batch: WriteBatch | None = None
        self._unsure: WriteBatch | None = None

    @property
    def wants_rows(self) -> bool:
        """Whether it has rows, or is about to have them."""
        return self._wants_rows

    @property
    def has_ended(self) -> bool:
        """Whether its last call has ended."""
        return self._has_ended

    def begin(self, call: CallRecord) -> None:
        """Note a call, before anything wants rows; it has one if the POST has."""
        self.partition = call.partition  # it may be made in whatever thread
        with self._lock:
            self._calls.append(call)

    @contextmanager
    def registering(self) -> Iterator[None]:
        """Let somebody else write the rows of what has begun; if that fails, there are none.

        What ends meanwhile is ended when the rows are there. What has ended gets none: raises
        :class:`MCPError`.
        """
        with self._lock:
            if self._has_ended:
                raise cancelled()
            self._wants_rows = self._registering = True
        try:
            yield
        except BaseException:
            self._wants_rows = self._registering = False
            raise
        with self._lock:
            self._registering = False
        self._submit(self)

    def want_rows(self) -> None:
        """Ask for rows, at once and from now on: a call lasts, or is to be reached."""
        with self._lock:
            if self._has_ended or (self._wants_rows and not self.write_at):
                return
            self._begin_rows()
            self.write_at = 0.0
        self._submit(self)

    def notify(self, notification: dict[str, Any]) -> None:
        """Send a notification on the stream; after the last response there is none any more."""
        body = bounded(notification)
        with self._lock:
            if self._has_ended:
                return
            if not self._wants_rows:
                self._begin_rows()
                self.write_at = time.monotonic() + FIRST_WRITE_DELAY_SECONDS
            if body is not None and self._has_room(len(body)):
                self._append(MessageKind.NOTIFICATION, body, None)
            if self._bytes > UNWRITTEN_BYTES:
                self.write_at = 0.0
        self._submit(self)

    def ask(self, question: QuestionRecord) -> bool:
        """Send a request to the client on the stream; return ``False`` if that has ended.

        Raises ``ValueError`` if it is too large.
        """
        message = {
            "jsonrpc": "2.0",
            "id": question.request_id,
            "method": question.method,
            "params": question.params,
        }
        body, limit = encode(message), get_settings().max_result_bytes
        if len(body) > limit:
            raise ValueError(f"The question has {len(body)} bytes, and at most {limit} are sent.")
        self.want_rows()
        with self._lock:
            if self._has_ended:
                return False
            self.has_asked = True
            self._batch().questions.append(question)
            self._append(MessageKind.REQUEST, body, None)
        self._submit(self)
        return True

    def end(self, call: CallRecord, state: str, response: bytes, *, last: bool = True) -> None:
        """End a call; ``last`` closes the stream.

        Without rows there is nothing to end: the response is the caller's to send, after what is
        in ``unwritten``.
        """
        with self._lock:
            self._calls.remove(call)
            self._has_ended = last
            if last and self._is_unwritten():
                self._withdraw()
            if not self._wants_rows:
                if not last:
                    self._ended.append((call, state, response))
                return
            self._append_end(call, state, response)
            self._batch().closes = last
            too_early = self._registering
        if not too_early:
            self._submit(self)

    def take(self) -> WriteBatch:
        """Return what is to be written next, and begin anew. Called by the ledger."""
        with self._lock:
            if self._unsure is not None:
                batch, self._unsure = self._unsure, None
                return batch
            batch, self._next_batch = self._batch(), None
            batch.next_seq = self._next_seq
            self.write_at = 0.0
        return batch

    def put_back(self, batch: WriteBatch) -> None:
        """Put first again what could not be written now.

        What may have been written nevertheless is put apart, for it is looked for as it was.
        """
        with self._lock:
            if batch.is_unsure:
                self._unsure = batch
                return
            later = self._batch()
            batch.begun += later.begun
            batch.ended |= later.ended
            batch.messages += later.messages
            batch.questions += later.questions
            batch.closes = batch.closes or later.closes
            self._next_batch = batch

    def unwritten_end(self) -> list[StoredMessage]:
        """Return what is not written yet of a POST whose calls have ended; before that, nothing."""
        with self._lock:
            batches = [batch for batch in (self._unsure, self._next_batch) if batch is not None]
            if not any(batch.closes for batch in batches):
                return []
            return [each for batch in batches for each, _ in batch.messages]

    def drop_contents(self, batch: WriteBatch) -> None:
        """Leave out of ``batch`` what the database does not take, but the end of each request."""
        logger.error("The database does not take what a call has said; it is left out")
        batch.is_reduced = True
        batch.questions = []
        batch.messages = [
            (replace(each, body=_without_answer(call)), call)
            for each, call in batch.messages
            if call
        ]

    def _begin_rows(self) -> None:
        if self._wants_rows:
            return
        self._wants_rows = self._batch().opens = True
        for call, state, response in self._ended:
            self._batch().begun.append(call)
            self._append_end(call, state, response)
        self._ended.clear()
        self._batch().begun += self._calls

    def _append_end(self, call: CallRecord, state: str, response: bytes) -> None:
        self._batch().ended[call] = state
        if self.durable:
            self._append(MessageKind.RESPONSE, response, call)

    def _is_unwritten(self) -> bool:
        """Return whether nobody has begun to write its rows, nor can want them later."""
        is_unbegun = self._next_batch is not None and self._next_batch.opens
        return is_unbegun and not self.has_asked and self._bytes <= UNWRITTEN_BYTES

    def _withdraw(self) -> None:
        """Want no rows after all, and hand back what was said."""
        said = [each for each, _ in self._batch().messages if each.kind == MessageKind.NOTIFICATION]
        self.unwritten = [each.body.encode() for each in said]
        self._next_batch, self._wants_rows = None, False

    def _batch(self) -> WriteBatch:
        """Return what is to be written next, to add to it. A call that ends soon never has any."""
        if self._next_batch is None:
            self._next_batch = WriteBatch(self)
        return self._next_batch

    def _has_room(self, size: int) -> bool:
        """Return whether there is room for a notification; for a request or response there is."""
        if has_room(self._next_seq - 1, self._bytes + size):
            return True
        if not self._is_full:
            self._is_full = True
            logger.warning("A call says too much: its notifications are dropped from here on")
        return False

    def _append(self, kind: str, body: bytes, call: CallRecord | None) -> None:
        self._batch().messages.append((StoredMessage(self._next_seq, kind, body.decode()), call))
        self._next_seq += 1
        self._bytes += len(body)


def _without_answer(call: CallRecord) -> str:
    error = internal_error("The answer could not be kept")
    return encode(error_response(call.request_id, error)).decode()
