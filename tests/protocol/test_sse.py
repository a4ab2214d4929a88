"""Server-Sent Events as they are read: WHATWG HTML, section 9.2, and no further than the bounds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_mcp.protocol import sse
from django_mcp.protocol.sse import (
    LONGEST_ID_BYTES,
    LONGEST_RETRY_MS,
    Event,
    EventReader,
    EventTooLarge,
    event,
    pause,
    priming,
    read_events,
)

from .counting import CountedArray, CountedBytes, CountedPattern, Work

SMALL = 1000


def read(*chunks: bytes, limit: int = SMALL) -> list[Event]:
    reader = EventReader(limit)
    return [each for chunk in chunks for each in reader.feed(chunk)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_end_in_three_ways(end):
    lines = [b"id: 1", b"retry: 500", b"data: one", b"data:two", b": a comment", b"", b""]
    assert read(end.join(lines)) == [Event(b"one\ntwo", "1", 500)]


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_and_in_no_other(character):
    data = f'{{"a":"{character}"}}'.encode()
    assert read(b"data: " + data + b"\n\n") == [Event(data)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\ndata\ndata:\ndata:  b\n\n", Event(b"a\n\n\n b")),
        (b"data: a\nid: 7\nid: b\0c\n\n", Event(b"a", "7")),
        (b"id\n\n", Event(b"", "")),
        (b"id: \xff\n\n", Event(b"", "\ufffd")),
        (b"event: ping\ndata: a\n\n", Event(b"a", kind="ping")),
        (b"event: ping\nevent\ndata: a\n\n", Event(b"a")),
        (b"Data: a\n data: b\ndata : c\n: d\ne: f\n\n", None),
        (b"\n\n\n: comment\n\n", None),
        (b"data: cut off\n", None),
        (b"data: cut off", None),
    ],
)
def test_fields(stream, expected):
    assert read(stream) == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        (b"0", 0),
        (b"0000000000000000000007", 7),
        (b"9" * 5000, LONGEST_RETRY_MS),
        (b"86400001", LONGEST_RETRY_MS),
        (b"", None),
        (b"+5", None),
        (b"1_0", None),
        (b"1.5", None),
        (b" 5", None),
        ("٣".encode(), None),
    ],
)
def test_retry_takes_digits_only(digits, expected):
    stream = b"data: a\nretry: " + digits + b"\n\n"
    assert read(stream, limit=10 * SMALL) == [Event(b"a", retry_ms=expected)]


def test_each_event_says_its_own_id_and_pause():
    first, second = read(b"id: 1\nretry: 5\ndata: a\n\ndata: b\n\n")
    assert (first, second) == (Event(b"a", "1", 5), Event(b"b"))


@pytest.mark.parametrize("chunked", [False, True])
def test_a_mark_of_byte_order_is_skipped_once(chunked):
    stream = b"\xef\xbb\xbfdata: one\n\n\xef\xbb\xbfdata: two\n\ndata: three\n\n"
    chunks = [bytes([each]) for each in stream] if chunked else [stream]
    assert read(*chunks) == [Event(b"one"), Event(b"three")]


def test_a_return_ends_the_event_before_the_next_chunk():
    """Whoever waits is not kept waiting for a line feed that may never come."""
    reader = EventReader(SMALL)
    assert list(reader.feed(b"data: a\r\r")) == [Event(b"a")]
    assert list(reader.feed(b"")) == []
    assert list(reader.feed(b"\ndata: b\r\n\r")) == [Event(b"b")]


def test_what_is_written_is_read():
    written = event(b'{"a": 1}', "x-1") + priming("x-2", 1500) + pause(10)
    assert read_events(written) == [
        Event(b'{"a": 1}', "x-1"),
        Event(b"", "x-2", 1500),
        Event(retry_ms=10),
    ]


PIECES = st.sampled_from(
    [
        *[b"data: one", b"data", b"id: 7", b"id: a\0b", b"retry: 10", b"retry: x", b": c", b""],
        *[b"e: f", b"\xef\xbb\xbfdata: bom", b": " + b"c" * 30, b"data: " + b"d" * 30],
        *["data: \xe9\u20ac\U0001f600".encode(), "id: \u20ac".encode(), b"event: \xff"],
    ]
)


def outcome(*chunks: bytes) -> tuple[list[Event], bool]:
    """What is read before the stream ends, or turns out to be too large."""
    reader, found = EventReader(60), []
    try:
        for chunk in chunks:
            for each in reader.feed(chunk):
                found.append(each)
    except EventTooLarge:
        return found, True
    return found, False


@settings(max_examples=300, deadline=None)
@given(
    lines=st.lists(st.tuples(PIECES, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=20),
    cuts=st.lists(st.integers(0, 300), max_size=10),
)
def test_it_does_not_matter_where_chunks_begin(lines, cuts):
    whole = b"".join(line + end for line, end in lines) + b"\n"
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    chunks = [whole[begin:end] for begin, end in itertools.pairwise(places)]
    assert outcome(*chunks) == outcome(whole)
    assert outcome(*(bytes([each]) for each in whole)) == outcome(whole)


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: " + b"x" * SMALL],
        [b"data: x\n" * SMALL],
        [b": " + b"x" * 10] * SMALL,
        [b"data: x\n"] * SMALL,
        [b"data: a\nid: " + b"x" * (LONGEST_ID_BYTES + 1) + b"\n"],
    ],
)
def test_there_are_bounds(chunks):
    with pytest.raises(EventTooLarge):
        read(*chunks, limit=2 * LONGEST_ID_BYTES if b"id:" in chunks[0] else SMALL)


@pytest.mark.parametrize("field", [b"data: abc", b"data: a\ndata: b", b": abc", b"id: abc"])
def test_the_bound_is_exact_and_each_event_has_its_own(field):
    """Line ends within an event count, that of its last line does not."""
    event, exact = field + b"\n\n", len(field)
    assert len(read(event, event, event, limit=exact)) == 3 * (field[0:1] != b":")
    cut = (event[each : each + 1] for each in range(len(event)))
    assert read(*cut, limit=exact) == read(event)
    with pytest.raises(EventTooLarge):
        read(event, limit=exact - 1)


def test_many_comments_are_no_large_event():
    assert read(b": keep-alive\n\n" * SMALL, b": keep-alive\n" * SMALL, b"data: a\n\n") == [
        Event(b"a")
    ]


class Rejoining(EventReader):
    """Adds each chunk to all that has come, and takes the lines from there."""

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        *lines, rest = (self._line + chunk).split(b"\n")
        self._line = rest
        yield from map(bytes, lines)


class Rescanning(EventReader):
    """Looks for the end of a line in all that has come, at each chunk."""

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        self._line += chunk
        while (end := sse._LINE_END.search(self._line)) is not None:
            yield bytes(self._line[: end.start()])
            del self._line[: end.end()]


def work_per_byte(kind: type[EventReader], monkeypatch: pytest.MonkeyPatch) -> float:
    """Return how many bytes are handled for each byte of a long line that comes in single bytes."""
    work = Work()
    monkeypatch.setattr(sse, "_LINE_END", CountedPattern(sse._LINE_END, work))
    data = b"x" * 6_000
    stream = b"data: " + data + b"\n\n"
    reader = kind(2 * len(stream))
    reader._line = CountedArray.of(b"", work)
    chunks = [CountedBytes.of(bytes([each]), work) for each in stream]
    found = [each for chunk in chunks for each in reader.feed(chunk)]
    assert [(each.data, each.kind) for each in found] == [(data, "message")]
    return work.handled / len(stream)


MOST_WORK = 20
"""How often a byte may be handled: searched, kept, taken out, and a few times more."""


def test_each_byte_is_handled_a_fixed_number_of_times(monkeypatch):
    assert 2 < work_per_byte(EventReader, monkeypatch) < MOST_WORK


@pytest.mark.parametrize("kind", [Rejoining, Rescanning])
def test_a_reader_that_begins_anew_with_each_chunk_would_be_noticed(kind, monkeypatch):
    assert work_per_byte(kind, monkeypatch) > 50 * MOST_WORK
