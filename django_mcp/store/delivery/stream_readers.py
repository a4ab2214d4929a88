"""Connections of this process that show a stream, and what is there for them to show.

One query asks how far all their streams are, one more fetches what is new, however many there are.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ...conf import get_settings
from ...current_partition import current_partition
from ...models import Stream
from . import stream_rows
from .records import StoredMessage


@dataclass(slots=True, eq=False)
class StreamReader:
    """One connection, and how far it is.

    ``deliver`` takes messages, and returns whether they are enough for now: then ``ready`` is false
    until whoever sends them sets it again. ``finish`` is called when nothing more comes. Both are
    called from the ledger's thread, or from the thread that connects; they must return at once.
    """

    stream: uuid.UUID
    cursor: int
    epoch: int
    is_get_stream: bool
    deliver: Callable[[Sequence[StoredMessage]], bool | None]
    finish: Callable[[], None]
    has_local_calls: bool = False
    """Whether the calls of its stream run in this process, which tells it how they end."""
    ready: bool = True
    """Whether it takes more: a slow client must not fill the memory."""
    gone: bool = False
    """Whether the connection has ended, so that nothing may be noted as delivered on it."""
    partition: str = field(default_factory=current_partition)
    """Where its rows are."""

    def show(self, messages: Sequence[StoredMessage]) -> None:
        """Deliver messages, and note how far it is."""
        self.cursor = messages[-1].seq
        # First: who has sent all of it by the time that this returns finds it so, and makes it
        # ready again.
        self.ready = False
        if not self.deliver(messages):
            self.ready = True


class StreamReaders:
    """The connections of one process."""

    def __init__(self, channel: Callable[[], str]) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._readers: dict[uuid.UUID, tuple[StreamReader, ...]] = {}
        """By their streams: a write concerns one of them, however many are shown."""

    def __bool__(self) -> bool:
        return bool(self._readers)

    def add(self, reader: StreamReader) -> None:
        """Serve a connection. From any thread; what is there already is found by the next look."""
        with self._lock:
            self._readers[reader.stream] = (*self._readers.get(reader.stream, ()), reader)

    def remove(self, reader: StreamReader) -> None:
        """Forget a connection. From any thread."""
        reader.gone = True
        with self._lock:
            readers = self._readers.get(reader.stream, ())
            if others := tuple(each for each in readers if each is not reader):
                self._readers[reader.stream] = others
            else:
                self._readers.pop(reader.stream, None)

    def all(self) -> list[StreamReader]:
        """Return every connection. From any thread."""
        with self._lock:
            return [reader for readers in self._readers.values() for reader in readers]

    def offer(
        self, stream: uuid.UUID, messages: Sequence[StoredMessage], *, epoch: int, closed: bool
    ) -> None:
        """Hand over what is written here, which saves reading it back.

        ``epoch`` is that of the stream: a connection from which another one has taken over gets
        nothing any more.
        """
        for reader in self._readers.get(stream, ()):
            fresh = [each for each in messages if each.seq > reader.cursor]
            follows = bool(fresh) and fresh[0].seq == reader.cursor + 1
            if follows and reader.ready and reader.epoch == epoch and not reader.is_get_stream:
                self._deliver(reader, fresh)
                if closed:
                    self._finish(reader)

    def conclude(
        self, stream: uuid.UUID, messages: Sequence[StoredMessage], *, closed: bool
    ) -> None:
        """Hand over the last words of a stream whose rows have been deleted under its calls."""
        for reader in self._readers.get(stream, ()):
            reader.deliver([each for each in messages if each.seq > reader.cursor])
            if closed:
                self._finish(reader)

    def look(self) -> None:
        """Find what is new for whom."""
        # Of those who are here now: about one that joins meanwhile, nothing has been asked.
        readers = self.all()
        if not readers:
            return
        rows = stream_rows.positions({reader.stream for reader in readers})
        behind = {
            reader.stream: reader
            for reader in readers
            if self._may_deliver(reader, rows.get(reader.stream))
        }
        for stream, reader in behind.items():
            if reader.is_get_stream:
                trim_delivered(rows[stream])
        while behind := {s: r for s, r in behind.items() if self._is_behind(r, rows[s])}:
            part = dict(islice(behind.items(), stream_rows.PAGE))
            found = stream_rows.messages_after({s: r.cursor for s, r in part.items()})
            if not found:
                # What they are behind by is no longer kept.
                self._skip(part, rows)
            for stream, messages in found.items():
                if not self._deliver(behind[stream], messages):
                    del behind[stream]

    def _may_deliver(self, reader: StreamReader, row: Stream | None) -> bool:
        if row is not None and row.epoch == reader.epoch:
            return True
        if row is None or not reader.is_get_stream:
            # The session has been removed, or its client has come back on another connection.
            if row is not None or not reader.has_local_calls:
                self._finish(reader)
            return False
        # 2025-11-25, basic/transports, "Multiple Connections": a message goes to one stream only.
        # An older connection stays open, silent, until the newest has gone.
        if row.reader or not stream_rows.claim(row.pk, row.epoch, self._channel()):
            return False
        reader.epoch, reader.cursor = row.epoch + 1, row.delivered
        return True

    def _is_behind(self, reader: StreamReader, row: Stream) -> bool:
        if reader.gone or not reader.ready:
            return False
        if reader.cursor < row.next_seq - 1:
            return True
        if row.closed is not None:
            self._finish(reader)
        return False

    def _deliver(self, reader: StreamReader, messages: Sequence[StoredMessage]) -> bool:
        last = messages[-1].seq
        if reader.is_get_stream and not stream_rows.mark_delivered(
            reader.stream, reader.epoch, last
        ):
            return False
        reader.show(messages)
        return True

    def _skip(self, behind: dict[uuid.UUID, StreamReader], rows: dict[uuid.UUID, Stream]) -> None:
        for stream, reader in behind.items():
            reader.cursor = rows[stream].next_seq - 1
            if rows[stream].closed is not None:
                self._finish(reader)

    def _finish(self, reader: StreamReader) -> None:
        self.remove(reader)
        reader.finish()


def trim_delivered(row: Stream) -> None:
    """Forget what a session's own stream has delivered long ago."""
    # In large steps, so that it costs next to nothing per message.
    number = get_settings().queue_messages
    if row.delivered - row.trimmed > 2 * number:
        stream_rows.trim(row.pk, row.delivered - number)
