"""GET: the session's own stream, and streams that broke off, shown from where they did."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

from ..conf import get_settings
from ..models import PendingRequest, Stream
from ..protocol import sse
from ..protocol.errors import internal_error
from ..protocol.messages import encode, error_response
from ..server.capabilities import FEATURES
from ..server.changes import LISTS, Kind
from ..server.ports import Principal, Runner, SessionInfo
from ..server.registry import MCPServer
from ..store import outbox, streams
from ..store.database import alias, available
from ..store.folding import OwnStream, list_changes
from ..store.ledger import ledger
from ..store.readers import Reader
from . import replies
from .http import Reply, Request, Shown
from .replies import refuse
from .streams import RETRY_MS, EventId, Mailbox, events, reader_into, resume

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
        stream = await runner.blocking(_open_own, visitor.session)
        return _show(stream, stream.delivered, visitor)
    found = EventId.parse(place)
    row = None if found is None else await runner.blocking(_find, visitor.session, found)
    if found is None or row is None:
        # Neither 404, which would read as the loss of the session, nor 405.
        raise refuse(400, f"{LAST_EVENT_ID} names no event of this session; GET without it")
    resume_at = _resume_own if row.own else _resume_post
    return await resume_at(row, found, visitor, runner)


async def _resume_own(row: Stream, found: EventId, visitor: Visitor, runner: Runner) -> Reply:
    cursor = found.seq
    if cursor < row.trimmed:
        # What is lost cannot be told any more; that something may have changed can.
        cursor = row.next_seq - 1
        await runner.blocking(outbox.put, row.pk, list_changes(_lists(visitor.server)))
    await runner.blocking(_take_over, row)
    return _show(row, cursor, visitor)


async def _resume_post(row: Stream, found: EventId, visitor: Visitor, runner: Runner) -> Reply:
    if row.closed is not None and found.seq >= row.next_seq - 1:
        # An empty stream would make clients come back to it for ever.
        raise refuse(400, f"{LAST_EVENT_ID} is the end of its stream: everything has been sent")
    if found.seq < row.trimmed:
        return replies.events_of(await runner.blocking(_trimmed, row))
    await runner.blocking(_take_over, row)
    return _show(row, found.seq, visitor)


def _show(stream: Stream, cursor: int, visitor: Visitor) -> Reply:
    mailbox = Mailbox(asyncio.get_running_loop())
    reader = reader_into(
        mailbox, stream=stream.pk, cursor=cursor, epoch=stream.epoch, own=bool(stream.own)
    )
    own = None
    if stream.own:
        lists, session = _lists(visitor.server), visitor.session.id
        own = OwnStream(reader, session, visitor.server.name, lists, stream.changes_seen)
    shown = _events(reader, mailbox, visitor.session)
    # Joined first, then looked for what is there already: so nothing falls in between.
    ledger().readers.add(reader)
    ledger().audience.enter(reader, visitor.principal, mailbox.finish)
    if own is not None:
        ledger().changes.add(own)
    ledger().ring()
    return replies.stream(Shown(shown, lambda: _leave(reader, own)))


def _lists(server: MCPServer) -> frozenset[Kind]:
    return frozenset(kind for kind in LISTS if FEATURES[kind](server))


def _events(reader: Reader, mailbox: Mailbox, session: SessionInfo) -> AsyncGenerator[bytes]:
    primed = session.revision.resumable_posts
    opening = sse.KEEP_ALIVE
    if primed:
        opening = sse.priming(str(EventId(reader.stream, reader.cursor, reader.epoch)), RETRY_MS)
    return events(
        mailbox,
        opening=opening,
        label=lambda message: str(EventId(reader.stream, message.seq)),
        ending=sse.pause(RETRY_MS),
        # 2025-06-18 and before: only the stream of the session itself may end before its time.
        max_age=get_settings().stream_max_age_seconds if primed or reader.own else float("inf"),
        drained=lambda: resume(reader),
    )


def _leave(reader: Reader, own: OwnStream | None) -> None:
    ledger().readers.remove(reader)
    ledger().audience.leave(reader)
    if own is not None:
        ledger().changes.remove(own)
        ledger().run(lambda: streams.leave(reader.stream, reader.epoch))


def _open_own(session: SessionInfo) -> Stream:
    with available():
        stream = streams.open_own(session)
    return _take_over(stream)


def _take_over(stream: Stream) -> Stream:
    with available():
        previous = streams.take_over(stream, ledger().channel())
    # Whoever showed it until now is to fall silent.
    ledger().doorbell.ring([previous])
    return stream


def _find(session: SessionInfo, place: EventId) -> Stream | None:
    with available():
        return streams.find(session, place.stream)


def _trimmed(stream: Stream) -> list[bytes]:
    """Return an end for each request whose events are no longer there, so that nobody waits."""
    with available():
        requests = PendingRequest.objects.using(alias()).filter(
            stream=stream, direction=PendingRequest.Direction.FROM_CLIENT
        )
        ids = list(requests.values_list("request_id", flat=True))
    error = internal_error("The answer is no longer kept; it was not fetched in time")
    return [encode(error_response(json.loads(each), error)) for each in ids]
