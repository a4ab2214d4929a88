"""GET where no stream can be kept open, as under WSGI: the rest of one, in one piece."""

from __future__ import annotations

from ..models import Stream
from ..protocol import sse
from ..protocol.lifecycle import SessionInfo
from ..store.changes import change_log
from ..store.changes.fanout import write_changes
from ..store.database import reporting_outages, with_retries
from ..store.delivery import stream_rows
from ..store.delivery.records import StoredMessage
from ..store.delivery.stream_readers import StreamReader, trim_delivered
from . import replies
from .changes import listener_of
from .event_stream import RETRY_MS, EventId
from .replies import Reply
from .request import Caller
from .resumption import find_stream, reply_if_over, take_over_and_find_cursor


async def reply_with_stored(last_event_id: str, session: SessionInfo, caller: Caller) -> Reply:
    """Answer a GET that resumes a stream where none can be kept open: with what is there already.

    Its client comes back for the rest, here or where there is an event loop.
    """
    event_id, row = await find_stream(last_event_id, session, caller)
    if (end := await reply_if_over(row, event_id, caller.runner)) is not None:
        return end
    cursor = await take_over_and_find_cursor(event_id, row, caller)
    messages = await caller.runner.run_blocking(_fetch, row, cursor, session, caller)
    events = [sse.event(each.body.encode(), str(EventId(row.pk, each.seq))) for each in messages]
    if session.revision.resumable_posts:
        events.insert(0, sse.priming(str(EventId(row.pk, cursor, row.epoch)), RETRY_MS))
    last = messages[-1].seq if messages else cursor
    if row.closed is None or last < row.next_seq - 1:
        events.append(sse.pause(RETRY_MS))
    return Reply(200, b"".join(events), replies.STREAMED)


def _fetch(row: Stream, cursor: int, session: SessionInfo, caller: Caller) -> list[StoredMessage]:
    """Return what comes next; of the session's own stream, only if nobody else delivers it."""
    with reporting_outages():
        if row.own:
            trim_delivered(row)
            _write_changes(row, cursor, session, caller)
        messages = with_retries(lambda: stream_rows.messages_after({row.pk: cursor}))[row.pk]
        if row.own and messages:
            last = messages[-1].seq
            if not stream_rows.mark_delivered(row.pk, row.epoch, last):
                messages = []
        # Nobody shows it any more: whoever writes to it need wake no process.
        stream_rows.leave(row.pk, row.epoch)
    return messages


def _write_changes(row: Stream, cursor: int, session: SessionInfo, caller: Caller) -> None:
    """Put on a session's own stream what has changed since somebody showed it last."""
    server = caller.server
    reader = StreamReader(
        stream=row.pk,
        cursor=cursor,
        epoch=row.epoch,
        is_get_stream=True,
        deliver=lambda messages: None,
        finish=lambda: None,
    )
    listener = listener_of(reader, session, caller, row.changes_seen)
    write_changes([listener], change_log.after({server.name: row.changes_seen}))
