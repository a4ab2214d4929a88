"""A POST on an event loop: its calls, which may outlive the connection, and what is shown of them.

What ends without having waited for anything costs neither a turn of the loop nor an entry
anywhere, and is answered at once; what has ended before anything was shown of it, in one piece.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final

from ..protocol import sse
from ..protocol.errors import MCPError
from ..running.listen_peer import ListenPeer
from ..running.peers import BufferedPeer, CallPeer, StoredPeer, StreamPeer
from ..running.running_call import RunningCall, ended_early
from ..running.send_queue import SendQueue
from ..running.threads import call_on
from ..server.function_call import Runner
from ..store.delivery.records import MessageKind, StoredMessage, WriteResult, ignore_result
from ..store.delivery.request_rows import LISTEN
from ..store.delivery.stream_readers import StreamReader
from ..store.delivery.stream_writer import StreamWriter
from ..store.in_flight.running_requests import StopReason
from ..store.ledger import ledger
from . import replies
from .connection_limits import Connection, open_connections
from .event_stream import RETRY_MS, EventId, EventStream, Pace, note_room
from .incoming_post import IncomingPost, state_of
from .late_watch import watch_later
from .replies import Reply

_state_lock: Final = threading.Lock()


class StreamedPost(IncomingPost):
    """One POST whose calls are tasks of their own, run one after the other."""

    _loop: asyncio.AbstractEventLoop
    _runner: Runner
    _running: list[RunningCall]
    """Calls that have not ended, in their order."""
    _stays_open = False
    """Whether the connection is there for what happens later."""
    _queue: SendQueue | None = None
    """What is to be sent on the connection, rows or not; there as soon as anything is."""
    _writer: StreamWriter | None = None
    """Writes what is to be rows; there as soon as a call lasts, or says something."""
    _connection: Connection | None = None
    _reply_wake: asyncio.Future[None] | None = None
    """Settled when it may be time to reply; there as soon as that is waited for."""
    _wants_stream = False
    """Whether rows do not wait for the end. Set from any thread."""
    _response_is_streamed = False
    """Whether the end comes on a stream; else all had ended before anything wanted one."""
    _has_replied_with_stream = False
    """Whether the response to the POST is ``text/event-stream``."""
    _reader: StreamReader | None = None
    _connected = True
    """Whether the connection is there, and may show something yet."""
    _has_gone = False
    """Whether the client was seen to go before there was a reply."""
    _refusal: MCPError | None = None
    """Why nothing that its calls said or returned is replied."""

    async def run(self, runner: Runner) -> Reply:
        """Run the calls; reply when they have ended, or something is to be streamed."""
        self._loop, self._runner = asyncio.get_running_loop(), runner
        self._running = list(self.calls)
        self._stays_open = any(each.method == LISTEN for each in self.calls)
        # Not the caller's: of whom nothing is known but the address has no cap of his own here.
        key = self.caller.principal.limit_key
        # Before anything is in flight: whoever is refused here has not been heard.
        open_connections.check(key, stays_open=self._stays_open)
        if self.is_batch or self._stays_open:
            self._get_writer()
        for call in self._running:
            call.post = self
        if self._stays_open:
            self._running[0].reach()
        self._start_next_call()
        if self._running:
            self._connection = open_connections.enter(
                key, stays_open=self._stays_open, is_checked=True
            )
            self._register_calls()
            await self._wait_for_reply()
        if self._refusal is not None:
            for call in self.calls:
                call.outcome = self._refusal
                self.encode(call)
            return self.reply()
        if self._has_to_stream and (self._running or self._response_is_streamed):
            self._has_replied_with_stream = True
            return replies.stream(self._event_stream())
        said = [] if self._writer is None else self._writer.unwritten
        if self._queue is not None:
            said = [*said, *map(str.encode, self._queue.waiting())]
            self._queue.close()
        if self._running:
            return Reply(204)  # to nobody: the client has gone
        if self._writer is not None and not self._writer.wants_rows:
            # Let go of each other, or the garbage collector would have to find every POST.
            self._writer.on_written = ignore_result
        return self.reply(said)

    async def _wait_for_reply(self) -> None:
        """Wait until there is something to reply, or nobody to reply to."""
        stop_watching = watch_later(self.caller.request, self._note_that_client_has_gone)
        late = None
        if self.session is None and self.caller.takes_events and self._pace.begins_late:
            seconds = self.caller.settings.stream_after_seconds
            late = self._loop.call_later(seconds, self._begin_stream)
        try:
            # A call may have ended while its rows are still to be written. Then its response comes
            # with them, or it would be sent twice.
            while not self._can_reply:
                self._reply_wake = self._loop.create_future()
                await self._reply_wake
        except asyncio.CancelledError:
            self._disconnect()
            raise
        finally:
            self._reply_wake = None
            stop_watching()
            if late is not None:
                late.cancel()

    def _begin_stream(self) -> None:
        """Stream from now on, although nothing has been said yet."""
        self._get_queue()
        self._wants_stream = True
        self._wake_reply()

    @property
    def _pace(self) -> Pace:
        return self.caller.request.pace

    @property
    def _can_reply(self) -> bool:
        has_ended = not (self._running or self._response_is_streamed)
        return self._has_to_stream or self._has_gone or has_ended

    @property
    def _has_to_stream(self) -> bool:
        """Whether there is something to show before the end: rows, or what waits in the queue."""
        return self._wants_stream or (self._queue is not None and len(self._queue) > 0)

    def _wake_reply(self) -> None:
        if self._reply_wake is not None and not self._reply_wake.done():
            self._reply_wake.set_result(None)

    def _note_that_client_has_gone(self) -> None:
        self._has_gone = True
        self._disconnect()
        self._wake_reply()

    # The calls

    def _start_next_call(self) -> None:
        """Begin the next call, and the ones after it as long as none has to be waited for."""
        while self._running:
            call = self._running[0]
            call.start(self._runner, self._end_call_and_start_next)
            if call.outcome is None:
                return
            self._end_call(call)

    def _end_call_and_start_next(self, call: RunningCall) -> None:
        self._end_call(call)
        self._start_next_call()
        self._wake_reply()

    def _end_call(self, call: RunningCall) -> None:
        with _state_lock:
            self._running.remove(call)
            writer, is_last = self._writer, not self._running
        call.post = None
        if call.is_registered:
            ledger().requests.remove(call)
        self.encode(call)
        if writer is not None:
            writer.end(call, state_of(call.outcome), call.answer, last=is_last)
        if writer is not None and writer.durable:
            self._response_is_streamed = writer.wants_rows
        elif self._has_replied_with_stream and self._queue is not None:
            response = StoredMessage(0, MessageKind.RESPONSE, call.answer.decode())
            self._queue.put([response])
            if is_last:
                self._queue.finish()
        if is_last and self._connection is not None:
            # Counted as long as calls run, which may be longer than the connection lasts.
            self._connection.leave()

    def _register_calls(self) -> None:
        """Let the ledger know of the calls."""
        books = ledger()
        # When this process dies, each has its end: also those of a batch that have not begun.
        for call in self._running:
            if call.outcome is None:
                call.is_registered = True
                books.add_request(call)

    def want_rows(self, call: RunningCall) -> None:
        """Want a row for a call, unless it has ended. From any thread."""
        with _state_lock:
            if call not in self._running:
                return
            writer = self._get_writer_locked()
        writer.want_rows()

    def peer(self, call: RunningCall) -> CallPeer:
        """Return what a call reaches its client by; nobody, once it has ended."""
        session, can_notify = self.session, self.caller.takes_events
        with _state_lock:
            if call not in self._running:
                return BufferedPeer(can_notify=False)
            if session is not None:
                return StoredPeer(self._get_writer_locked(), call, session, release=self._release)
            queue = self._get_queue_locked()
            if self._stays_open:
                return ListenPeer(
                    queue,
                    self._get_writer_locked(),
                    call,
                    self._runner,
                    can_notify=can_notify,
                )
            return StreamPeer(queue, can_notify=can_notify)

    def _get_writer(self) -> StreamWriter:
        with _state_lock:
            return self._get_writer_locked()

    def _get_writer_locked(self) -> StreamWriter:
        """Return what writes down what becomes of the calls."""
        if self._writer is None:
            writer = self.writer(durable=self.session is not None and self.caller.takes_events)
            writer.on_written = self._note_written
            for call in self._running:
                call.writer = writer
                writer.begin(call)
            self._writer = writer
        return self._writer

    def _get_queue_locked(self) -> SendQueue:
        """Return what holds that which is to be sent."""
        if self._queue is None:
            self._queue = SendQueue(self._loop)
            self._queue.wake = self._wake_reply
        return self._queue

    # What they say

    def _note_written(self, written: WriteResult) -> None:
        """Take note of what was written. On the ledger's thread, before readers are given it."""
        if written.stream_has_ended:
            # Without a session nothing but the row is lost that shows to the site that it runs.
            if self.session is not None:
                reason = StopReason.NOT_STORED if written.is_refused else StopReason.SESSION_ENDED
                self._call_on_loop(self._end_all_calls, reason)
            return
        self._connect_reader()
        if self.caller.takes_events:
            self._wants_stream = True
            self._call_on_loop(self._wake_reply)

    def _connect_reader(self) -> None:
        """Let the connection get what is written, if it is there and does not get it yet."""
        with _state_lock:
            writer = self._get_writer_locked()
            if not writer.durable or self._reader is not None or not self._connected:
                return
            queue = self._get_queue_locked()
            self._reader = StreamReader(
                stream=writer.id,
                cursor=0,
                epoch=writer.epoch,
                is_get_stream=False,
                deliver=queue.put,
                finish=queue.finish,
                has_local_calls=True,
            )
            ledger().readers.add(self._reader)

    def _get_queue(self) -> SendQueue:
        with _state_lock:
            return self._get_queue_locked()

    def _end_all_calls(self, reason: StopReason) -> None:
        if not self._has_replied_with_stream:
            # Not 404, although the session is gone: that would say that nothing has run, and
            # clients would open another session and call again.
            self._refusal = ended_early(reason)
        # The last first: the end of each begins the next one.
        for call in reversed(list(self._running)):
            call.stop(reason)
        self._wants_stream = True
        self._wake_reply()

    # The connection

    def _event_stream(self) -> EventStream:
        pace = self._pace
        opening, is_resumable, writer = b"", False, self._writer
        if self._stays_open and (pace.ages_while_listening or self.caller.principal.comes_back):
            self._loop.call_later(pace.age, self.calls[0].stop, StopReason.TOO_OLD)
        # Whoever has the id of an event may ask any worker for what follows it. So what is not
        # stored has none.
        if writer is not None and writer.has_rows and self.revision.resumable_posts:
            opening = sse.priming(str(EventId(writer.id, 0, writer.epoch)), RETRY_MS)
            is_resumable = True
        return EventStream(
            self._get_queue(),
            lambda: self._call_on_loop(self._disconnect),
            opening=opening,
            event_id_of=self._event_id,
            ending=sse.pause(RETRY_MS),
            pace=pace,
            is_resumable=is_resumable,
            on_drained=self._note_room,
        )

    def _event_id(self, message: StoredMessage) -> str | None:
        writer = self._writer
        if writer is None or not 0 < message.seq <= writer.stored:
            return None
        return str(EventId(writer.id, message.seq))

    def _note_room(self) -> None:
        if self._reader is not None:
            note_room(self._reader)

    def _release(self) -> bool:
        """End the connection, so that the client comes back for the rest."""
        writer = self._get_writer()
        if not (writer.durable and self.revision.resumable_posts):
            return False
        writer.want_rows()
        self._get_queue().finish(sse.pause(RETRY_MS))
        return True

    def _disconnect(self) -> None:
        """Take note that the connection has gone, or has shown everything."""
        with _state_lock:
            self._connected, reader = False, self._reader
        for call in list(self._running):
            call.has_client = False
        if self._queue is not None:
            self._queue.close()
        if reader is not None:
            ledger().readers.remove(reader)
        if self.session is None:
            # 2026-07-28, basic/utilities/cancellation: a connection that goes is the cancellation.
            for call in list(self._running):
                call.abandon()

    def _call_on_loop(self, function: Callable[..., object], *args: object) -> None:
        call_on(self._loop, function, *args)
