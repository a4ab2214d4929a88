"""The outgoing queue: one row per message, addressed to one stream, in an order all agree on.

A POST's stream is written by one process, which numbers in memory; the number's uniqueness fences
whoever settles the call after that process has died. A session's own stream has many writers: each
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
from ...models import OutgoingMessage, PendingRequest, Session, Stream
from ..database import alias, has_collided, insist, is_locked, is_outage
from ..requests.pending import call_row, early_cancellations, end_questions, question_row
from ..sessions.liveness import LIVE
from ..sessions.session_rows import lock_in_order
from .records import Batch, Call, Kept

State = PendingRequest.State

STATEMENT_SIZE: Final = 1024 * 1024
"""About how many characters one INSERT has at most, but for a message that has more by itself.

MySQL takes 16 MiB by default (max_allowed_packet).
"""


@dataclass(frozen=True, slots=True)
class Process:
    """Who writes, as the rows of its calls name it."""

    id: str
    channel: str


def keep(batches: Sequence[Batch], process: Process) -> list[Kept | Error]:
    """Write what several POSTs want kept in one transaction; if that fails, each in its own.

    What cannot be written now is answered with the error that says why.
    """
    unsure = [batch for batch in batches if batch.unsure]
    try:
        kept: dict[Batch, Kept | Error] = {batch: _recall(batch, process) for batch in unsure}
    except Error as error:
        return [error] * len(batches)
    fresh = [batch for batch in batches if not batch.unsure]
    kept.update(zip(fresh, _keep_together(fresh, process), strict=True))
    return [kept[batch] for batch in batches]


def _recall(batch: Batch, process: Process) -> Kept | Error:
    """Find out whether a batch was committed, although the answer never came; if not, write it."""
    begun = _pending().filter(pk__in=[call.id for call in batch.begun])
    numbers = [message.seq for message, _ in batch.messages]
    rows = OutgoingMessage.objects.using(alias()).filter(stream=batch.post.id, seq__in=numbers)
    stored = dict(rows.values_list("seq", "body"))
    own = [message for message, _ in batch.messages if stored.get(message.seq) == message.body]
    if not own and not begun.exists():
        # Also where all that it did was to end calls without a stream: ended twice is ended once.
        return _keep_alone(batch, process)
    kept = Kept(messages=own)
    if batch.begun and batch.post.session_id:
        _find_cancelled([(batch, kept)])
    return kept


def _keep_together(batches: Sequence[Batch], process: Process) -> Sequence[Kept | Error]:
    if not batches:
        return []
    try:
        return _keep(batches, process)
    except Error as error:
        if is_locked(error):
            return [error] * len(batches)
        if is_outage(error):
            for batch in batches:
                batch.unsure = True
            return [error] * len(batches)
    return [_keep_alone(batch, process) for batch in batches]


def _keep_alone(batch: Batch, process: Process) -> Kept | Error:
    """Write a batch, by itself, into a database that is known to answer."""
    try:
        (kept,) = _keep([batch], process)
    except IntegrityError:
        # Numbers that are taken: somebody has settled these calls, as those of a dead process.
        return Kept(lost=True)
    except Error as error:
        batch.unsure = batch.unsure or is_outage(error)
        batch.refusals += not has_collided(error)
        return error
    return kept


def put(stream: uuid.UUID, bodies: Sequence[str]) -> str | None:
    """Queue notifications on a session's own stream; return the channel of its reader.

    ``None`` says that nothing was queued: the stream is closed, or has no room until its client
    has read what is there.
    """
    return insist(lambda: _put(stream, bodies))


def _put(stream: uuid.UUID, bodies: Sequence[str]) -> str | None:
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


def _keep(batches: Sequence[Batch], process: Process) -> list[Kept]:
    with transaction.atomic(using=alias()):
        kept = [Kept() for _ in batches]
        pairs = list(zip(batches, kept, strict=True))
        # Parents first, and always in this order: sessions, requests, streams, then new rows.
        _enter_sessions(pairs)
        for batch, each in pairs:
            each.settled = [] if each.lost else _end_calls(batch)
            if not (each.lost or _advance(batch)):
                each.lost, each.gone = True, not _streams().filter(pk=batch.post.id).exists()
        living = [(batch, each) for batch, each in pairs if not each.lost]
        _insert(living, process)
    return kept


def _enter_sessions(pairs: Sequence[tuple[Batch, Kept]]) -> None:
    entering = {
        batch.post.session_id
        for batch, _ in pairs
        if batch.post.session_id and (batch.begun or batch.questions)
    }
    if not entering:
        return
    lock_in_order(entering)
    sessions = Session.objects.using(alias()).filter(pk__in=sorted(entering), state__in=LIVE)
    ended: set[str] = set()
    if sessions.update(last_active=DatabaseNow()) != len(entering):
        ended = entering - {str(pk) for pk in sessions.values_list("pk", flat=True)}
    for batch, kept in pairs:
        enters = batch.begun or batch.questions
        if enters and batch.post.session_id in ended:
            # A call that has rows already ends in them: somebody waits for that.
            kept.lost = batch.opens or not batch.ended
            batch.questions = []
    _find_cancelled([pair for pair in pairs if pair[0].begun and pair[0].post.session_id])


def _find_cancelled(pairs: Sequence[tuple[Batch, Kept]]) -> None:
    """Find calls that were cancelled before they had rows: the cancellation left one of its own."""
    if not pairs:
        return
    early = early_cancellations().filter(
        session__in={batch.post.session_id for batch, _ in pairs},
        request_id__in={call.request_text for batch, _ in pairs for call in batch.begun},
    )
    found = early.annotate(now=DatabaseNow()).values_list(
        "session_id", "request_id", "created", "now"
    )
    ages = [(str(session), request, now - created) for session, request, created, now in found]
    for batch, kept in pairs:
        session = batch.post.session_id
        for call in batch.begun:
            own = [age for s, request, age in ages if (s, request) == (session, call.request_text)]
            if any(age < call.age for age in own):
                kept.cancelled.append(call)


def _end_calls(batch: Batch) -> list[Call]:
    """End calls that have rows by compare-and-set; return those that somebody else has ended."""
    begun = set(batch.begun)
    lost = []
    for call, state in batch.ended.items():
        if call in begun:
            continue
        running = _pending().filter(pk=call.id, state=State.RUNNING)
        if not running.update(state=state, ended=DatabaseNow()):
            lost.append(call)
    if batch.post.has_asked and batch.ended:
        end_questions([call.id for call in batch.ended])
    return lost


def _advance(batch: Batch) -> bool:
    """Move the stream's row on to the next free number; return whether it is open."""
    post = batch.post
    if batch.opens or not post.durable or not (batch.messages or batch.closes):
        return True
    rows = _streams().filter(pk=post.id, closed=None)
    values: dict[str, Any] = {"next_seq": batch.next_seq}
    if batch.closes:
        values["closed"] = DatabaseNow()
    if rows.filter(epoch=post.epoch).update(**values):
        return True
    if not rows.update(**values):
        return False
    # Another connection has taken the stream over, at whatever worker: it is the one to ring.
    post.epoch, post.reader = _streams().values_list("epoch", "reader").get(pk=post.id)
    return True


def _insert(pairs: Sequence[tuple[Batch, Kept]], process: Process) -> None:
    Stream.objects.using(alias()).bulk_create(
        _stream(batch, process) for batch, _ in pairs if batch.opens and batch.post.durable
    )
    requests = [row for batch, _ in pairs for row in _requests(batch, process)]
    _pending().bulk_create(requests)
    for batch, kept in pairs:
        kept.messages = [each for each, call in batch.messages if call not in kept.settled]
    _insert_messages(
        OutgoingMessage(
            stream_id=batch.post.id, seq=message.seq, kind=message.kind, body=message.body
        )
        for batch, kept in pairs
        for message in kept.messages
    )


def _stream(batch: Batch, process: Process) -> Stream:
    post = batch.post
    assert post.session_id is not None
    post.reader = process.channel
    return Stream(
        id=post.id,
        session_id=post.session_id,
        next_seq=batch.next_seq,
        epoch=post.epoch,
        reader=post.reader,
        closed=DatabaseNow() if batch.closes else None,
    )


def _requests(batch: Batch, process: Process) -> list[PendingRequest]:
    owned = {"owner": process.id, "channel": process.channel}
    calls = [
        call_row(call, batch.post, state=batch.ended.get(call, State.RUNNING), **owned)
        for call in batch.begun
    ]
    # Of a call that has ended by now nobody waits for an answer.
    asked = [each for each in batch.questions if each.call not in batch.ended]
    return calls + [question_row(each, batch.post, **owned) for each in asked]


def _insert_messages(rows: Iterable[OutgoingMessage]) -> None:
    part: list[OutgoingMessage] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row.body)
        if size > STATEMENT_SIZE:
            OutgoingMessage.objects.using(alias()).bulk_create(part)
            part, size = [], 0
    OutgoingMessage.objects.using(alias()).bulk_create(part)


def _streams() -> QuerySet[Stream]:
    return Stream.objects.using(alias())


def _pending() -> QuerySet[PendingRequest]:
    return PendingRequest.objects.using(alias())
