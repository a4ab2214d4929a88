"""Streams as their readers see them: open one, take one over, read on from a number."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest

from ...models import OutgoingMessage, Session, Stream
from ...protocol.errors import SessionNotFound
from ...protocol.lifecycle import SessionInfo
from ..database import alias, in_batches, with_retries
from ..parent_rows import LIVE, lock_live_sessions
from .records import StoredMessage

PAGE: Final = 100
"""Most messages that are read at once, and most streams of which they are read."""


def find(session: SessionInfo, stream: uuid.UUID) -> Stream | None:
    """Return a stream of this session; another session's is as good as unknown."""
    return _streams().filter(pk=stream, session__pk=session.id).first()


def open_own(session: SessionInfo) -> Stream:
    """Return the session's own stream, which is made when its client first asks for it."""
    rows = _streams().filter(session__pk=session.id, own=True)
    found = with_retries(rows.first)
    if found is not None:
        return found
    try:
        return with_retries(lambda: _create_own(session))
    except IntegrityError:
        return rows.get()  # another connection of the session has just made it


def take_over(stream: Stream, reader: str) -> str:
    """Make this connection the one that delivers; return the channel of the one before."""
    return with_retries(lambda: _take_over(stream, reader))


def tell_changes_again(stream: Stream) -> None:
    """Let everything that has changed since the session began come on its own stream once more."""
    sessions = Session.objects.using(alias()).filter(pk=stream.session_id)
    stream.changes_seen = with_retries(sessions.values_list("changes_seen", flat=True).get)
    rows = _streams().filter(pk=stream.pk, epoch=stream.epoch)
    with_retries(lambda: rows.update(changes_seen=stream.changes_seen))


def claim(stream: uuid.UUID, epoch: int, reader: str) -> bool:
    """Go on delivering for a newer connection that has gone; ``epoch`` is the one it had."""
    rows = _streams().filter(pk=stream, epoch=epoch, reader="", closed=None)
    return bool(rows.update(epoch=F("epoch") + 1, reader=reader))


def leave(stream: uuid.UUID, epoch: int) -> None:
    """Say that the connection has gone, unless another one delivers anyway."""
    _streams().filter(pk=stream, epoch=epoch).update(reader="")


def mark_delivered(stream: uuid.UUID, epoch: int, seq: int) -> bool:
    """Note that messages up to ``seq`` are being sent; false if another connection delivers.

    Before they are sent, so that no other connection sends them a second time. A client that lost
    them on the way asks for them by the last number that it has seen.
    """
    rows = _streams().filter(pk=stream, epoch=epoch, closed=None)
    return bool(rows.update(delivered=Greatest(F("delivered"), seq)))


def trim(stream: uuid.UUID, seq: int) -> None:
    """Forget messages up to ``seq``, which nobody will come back for."""
    # The number first: whoever asks for what is being deleted is told so.
    rows = _streams().filter(pk=stream, trimmed__lt=seq)
    if not rows.update(trimmed=seq):
        return
    messages = OutgoingMessage.objects.using(alias())
    keys = list(messages.filter(stream=stream, seq__lte=seq).values_list("pk", flat=True))
    # By key: a range would lock the gap behind it on MySQL, where another stream begins.
    for batch in in_batches(keys):
        messages.filter(pk__in=batch).delete()


def positions(streams: Iterable[uuid.UUID]) -> dict[uuid.UUID, Stream]:
    """Return how far streams are; those of ended sessions that nobody will write to are closed."""
    rows = _streams().filter(pk__in=list(streams)).annotate(session_state=F("session__state"))
    found: dict[uuid.UUID, Stream] = {}
    for row in rows:
        found[row.pk] = row
        if row.own and row.session_state not in LIVE:
            row.closed = row.closed or row.created
    return found


def messages_after(cursors: Mapping[uuid.UUID, int]) -> dict[uuid.UUID, list[StoredMessage]]:
    """Return the next messages of each stream after a number, a page of them in all."""
    wanted = reduce(or_, (Q(stream=stream, seq__gt=seq) for stream, seq in cursors.items()))
    rows = OutgoingMessage.objects.using(alias()).filter(wanted).order_by("stream", "seq")
    found: dict[uuid.UUID, list[StoredMessage]] = defaultdict(list)
    for stream, seq, kind, body in rows.values_list("stream_id", "seq", "kind", "body")[:PAGE]:
        found[stream].append(StoredMessage(seq, kind, body))
    return found


def _create_own(session: SessionInfo) -> Stream:
    with transaction.atomic(using=alias()):
        if not lock_live_sessions([session.id]):
            raise SessionNotFound
        sessions = Session.objects.using(alias()).filter(pk=session.id)
        seen = sessions.values_list("changes_seen", flat=True).get()
        return _streams().create(session_id=session.id, own=True, changes_seen=seen)


def _take_over(stream: Stream, reader: str) -> str:
    with transaction.atomic(using=alias()):
        rows = _streams().filter(pk=stream.pk)
        # Written first: so nobody else moves between what is read and what is set.
        rows.update(epoch=F("epoch") + 1)
        stream.epoch, previous, stream.delivered = rows.values_list(
            "epoch", "reader", "delivered"
        ).get()
        rows.update(reader=reader)
    return str(previous)


def _streams() -> QuerySet[Stream]:
    return Stream.objects.using(alias())
