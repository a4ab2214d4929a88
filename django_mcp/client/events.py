"""Reads Server-Sent Events (WHATWG HTML, section 9.2), within bounds, from bytes as they come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .errors import MessageTooLarge

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_DIGITS = re.compile(rb"[0-9]{1,9}")


@dataclass(slots=True)
class Event:
    """What stood before one empty line. ``id`` and ``retry`` are as sent; ``retry`` in seconds."""

    data: bytes = b""
    id: str | None = None
    retry: float | None = None
    kind: str = "message"


class EventReader:
    """Turns chunks of a stream into events. An event that the stream's end cuts off is dropped."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = b""
        self._begun = False
        self._after_return = False
        self._reset()

    def _reset(self) -> None:
        self._event = Event()
        self._lines: list[bytes] = []
        self._size = 0
        self._any = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that a chunk completes; raises :class:`MessageTooLarge`."""
        for line in self._split(chunk):
            if line:
                self._field(line)
            elif self._any:
                yield self._dispatch()

    def _split(self, chunk: bytes) -> Iterator[bytes]:
        if self._after_return:
            # The second half of a line's end that was split between two chunks.
            chunk = chunk.removeprefix(b"\n")
        text = self._rest + chunk
        if not self._begun and len(text) >= len(_BOM):
            self._begun = True
            text = text.removeprefix(_BOM)
        start = 0
        for end in _LINE_END.finditer(text, max(0, len(self._rest) - len(_BOM))):
            yield text[start : end.start()]
            start = end.end()
        self._after_return = start == len(text) and text.endswith(b"\r")
        self._rest = text[start:]
        self._check(len(self._rest))

    def _check(self, more: int) -> None:
        if self._size + more > self._limit:
            raise MessageTooLarge(f"An event has more than {self._limit} bytes")

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        self._any = self._any or bool(name)
        match name:
            case b"data":
                self._check(len(value) + 1)
                self._size += len(value) + 1
                self._lines.append(value)
            case b"id" if b"\0" not in value:
                self._event.id = value.decode("utf-8", "replace")
            case b"retry" if _DIGITS.fullmatch(value):
                self._event.retry = int(value) / 1000
            case b"event":
                self._event.kind = value.decode("utf-8", "replace") or "message"

    def _dispatch(self) -> Event:
        event = self._event
        event.data = b"\n".join(self._lines)
        self._reset()
        return event
