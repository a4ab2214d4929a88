"""A stream that broke off, found by the id of the last event that its client has."""

from __future__ import annotations

import json
from typing import Final

from ..models import PendingRequest, Stream
from ..protocol.errors import internal_error
from ..protocol.lifecycle import SessionInfo
from ..protocol.messages import encode, error_response
from ..server.function_call import Runner
from ..store.database import alias, reporting_outages, with_retries
from ..store.delivery import stream_rows
from ..store.ledger import ledger
from . import replies
from .event_stream import EventId
from .replies import Refused, Reply, refusal
from .request import Caller

LAST_EVENT_ID: Final = "Last-Event-ID"


async def find_stream(
    last_event_id: str, session: SessionInfo, caller: Caller
) -> tuple[EventId, Stream]:
    """Return the place that ``last_event_id`` names, and the stream on which it is."""
    event_id = EventId.parse(last_event_id)
    row = (
        None
        if event_id is None
        else await caller.runner.run_blocking(_read_stream, session, event_id)
    )
    if event_id is None or row is None:
        raise _unknown()
    return event_id, row


async def reply_if_over(row: Stream, event_id: EventId, runner: Runner) -> Reply | None:
    """Return the reply to who asks for what follows ``event_id`` if nothing can; else ``None``."""
    if row.own:
        return None
    if row.closed is not None and event_id.seq >= row.next_seq - 1:
        # What tells an EventSource not to come back (HTML, "Server-sent events"), and official
        # clients: they come back to a stream that is empty, and complain of an error.
        return replies.nothing_more()
    if event_id.seq < row.trimmed:
        return replies.events_of(await runner.run_blocking(_trimmed, row))
    return None


async def take_over_and_find_cursor(event_id: EventId, row: Stream, caller: Caller) -> int:
    """Take a stream over; return the number after which it goes on."""
    is_lost = bool(row.own) and event_id.seq < row.trimmed
    await caller.runner.run_blocking(_take_over_anew if is_lost else take_over, row)
    return row.trimmed if is_lost else event_id.seq


def take_over(stream: Stream) -> Stream:
    """Let this process show a stream from now on, and no other one. May touch the database."""
    with reporting_outages():
        try:
            previous = stream_rows.take_over(stream, ledger().channel())
        except Stream.DoesNotExist:
            # It has been removed since it was found.
            raise _unknown() from None
    # Whoever showed it until now is to fall silent.
    ledger().doorbell.wake([previous])
    return stream


def _take_over_anew(stream: Stream) -> None:
    """Take over a session's own stream of which the client has missed what is no longer kept."""
    take_over(stream)
    with reporting_outages():
        stream_rows.tell_changes_again(stream)


def _read_stream(session: SessionInfo, event_id: EventId) -> Stream | None:
    with reporting_outages():
        return with_retries(lambda: stream_rows.find(session, event_id.stream))


def _trimmed(stream: Stream) -> list[bytes]:
    """Return an end for each request whose events are no longer there, so that nobody waits."""
    with reporting_outages():
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
    return refusal(400, f"{LAST_EVENT_ID} names no event of this session; GET without it")
