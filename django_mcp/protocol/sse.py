"""Server-Sent Events, written and read (WHATWG HTML, section 9.2).

The server writes them, and the client, the test client and the tests read them: with one reader,
whose work grows with the bytes that come, and not with how they are cut up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MEDIA_TYPE: Final = "text/event-stream"
KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment, which clients skip, and proxies take for traffic."""

LONGEST_ID_BYTES: Final = 1024
"""Longest event id that is read: a client sends it back in a header, and remembers many."""
LONGEST_RETRY_MS: Final = 24 * 60 * 60 * 1000
"""The longest pause that a server can ask for; a longer one is taken for this one."""

_BOM: Final = b"\xef\xbb\xbf"
# No other character ends a line, whatever str.splitlines() takes for one.
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")


def event(data: bytes, event_id: str | None = None) -> bytes:
    """Return one ``message`` event. ``data`` is a single line of JSON, as ``encode`` writes it."""
    line = b"" if event_id is None else b"id: " + event_id.encode() + b"\n"
    return line + b"event: message\ndata: " + data + b"\n\n"


def priming(event_id: str, retry_ms: int) -> bytes:
    """Return an event without data, which gives the client a place to come back to.

    2025-11-25, basic/transports, "Sending Messages to the Server". A client that lost the stream
    waits ``retry_ms`` milliseconds.
    """
    return b"id: %s\nretry: %d\ndata: \n\n" % (event_id.encode(), retry_ms)


def pause(retry_ms: int) -> bytes:
    """Return an event that asks the client to wait before it comes back, in milliseconds."""
    return b"retry: %d\n\n" % retry_ms


class EventTooLarge(ValueError):
    """An event, or its id, has more bytes than the reader takes."""


@dataclass(slots=True)
class Event:
    """The fields before one empty line: also without data, for the sake of id and retry."""

    data: bytes = b""
    """All ``data`` fields, joined by line feeds; not decoded."""
    id: str | None = None
    """``None`` where this event has none; the one before it is still the last event's id."""
    retry_ms: int | None = None
    """Milliseconds to wait before the stream is asked for again."""
    kind: str = "message"
    """The ``event`` field."""


class EventReader:
    """Turns the bytes of a stream into events.

    Chunks may begin and end anywhere, within a line's end or a character too, and each byte of them
    is looked at a fixed number of times. Raises :class:`EventTooLarge` for an event, or a comment,
    of more than ``max_bytes``; nothing can be read after that. An event that the stream's end cuts
    off is dropped.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._line = bytearray()
        """The beginning of a line whose end has not come yet."""
        self._is_first_line = True
        self._after_return = False
        self._begin()

    def _begin(self) -> None:
        self._event = Event()
        self._data: list[bytes] = []
        self._size = 0
        self._is_empty = True

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that ``chunk`` completes."""
        for line in self._lines(chunk):
            if line:
                self._add_field(line)
            elif not self._is_empty:
                yield self._complete()

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        if self._after_return and chunk:
            # The second half of a line's end that was cut in two.
            self._after_return = False
            chunk = chunk.removeprefix(b"\n")
        start = 0
        for end in _LINE_END.finditer(chunk):
            yield self._whole(chunk[start : end.start()])
            start = end.end()
            self._after_return = start == len(chunk) and end[0] == b"\r"
        # A line feed counts with what follows it: the event may end here.
        if waiting := len(self._line) + len(chunk) - start:
            self._check(waiting)
            self._line += chunk[start:]

    def _whole(self, rest: bytes) -> bytes:
        """Return the line that ends with ``rest``."""
        line = bytes(self._line) + rest if self._line else rest
        self._line.clear()
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        return line

    def _check(self, more: int) -> None:
        if self._size + more > self._max_bytes:
            raise EventTooLarge(f"An event has more than {self._max_bytes} bytes")

    def _add_field(self, line: bytes) -> None:
        """Add one field to the event; what is no field, comments too, is ignored."""
        self._check(len(line))
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._size += len(line) + 1
                self._data.append(value)
            case b"id" if b"\0" not in value:
                self._event.id = _event_id(value)
            case b"retry" if value.isdigit():
                self._event.retry_ms = _milliseconds(value)
            case b"event":
                self._event.kind = value.decode("utf-8", "replace") or "message"
            case _:
                return
        self._is_empty = False

    def _complete(self) -> Event:
        whole = self._event
        whole.data = b"\n".join(self._data)
        self._begin()
        return whole


def read_events(body: bytes) -> list[Event]:
    """Return the events of a stream that has ended."""
    return list(EventReader(len(body) + 1).feed(body))


def _event_id(value: bytes) -> str:
    if len(value) > LONGEST_ID_BYTES:
        raise EventTooLarge(f"An event id has more than {LONGEST_ID_BYTES} bytes")
    return value.decode("utf-8", "replace")


def _milliseconds(digits: bytes) -> int:
    # Python refuses to read very long numbers.
    significant = digits.lstrip(b"0")[: len(str(LONGEST_RETRY_MS)) + 1]
    return min(int(significant or b"0"), LONGEST_RETRY_MS)
