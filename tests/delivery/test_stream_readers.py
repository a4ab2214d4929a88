"""Connections join and leave from other threads, at any moment of a look."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from django_mcp.http.event_stream import note_room
from django_mcp.models import OutgoingMessage, Session, Stream
from django_mcp.store.delivery import outbox, stream_rows
from django_mcp.store.delivery.records import StoredMessage
from django_mcp.store.delivery.stream_readers import StreamReader, StreamReaders
from django_mcp.store.ledger import Ledger


class Connection:
    """A connection that keeps what it gets."""

    def __init__(self, number: int) -> None:
        session = Session.objects.create(
            key_digest=str(number),
            server="delivery",
            revision="2025-11-25",
            expires="2999-01-01T00:00:00Z",
        )
        stream = Stream.objects.create(session=session, own=True, epoch=1, reader="here")
        assert outbox.write_notifications(stream.pk, [str(number)]) is not None
        self.got: list[str] = []
        self.finished = False
        self.reader = StreamReader(
            stream=stream.pk,
            cursor=0,
            epoch=1,
            is_get_stream=True,
            deliver=lambda messages: self.got.extend(each.body for each in messages),
            finish=self._finish,
        )

    def _finish(self) -> None:
        self.finished = True


@pytest.fixture
def readers() -> StreamReaders:
    return StreamReaders(lambda: "here")


def at_the_query(monkeypatch: Any, action: Any) -> None:
    """Do something once, when a look has asked how far the streams are."""
    original, actions = stream_rows.positions, [action]

    def positions(asked: Any) -> Any:
        found = original(asked)
        while actions:
            actions.pop()()
        return found

    monkeypatch.setattr(stream_rows, "positions", positions)


def test_a_connection_that_joins_during_a_look_stays_and_is_found_by_the_next(readers, monkeypatch):
    first, second = Connection(1), Connection(2)
    readers.add(first.reader)
    at_the_query(monkeypatch, lambda: readers.add(second.reader))
    readers.look()
    assert (first.got, second.got, second.finished) == (["1"], [], False)
    readers.look()
    assert (first.got, second.got, second.finished) == (["1"], ["2"], False)


def test_a_connection_that_leaves_during_a_look_gets_nothing(readers, monkeypatch):
    first, second = Connection(1), Connection(2)
    readers.add(first.reader)
    readers.add(second.reader)
    at_the_query(monkeypatch, lambda: readers.remove(first.reader))
    readers.look()
    assert (first.got, second.got) == ([], ["2"])


def test_however_many_are_behind_each_gets_its_own(readers):
    """More than one statement can name."""
    sessions = Session.objects.bulk_create(
        Session(
            key_digest=f"many-{number}",
            server="delivery",
            revision="2025-11-25",
            expires="2999-01-01T00:00:00Z",
        )
        for number in range(1100)
    )
    rows = Stream.objects.bulk_create(
        Stream(session=each, own=True, epoch=1, reader="here", next_seq=2) for each in sessions
    )
    OutgoingMessage.objects.bulk_create(
        OutgoingMessage(stream=row, seq=1, kind="notification", body=str(row.pk)) for row in rows
    )
    # The messages of some are no longer kept, which holds up none of the others.
    OutgoingMessage.objects.filter(stream__in=[row.pk for row in rows[:150]]).delete()
    got = {row.pk: [] for row in rows}
    for row in rows:
        readers.add(_reader(row.pk, got[row.pk]))
    readers.look()
    readers.look()
    assert [got[row.pk] for row in rows[:150]] == [[]] * 150
    assert [got[row.pk] for row in rows[150:]] == [[str(row.pk)] for row in rows[150:]]


def test_who_can_take_more_again_is_looked_for_at_once(monkeypatch):
    looks: list[str | None] = []
    monkeypatch.setattr(Ledger, "look_now", lambda self, partition: looks.append(partition))
    reader = _reader(uuid4(), [])
    reader.ready = False
    for _ in range(2):
        note_room(reader)
    assert reader.ready
    assert looks == [reader.partition]


def _reader(stream: Any, got: list[str]) -> StreamReader:
    return StreamReader(
        stream=stream,
        cursor=0,
        epoch=1,
        is_get_stream=True,
        deliver=lambda messages: got.extend(each.body for each in messages),
        finish=lambda: None,
    )


def test_a_connection_from_which_another_has_taken_over_gets_nothing_more(readers):
    old, new = Connection(1), Connection(2)
    stream = new.reader.stream
    for connection, epoch in ((old, 1), (new, 2)):
        connection.reader.stream, connection.reader.is_get_stream = stream, False
        connection.reader.epoch = epoch
        readers.add(connection.reader)
    readers.offer(stream, [StoredMessage(1, "response", "word")], epoch=2, closed=False)
    assert (old.got, new.got) == ([], ["word"])
