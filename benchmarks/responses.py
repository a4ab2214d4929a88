"""HTTP/1.1 responses out of bytes: with a length, in chunks, to the end of the connection.

No I/O. Only what servers send to a client that sends one POST after the other, but of that nothing
is taken on trust: what cannot be understood is :class:`Garbled`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any


class Garbled(Exception):
    """What came is not a response, or not a whole one."""


@dataclass(frozen=True, slots=True)
class Head:
    """Status line and headers."""

    status: int
    headers: dict[str, str]
    length: int | None = field(init=False)
    """Of the body, as far as it is declared."""
    chunked: bool = field(init=False)
    closes: bool = field(init=False)
    """Whether the connection ends with this response."""

    def __post_init__(self) -> None:
        length = self.headers.get("content-length")
        chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        empty = self.status in (204, 304)
        declared = 0 if empty else None if length is None else int(length)
        closes = "close" in self.headers.get("connection", "").lower()
        object.__setattr__(self, "chunked", chunked)
        object.__setattr__(self, "length", None if chunked else declared)
        object.__setattr__(self, "closes", closes or (declared is None and not chunked))


@dataclass(frozen=True, slots=True)
class Response:
    """A whole response."""

    head: Head
    body: bytes

    def messages(self) -> list[Any]:
        """Return the JSON-RPC messages of a JSON body, or of an event stream."""
        if self.head.headers.get("content-type", "").startswith("text/event-stream"):
            return [json.loads(data) for data in events(self.body) if data]
        return [json.loads(self.body)]


@lru_cache(maxsize=1024)
def parse_head(head: bytes) -> Head:
    """Return what the bytes before the empty line say; most come again and again."""
    try:
        first, *lines = head.decode("latin-1").split("\r\n")
        version, status, *_ = first.split(" ", 2)
        if version != "HTTP/1.1":
            raise Garbled(f"{version} instead of HTTP/1.1")
        pairs = (line.split(":", 1) for line in lines)
        return Head(int(status), {name.lower(): value.strip() for name, value in pairs})
    except ValueError as error:
        raise Garbled(f"{head[:200]!r}") from error


def events(body: bytes) -> Iterator[bytes]:
    """Yield the data of each event; the one that is not ended by an empty line is none."""
    text = body.replace(b"\r\n", b"\n")
    if text and not text.endswith(b"\n\n"):
        raise Garbled("The event stream ends within an event")
    for event in text.split(b"\n\n"):
        data = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line[:5] == b"data:"]
        if data:
            yield b"\n".join(data)


class Reader:
    """Takes bytes as they come, gives responses."""

    __slots__ = ("_buffer", "_head")

    def __init__(self) -> None:
        self._buffer = b""
        self._head: Head | None = None

    def feed(self, data: bytes) -> Response | None:
        """Return the response that these bytes complete, if they do."""
        self._buffer += data
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return None
            self._head = parse_head(self._buffer[:end])
            self._buffer = self._buffer[end + 4 :]
        if self._head.chunked:
            return self._chunked(self._head)
        length = self._head.length
        if length is None or len(self._buffer) < length:
            return None
        return self._done(self._head, self._buffer[:length], length)

    def close(self) -> Response | None:
        """Return the response that the end of the connection completes, if it does."""
        head = self._head
        if head is not None and head.length is None and not head.chunked:
            return self._done(head, self._buffer, len(self._buffer))
        if head is not None or self._buffer:
            raise Garbled("The connection ended within a response")
        return None

    @property
    def head(self) -> Head | None:
        """The head of the response that is not complete yet, as soon as it is known."""
        return self._head

    def _chunked(self, head: Head) -> Response | None:
        # From the beginning each time: there are few, and mostly they are all there at once.
        chunks: list[bytes] = []
        place = 0
        while True:
            line = self._buffer.find(b"\r\n", place)
            if line < 0:
                return None
            size = _size(self._buffer[place:line])
            after = line + 2 + size + 2
            if len(self._buffer) < after:
                return None
            if self._buffer[after - 2 : after] != b"\r\n":
                raise Garbled("A chunk is longer than it says")
            if not size:
                return self._done(head, b"".join(chunks), after)
            chunks.append(self._buffer[line + 2 : after - 2])
            place = after

    def _done(self, head: Head, body: bytes, end: int) -> Response:
        self._head = None
        self._buffer = self._buffer[end:]
        if self._buffer:
            raise Garbled(f"After the response comes {self._buffer[:100]!r}")
        return Response(head, body)


def _size(line: bytes) -> int:
    try:
        return int(line.partition(b";")[0], 16)
    except ValueError as error:
        raise Garbled(f"{line[:100]!r} is not the size of a chunk") from error
