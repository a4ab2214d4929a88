"""GET: the session's own stream, and streams that broke off, shown from where they did.

Under WSGI an open stream holds a thread. There the session's own is not shown, and the rest of one
that broke off is given in one piece where no thread can be had for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from ..models import Stream
from ..protocol import lifecycle, sse
from ..protocol.lifecycle import SessionInfo
from ..running.send_queue import SendQueue
from ..server.function_call import Runner
from ..store.changes.fanout import GetStreamListener
from ..store.database import reporting_outages
from ..store.delivery import stream_rows
from ..store.delivery.stream_readers import StreamReader
from ..store.ledger import ledger
from . import admission, cors, replies
from .changes import listener_of
from .connection_limits import Connection, open_connections
from .event_stream import RETRY_MS, EventId, EventStream, Pace, note_room
from .replies import Reply, refusal
from .request import Caller
from .resumption import (
    LAST_EVENT_ID,
    find_stream,
    reply_if_over,
    take_over,
    take_over_and_find_cursor,
)
from .stored_events import reply_with_stored


async def handle_get(caller: Caller) -> Reply:
    """Answer GET: the session's own stream, or the rest of one that broke off."""
    request, runner = caller.request, caller.runner
    last_event_id = request.headers.get(LAST_EVENT_ID)
    # 2025-11-25, basic/transports, "Listening for Messages from the Server": 405 where there is no
    # stream. 2026-07-28, basic/transports/streamable-http: no GET any more.
    has_stream = runner.holds_connections or last_event_id is not None
    if not has_stream or lifecycle.is_modern_name(request.protocol_version):
        raise refusal(
            405,
            "This is an endpoint for MCP clients, which POST to it; there is no stream to GET",
            Allow=cors.METHODS,
        )
    lifecycle.check_legacy_version(request.protocol_version)
    admission.check_takes_events(request)
    session = await admission.enter_session(caller)
    if runner.reserve_stream():
        return await runner.run_on_loop(_stream, last_event_id, session, caller)
    assert last_event_id is not None
    return await reply_with_stored(last_event_id, session, caller)


async def _stream(
    runner: Runner, last_event_id: str | None, session: SessionInfo, caller: Caller
) -> Reply:
    """Show a stream: the rest after ``last_event_id``, or the session's own. On a loop."""
    caller = replace(caller, runner=runner)
    if last_event_id is None:
        with _count_connection(session, caller, is_own_stream=True) as connection:
            stream = await caller.runner.run_blocking(_open_own, session)
            return _connect(stream, stream.delivered, session, caller, connection)
    event_id, row = await find_stream(last_event_id, session, caller)
    if (end := await reply_if_over(row, event_id, caller.runner)) is not None:
        return end
    with _count_connection(session, caller, is_own_stream=bool(row.own)) as connection:
        cursor = await take_over_and_find_cursor(event_id, row, caller)
        return _connect(row, cursor, session, caller, connection)


@contextmanager
def _count_connection(
    session: SessionInfo, caller: Caller, *, is_own_stream: bool
) -> Iterator[Connection]:
    """Count the connection that is about to be, and no longer if it comes to nothing."""
    connection = open_connections.enter(
        caller.principal.limit_key,
        stays_open=is_own_stream,
        session=session.id if is_own_stream else None,
    )
    try:
        yield connection
    except BaseException:
        connection.leave()
        raise


def _connect(
    stream: Stream, cursor: int, session: SessionInfo, caller: Caller, connection: Connection
) -> Reply:
    queue = SendQueue(asyncio.get_running_loop())
    connection.end_by(lambda: queue.finish(sse.pause(RETRY_MS)))
    reader = StreamReader(
        stream=stream.pk,
        cursor=cursor,
        epoch=stream.epoch,
        is_get_stream=bool(stream.own),
        deliver=queue.put,
        finish=queue.finish,
    )
    listener = None
    if stream.own:
        listener = listener_of(reader, session, caller, stream.changes_seen)
        listener.initialized = session.initialized
    left = partial(_leave, reader, listener, connection)
    shown = _event_stream(reader, queue, session, caller.request.pace, left)
    # Joined first, then looked for what is there already: so nothing falls in between.
    ledger().readers.add(reader)
    ledger().access_watch.watch(reader, caller.principal, queue.finish)
    if listener is not None:
        ledger().changes.add(listener)
    ledger().look_now(reader.partition)
    return replies.stream(shown)


def _event_stream(
    reader: StreamReader,
    queue: SendQueue,
    session: SessionInfo,
    pace: Pace,
    closed: Callable[[], None],
) -> EventStream:
    primed = session.revision.resumable_posts
    opening = sse.KEEP_ALIVE
    if primed:
        opening = sse.priming(str(EventId(reader.stream, reader.cursor, reader.epoch)), RETRY_MS)
    return EventStream(
        queue,
        closed,
        ends_first=True,
        opening=opening,
        event_id_of=lambda message: str(EventId(reader.stream, message.seq)),
        ending=sse.pause(RETRY_MS),
        # 2025-06-18 and before: only the stream of the session itself may end before its time.
        pace=pace,
        is_resumable=primed or reader.is_get_stream,
        on_drained=lambda: note_room(reader),
    )


def _leave(
    reader: StreamReader, listener: GetStreamListener | None, connection: Connection
) -> None:
    connection.leave()
    ledger().readers.remove(reader)
    ledger().access_watch.unwatch(reader)
    if listener is not None:
        ledger().changes.remove(listener)
        ledger().run(lambda: stream_rows.leave(reader.stream, reader.epoch), reader.partition)


def _open_own(session: SessionInfo) -> Stream:
    with reporting_outages():
        stream = stream_rows.open_own(session)
    return take_over(stream)
