"""GET: the session's own stream, and streams that broke off, shown from where they did.

Under WSGI an open stream would hold a thread. There the rest of one is given in one piece.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from ..conf import get_settings
from ..models import PendingRequest, Stream
from ..principal import Principal
from ..protocol import sse
from ..protocol.errors import internal_error
from ..protocol.lifecycle import SessionInfo
from ..protocol.messages import encode, error_response
from ..protocol.topics import LISTS, Kind
from ..server.capabilities import FEATURES
from ..server.methods.resources import is_readable
from ..server.ports import Runner
from ..server.registry import MCPServer
from ..store.changes import change_log
from ..store.changes.fanout import OwnStream, fold, list_changes
from ..store.database import alias, available, insist
from ..store.delivery import outbox, stream_rows
from ..store.delivery.records import Message
from ..store.delivery.stream_readers import Reader, trim_delivered
from ..store.ledger import ledger
from . import replies, shutdown
from .connections import Connection, open_connections
from .http import Reply, Request
from .replies import Refused, refuse
from .streams import RETRY_MS, EventId, Mailbox, Shown, reader_into, resume

LAST_EVENT_ID: Final = "Last-Event-ID"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who listens, and to what."""

    principal: Principal
    session: SessionInfo
    server: MCPServer


async def listen(request: Request, visitor: Visitor, runner: Runner) -> Reply:
    """Answer a GET of a live session, on an event loop."""
    place = request.headers.get(LAST_EVENT_ID)
    if place is None:
        with _connecting(visitor, own=True) as connection:
            stream = await runner.blocking(_open_own, visitor.session)
            return _show(stream, stream.delivered, visitor, connection)
    found, row = await _located(place, visitor, runner)
    if (end := await _end(row, found, runner)) is not None:
        return end
    with _connecting(visitor, own=bool(row.own)) as connection:
        cursor = await _resume(row, found, visitor, runner)
        return _show(row, cursor, visitor, connection)


async def replay(request: Request, visitor: Visitor, runner: Runner) -> Reply:
    """Answer a GET that resumes a stream where none can be kept open: with what is there already.

    Its client comes back for the rest, here or where there is an event loop.
    """
    found, row = await _located(request.headers.get(LAST_EVENT_ID) or "", visitor, runner)
    if (end := await _end(row, found, runner)) is not None:
        return end
    cursor = await _resume(row, found, visitor, runner)
    messages = await runner.blocking(_fetch, row, cursor, visitor)
    events = [sse.event(each.body.encode(), str(EventId(row.pk, each.seq))) for each in messages]
    if visitor.session.revision.resumable_posts:
        events.insert(0, sse.priming(str(EventId(row.pk, cursor, row.epoch)), RETRY_MS))
    last = messages[-1].seq if messages else cursor
    if row.closed is None or last < row.next_seq - 1:
        events.append(sse.pause(RETRY_MS))
    return Reply(200, b"".join(events), replies.STREAMED)


def resumes(request: Request) -> bool:
    """Return whether a GET asks for the rest of a stream."""
    return request.headers.get(LAST_EVENT_ID) is not None


async def _located(place: str, visitor: Visitor, runner: Runner) -> tuple[EventId, Stream]:
    found = EventId.parse(place)
    row = None if found is None else await runner.blocking(_find, visitor.session, found)
    if found is None or row is None:
        raise _unknown()
    return found, row


async def _end(row: Stream, found: EventId, runner: Runner) -> Reply | None:
    """Return the reply to who asks for what cannot come any more; ``None`` where something can."""
    if row.own:
        return None
    if row.closed is not None and found.seq >= row.next_seq - 1:
        # What tells an EventSource not to come back (HTML, "Server-sent events"), and official
        # clients: they come back to a stream that is empty, and complain of an error.
        return replies.nothing_more()
    if found.seq < row.trimmed:
        return replies.events_of(await runner.blocking(_trimmed, row))
    return None


def _fetch(row: Stream, cursor: int, visitor: Visitor) -> list[Message]:
    """Return what comes next; of the session's own stream, only if nobody else delivers it."""
    with available():
        if row.own:
            trim_delivered(row)
            _fold_in(row, cursor, visitor)
        messages = insist(lambda: stream_rows.messages_after({row.pk: cursor}))[row.pk]
        if not row.own:
            return messages
        if messages and not stream_rows.mark_delivered(row.pk, row.epoch, messages[-1].seq):
            messages = []
        stream_rows.leave(row.pk, row.epoch)
    return messages


def _fold_in(row: Stream, cursor: int, visitor: Visitor) -> None:
    """Put on a session's own stream what has changed since somebody showed it last."""
    server = visitor.server
    reader = Reader(
        stream=row.pk,
        cursor=cursor,
        epoch=row.epoch,
        own=True,
        deliver=lambda messages: None,
        finish=lambda: None,
    )
    own = _own_stream(reader, visitor, row.changes_seen)
    fold([own], change_log.after({server.name: row.changes_seen}))


async def _resume(row: Stream, found: EventId, visitor: Visitor, runner: Runner) -> int:
    """Take a stream over; return the number after which it goes on."""
    cursor = found.seq
    if row.own and cursor < row.trimmed:
        # What is lost cannot be told any more; that something may have changed can.
        cursor = row.next_seq - 1
        await runner.blocking(outbox.put, row.pk, list_changes(_lists(visitor.server)))
    await runner.blocking(_take_over, row)
    return cursor


@contextmanager
def _connecting(visitor: Visitor, *, own: bool) -> Iterator[Connection]:
    """Count the connection that is about to be, and no longer if it comes to nothing."""
    session = visitor.session.id if own else None
    connection = open_connections.enter(visitor.principal.limit_key, waits=own, session=session)
    try:
        yield connection
    except BaseException:
        connection.leave()
        raise


def _show(stream: Stream, cursor: int, visitor: Visitor, connection: Connection) -> Reply:
    shutdown.prepare()
    mailbox = Mailbox(asyncio.get_running_loop())
    connection.end = lambda: mailbox.finish(sse.pause(RETRY_MS))
    reader = reader_into(
        mailbox, stream=stream.pk, cursor=cursor, epoch=stream.epoch, own=bool(stream.own)
    )
    own = None
    if stream.own:
        own = _own_stream(reader, visitor, stream.changes_seen)
        own.initialized = visitor.session.initialized
    shown = _shown(reader, mailbox, visitor.session, lambda: _leave(reader, own, connection))
    # Joined first, then looked for what is there already: so nothing falls in between.
    ledger().readers.add(reader)
    ledger().audience.enter(reader, visitor.principal, mailbox.finish)
    if own is not None:
        ledger().changes.add(own)
    ledger().ring()
    return replies.stream(shown)


def _own_stream(reader: Reader, visitor: Visitor, seen: int) -> OwnStream:
    server = visitor.server
    is_guarded = any(resource.permission is not None for resource in server.resources)

    def may_read(uri: str, user: Any) -> bool:
        return is_readable(uri, server, user)

    return OwnStream(
        reader,
        visitor.session.id,
        server.name,
        _lists(server),
        seen,
        principal=visitor.principal,
        may_read=may_read if is_guarded else None,
    )


def _lists(server: MCPServer) -> frozenset[Kind]:
    return frozenset(kind for kind in LISTS if FEATURES[kind](server))


def _shown(
    reader: Reader, mailbox: Mailbox, session: SessionInfo, closed: Callable[[], None]
) -> Shown:
    primed = session.revision.resumable_posts
    opening = sse.KEEP_ALIVE
    if primed:
        opening = sse.priming(str(EventId(reader.stream, reader.cursor, reader.epoch)), RETRY_MS)
    return Shown(
        mailbox,
        closed,
        lasts=True,
        opening=opening,
        label=lambda message: str(EventId(reader.stream, message.seq)),
        ending=sse.pause(RETRY_MS),
        # 2025-06-18 and before: only the stream of the session itself may end before its time.
        max_age=get_settings().stream_max_age_seconds if primed or reader.own else float("inf"),
        drained=lambda: resume(reader),
    )


def _leave(reader: Reader, own: OwnStream | None, connection: Connection) -> None:
    connection.leave()
    ledger().readers.remove(reader)
    ledger().audience.leave(reader)
    if own is not None:
        ledger().changes.remove(own)
        ledger().run(lambda: stream_rows.leave(reader.stream, reader.epoch))


def _open_own(session: SessionInfo) -> Stream:
    with available():
        stream = stream_rows.open_own(session)
    return _take_over(stream)


def _take_over(stream: Stream) -> Stream:
    with available():
        previous = stream_rows.take_over(stream, ledger().channel())
    # Whoever showed it until now is to fall silent.
    ledger().doorbell.ring([previous])
    return stream


def _find(session: SessionInfo, place: EventId) -> Stream | None:
    with available():
        return insist(lambda: stream_rows.find(session, place.stream))


def _trimmed(stream: Stream) -> list[bytes]:
    """Return an end for each request whose events are no longer there, so that nobody waits."""
    with available():
        requests = PendingRequest.objects.using(alias()).filter(
            stream=stream, direction=PendingRequest.Direction.FROM_CLIENT
        )
        ids = list(requests.values_list("request_id", flat=True))
    if not ids:
        # They have just been removed, and the stream goes next. An empty one would be come back to.
        raise _unknown()
    error = internal_error("The answer is no longer kept; it was not fetched in time")
    return [encode(error_response(json.loads(each), error)) for each in ids]


def _unknown() -> Refused:
    # Neither 404, which would read as the loss of the session, nor 405.
    return refuse(400, f"{LAST_EVENT_ID} names no event of this session; GET without it")
