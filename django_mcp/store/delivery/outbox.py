"""The outgoing queue: one row per message, addressed to one stream, in an order all agree on.

A POST's stream is written by one process, which numbers in memory; the number's uniqueness fences
whoever ends the call after that process has died. A session's own stream has many writers: each
takes its numbers from the stream's row and holds it until it commits, so that the order of commits
is the order of numbers, and a reader that goes on from one misses nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import Error, IntegrityError, transaction
from django.db.models import F, QuerySet

from ...clock import DatabaseNow
from ...conf import get_settings
from ...models import OutgoingMessage, PendingRequest, Stream
from ..database import alias, has_collided, is_locked, is_outage, with_retries
from ..parent_rows import lock_live_sessions
from .records import CallRecord, WriteResult
from .request_rows import call_row, early_cancellations, end_questions, question_row
from .stream_writer import WriteBatch

State = PendingRequest.State

ATTEMPTS: Final = 10
"""After so many attempts, what a database that is there does not take is left out; after as many
more without it, the calls are given up.
"""
STATEMENT_CHARACTERS: Final = 1024 * 1024
"""About how many characters one INSERT has at most, but for a message that has more by itself.

MySQL takes 16 MiB by default (max_allowed_packet).
"""


@dataclass(frozen=True, slots=True)
class Process:
    """Who writes, as the rows of its calls name it."""

    id: str
    channel: str


def write_batches(batches: Sequence[WriteBatch], process: Process) -> list[WriteResult | Exception]:
    """Write what several POSTs want written in one transaction; if that fails, each in its own.

    What cannot be written now is answered with the error that says why.
    """
    unsure = [batch for batch in batches if batch.is_unsure]
    try:
        written: dict[WriteBatch, WriteResult | Exception] = {
            batch: _find_written(batch, process) for batch in unsure
        }
    except Error as error:
        return [error] * len(batches)
    fresh = [batch for batch in batches if not batch.is_unsure]
    written.update(zip(fresh, _write_together(fresh, process), strict=True))
    return [written[batch] for batch in batches]


def _find_written(batch: WriteBatch, process: Process) -> WriteResult | Exception:
    """Find out whether a batch was committed, although the answer never came; if not, write it."""
    begun = _pending().filter(pk__in=[call.id for call in batch.begun])
    numbers = [message.seq for message, _ in batch.messages]
    rows = OutgoingMessage.objects.using(alias()).filter(stream=batch.writer.id, seq__in=numbers)
    stored = dict(rows.values_list("seq", "body"))
    own = [message for message, _ in batch.messages if stored.get(message.seq) == message.body]
    if not own and not begun.exists():
        # Also where all that it did was to end calls without a stream: ended twice is ended once.
        return _write_alone(batch, process)
    written = WriteResult(messages=own)
    if batch.begun and batch.writer.session_id:
        _find_cancelled([(batch, written)])
    return written


def _write_together(
    batches: Sequence[WriteBatch], process: Process
) -> Sequence[WriteResult | Exception]:
    if not batches:
        return []
    try:
        return _write(batches, process)
    except Error as error:
        if is_locked(error):
            return [error] * len(batches)
        if is_outage(error):
            for batch in batches:
                batch.is_unsure = True
            return [error] * len(batches)
    except Exception:
        pass  # a value that some column has no form for: that is one batch's, and not the others'
    return [_write_alone(batch, process) for batch in batches]


def _write_alone(batch: WriteBatch, process: Process) -> WriteResult | Exception:
    """Write a batch, by itself, into a database that is known to answer."""
    try:
        (written,) = _write([batch], process)
    except IntegrityError:
        # Numbers that are taken: somebody has ended these calls, as those of a dead process.
        return WriteResult(stream_has_ended=True)
    except Error as error:
        batch.is_unsure = batch.is_unsure or is_outage(error)
        batch.attempts += not has_collided(error)
        return error
    except Exception as error:
        batch.attempts = ATTEMPTS  # the next time, it is no other
        return error
    return written


def write_notifications(stream: uuid.UUID, bodies: Sequence[str]) -> str | None:
    """Queue notifications on a session's own stream; return the channel of its reader.

    ``None`` says that nothing was queued: the stream is closed, or has no room until its client
    has read what is there.
    """
    return with_retries(lambda: _write_notifications(stream, bodies))


def _write_notifications(stream: uuid.UUID, bodies: Sequence[str]) -> str | None:
    count, room = len(bodies), get_settings().queue_messages
    with transaction.atomic(using=alias()):
        rows = _streams().filter(pk=stream, closed=None)
        free = rows.filter(next_seq__lte=F("delivered") + 1 + room - count)
        if not free.update(next_seq=F("next_seq") + count):
            return None
        following, reader = rows.values_list("next_seq", "reader").get()
        _insert_messages(
            OutgoingMessage(
                stream_id=stream,
                seq=following - count + index,
                kind=OutgoingMessage.Kind.NOTIFICATION,
                body=body,
            )
            for index, body in enumerate(bodies)
        )
    return str(reader)


def _write(batches: Sequence[WriteBatch], process: Process) -> list[WriteResult]:
    with transaction.atomic(using=alias()):
        written = [WriteResult() for _ in batches]
        pairs = list(zip(batches, written, strict=True))
        # Parents first, and always in this order: sessions, requests, streams, then new rows.
        _lock_sessions(pairs)
        for batch, each in pairs:
            each.ended_elsewhere = [] if each.stream_has_ended else _end_calls(batch)
            if not (each.stream_has_ended or _advance(batch)):
                each.stream_has_ended = True
                each.is_deleted = not _streams().filter(pk=batch.writer.id).exists()
        living = [(batch, each) for batch, each in pairs if not each.stream_has_ended]
        _insert(living, process)
    return written


def _lock_sessions(pairs: Sequence[tuple[WriteBatch, WriteResult]]) -> None:
    needed = {
        batch.writer.session_id
        for batch, _ in pairs
        if batch.writer.session_id and (batch.begun or batch.questions)
    }
    if not needed:
        return
    ended = needed - lock_live_sessions(needed)
    for batch, written in pairs:
        enters = batch.begun or batch.questions
        if enters and batch.writer.session_id in ended:
            # A call that has rows already ends in them: somebody waits for that.
            written.stream_has_ended = batch.opens or not batch.ended
            batch.questions = []
    _find_cancelled([pair for pair in pairs if pair[0].begun and pair[0].writer.session_id])


def _find_cancelled(pairs: Sequence[tuple[WriteBatch, WriteResult]]) -> None:
    """Find calls that were cancelled before they had rows: the cancellation left one of its own."""
    if not pairs:
        return
    early = early_cancellations().filter(
        session__in={batch.writer.session_id for batch, _ in pairs},
        request_id__in={call.request_text for batch, _ in pairs for call in batch.begun},
    )
    found = early.annotate(now=DatabaseNow()).values_list(
        "session_id", "request_id", "created", "now"
    )
    ages = [(str(session), request, now - created) for session, request, created, now in found]
    for batch, written in pairs:
        session = batch.writer.session_id
        for call in batch.begun:
            own = [age for s, request, age in ages if (s, request) == (session, call.request_text)]
            if any(age < call.age for age in own):
                written.cancelled.append(call)


def _end_calls(batch: WriteBatch) -> list[CallRecord]:
    """End calls that have rows by compare-and-set; return those that somebody else has ended."""
    begun = set(batch.begun)
    lost = []
    for call, state in batch.ended.items():
        if call in begun:
            continue
        running = _pending().filter(pk=call.id, state=State.RUNNING)
        if not running.update(state=state, ended=DatabaseNow()):
            lost.append(call)
    if batch.writer.has_asked and batch.ended:
        end_questions([call.id for call in batch.ended])
    return lost


def _advance(batch: WriteBatch) -> bool:
    """Move the stream's row on to the next free number; return whether it is open."""
    writer = batch.writer
    if batch.opens or not writer.durable or not (batch.messages or batch.closes):
        return True
    rows = _streams().filter(pk=writer.id, closed=None)
    values: dict[str, Any] = {"next_seq": batch.next_seq}
    if batch.closes:
        values["closed"] = DatabaseNow()
    if rows.filter(epoch=writer.epoch).update(**values):
        return True
    if not rows.update(**values):
        return False
    # Another connection has taken the stream over, at whatever worker: it is the one to wake.
    writer.epoch, writer.reader_channel = (
        _streams().values_list("epoch", "reader").get(pk=writer.id)
    )
    return True


def _insert(pairs: Sequence[tuple[WriteBatch, WriteResult]], process: Process) -> None:
    Stream.objects.using(alias()).bulk_create(
        _stream(batch, process) for batch, _ in pairs if batch.opens and batch.writer.durable
    )
    requests = [row for batch, _ in pairs for row in _requests(batch, process)]
    _pending().bulk_create(requests)
    for batch, written in pairs:
        written.messages = [
            each for each, call in batch.messages if call not in written.ended_elsewhere
        ]
    _insert_messages(
        OutgoingMessage(
            stream_id=batch.writer.id, seq=message.seq, kind=message.kind, body=message.body
        )
        for batch, written in pairs
        for message in written.messages
    )


def _stream(batch: WriteBatch, process: Process) -> Stream:
    writer = batch.writer
    assert writer.session_id is not None
    writer.reader_channel = process.channel
    return Stream(
        id=writer.id,
        session_id=writer.session_id,
        next_seq=batch.next_seq,
        epoch=writer.epoch,
        reader=writer.reader_channel,
        closed=DatabaseNow() if batch.closes else None,
    )


def _requests(batch: WriteBatch, process: Process) -> list[PendingRequest]:
    owned = {"owner": process.id, "channel": process.channel}
    calls = [
        call_row(call, batch.writer, state=batch.ended.get(call, State.RUNNING), **owned)
        for call in batch.begun
    ]
    # Of a call that has ended by now nobody waits for an answer.
    asked = [each for each in batch.questions if each.call not in batch.ended]
    return calls + [question_row(each, batch.writer, **owned) for each in asked]


def _insert_messages(rows: Iterable[OutgoingMessage]) -> None:
    part: list[OutgoingMessage] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row.body)
        if size > STATEMENT_CHARACTERS:
            OutgoingMessage.objects.using(alias()).bulk_create(part)
            part, size = [], 0
    OutgoingMessage.objects.using(alias()).bulk_create(part)


def _streams() -> QuerySet[Stream]:
    return Stream.objects.using(alias())


def _pending() -> QuerySet[PendingRequest]:
    return PendingRequest.objects.using(alias())
