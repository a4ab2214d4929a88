"""Connections of this process that show a stream, and what is there for them to show.

One query asks how far all their streams are, one more fetches what is new, however many there are.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from ...conf import get_settings
from ...models import Stream
from . import stream_rows
from .records import Message


@dataclass(slots=True, eq=False)
class Reader:
    """One connection, and how far it is.

    ``deliver`` takes messages, ``finish`` is told that nothing more comes; both are called from
    the ledger's thread and must return at once.
    """

    stream: uuid.UUID
    cursor: int
    epoch: int
    own: bool
    deliver: Callable[[Sequence[Message]], None]
    finish: Callable[[], None]
    fed: bool = False
    """Whether the calls of its stream run in this process, which tells it how they end."""
    ready: bool = True
    """Whether it takes more: a slow client must not fill the memory."""
    gone: bool = False
    """Whether the connection has ended, so that nothing may be noted as delivered on it."""

    def show(self, messages: Sequence[Message]) -> None:
        """Deliver messages, and note how far it is."""
        self.cursor = messages[-1].seq
        self.deliver(messages)


class Readers:
    """The connections of one process."""

    def __init__(self, channel: Callable[[], str]) -> None:
        self._channel = channel
        self._readers: dict[Reader, None] = {}

    def __bool__(self) -> bool:
        return bool(self._readers)

    def add(self, reader: Reader) -> None:
        """Serve a connection. From any thread; what is there already is found by the next look."""
        self._readers[reader] = None

    def remove(self, reader: Reader) -> None:
        """Forget a connection. From any thread."""
        reader.gone = True
        self._readers.pop(reader, None)

    def offer(self, stream: uuid.UUID, messages: Sequence[Message], *, closed: bool) -> None:
        """Hand over what is written here, which saves reading it back."""
        for reader in [each for each in list(self._readers) if each.stream == stream]:
            fresh = [each for each in messages if each.seq > reader.cursor]
            follows = bool(fresh) and fresh[0].seq == reader.cursor + 1
            if follows and reader.ready and not reader.own:
                self._deliver(reader, fresh)
                if closed:
                    self._finish(reader)

    def conclude(self, stream: uuid.UUID, messages: Sequence[Message], *, closed: bool) -> None:
        """Hand over the last words of a stream whose rows have been deleted under its calls."""
        for reader in [each for each in list(self._readers) if each.stream == stream]:
            reader.deliver([each for each in messages if each.seq > reader.cursor])
            if closed:
                self._finish(reader)

    def look(self) -> None:
        """Find what is new for whom."""
        # Of those who are here now: about one that joins meanwhile, nothing has been asked.
        readers = list(self._readers)
        if not readers:
            return
        rows = stream_rows.positions({reader.stream for reader in readers})
        behind = {
            reader.stream: reader
            for reader in readers
            if self._may_deliver(reader, rows.get(reader.stream))
        }
        for stream, reader in behind.items():
            if reader.own:
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

    def _may_deliver(self, reader: Reader, row: Stream | None) -> bool:
        if row is not None and row.epoch == reader.epoch:
            return True
        if row is None or not reader.own:
            # The session has been removed, or its client has come back on another connection.
            if row is not None or not reader.fed:
                self._finish(reader)
            return False
        # 2025-11-25, basic/transports, "Multiple Connections": a message goes to one stream only.
        # An older connection stays open, silent, until the newest has gone.
        if row.reader or not stream_rows.claim(row.pk, row.epoch, self._channel()):
            return False
        reader.epoch, reader.cursor = row.epoch + 1, row.delivered
        return True

    def _is_behind(self, reader: Reader, row: Stream) -> bool:
        if reader not in self._readers or not reader.ready:
            return False
        if reader.cursor < row.next_seq - 1:
            return True
        if row.closed is not None:
            self._finish(reader)
        return False

    def _deliver(self, reader: Reader, messages: Sequence[Message]) -> bool:
        last = messages[-1].seq
        if reader.own and not stream_rows.mark_delivered(reader.stream, reader.epoch, last):
            return False
        reader.show(messages)
        return True

    def _skip(self, behind: dict[uuid.UUID, Reader], rows: dict[uuid.UUID, Stream]) -> None:
        for stream, reader in behind.items():
            reader.cursor = rows[stream].next_seq - 1
            if rows[stream].closed is not None:
                self._finish(reader)

    def _finish(self, reader: Reader) -> None:
        self.remove(reader)
        reader.finish()


def trim_delivered(row: Stream) -> None:
    """Forget what a session's own stream has delivered long ago."""
    # In large steps, so that it costs next to nothing per message.
    kept = get_settings().queue_messages
    if row.delivered - row.trimmed > 2 * kept:
        stream_rows.trim(row.pk, row.delivered - kept)
