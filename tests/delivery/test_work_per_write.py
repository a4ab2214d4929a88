"""What is written concerns one stream. It costs the same, however many others are open."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from django_mcp.store import ledger
from django_mcp.store.delivery.records import MessageKind, StoredMessage
from django_mcp.store.delivery.stream_readers import StreamReader, StreamReaders
from django_mcp.store.ledger import Ledger
from tests.store.visiting import Visit

pytestmark = pytest.mark.django_db(transaction=True)

looks: list[str] = []
"""The attributes of connections that somebody has looked at."""


class WatchedReader(StreamReader):
    """A connection that notes who looks at it."""

    def __getattribute__(self, name: str) -> Any:
        looks.append(name)
        return super().__getattribute__(name)


def connection(stream: Any, got: list[StoredMessage] | None = None) -> WatchedReader:
    kept = [] if got is None else got
    return WatchedReader(stream, 0, 1, False, kept.extend, lambda: None)


@pytest.fixture
def own():
    made = Ledger()
    yield made
    made.close()


def test_what_nobody_expected_loses_nothing(own, monkeypatch):
    """A bug, say, of a driver: whatever it is, what waited waits on."""
    monkeypatch.setattr(own, "wake", lambda: None)
    running, got = Visit().begin(), list[StoredMessage]()
    running.post._submit = own.submit
    running.say()
    running.post.write_at = 0.0
    own.readers.add(connection(running.post.id, got))
    with monkeypatch.context() as broken:
        broken.setattr(ledger, "write_batches", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            own._write()
    assert own.is_writing
    own._write()
    assert [each.seq for each in got] == [1]


@pytest.mark.parametrize("ends", [False, True])
def test_a_batch_costs_as_much_among_5000_streams_as_among_10(own, monkeypatch, ends):
    monkeypatch.setattr(own, "wake", lambda: None)
    costs = []
    for others in (10, 5_000):
        while len(own.readers.all()) < others:
            own.readers.add(connection(uuid4()))
        running, got = Visit().begin(), list[StoredMessage]()
        running.post._submit = own.submit
        running.say()
        running.post.write_at = 0.0
        reader = connection(running.post.id, got)
        own.readers.add(reader)
        looks.clear()
        own._write()
        if ends:
            running.post.end(running.call, "answered", b"{}")
            own._write()
        costs.append(len(looks))
        assert [each.seq for each in got] == ([1, 2] if ends else [1])
        own.readers.remove(reader)
    few, many = costs
    assert few == many > 0


def test_however_many_calls_begin_the_thread_is_woken_for_the_first(own, monkeypatch):
    woken: list[None] = []
    monkeypatch.setattr(own, "wake", lambda: woken.append(None))
    for _ in range(9):
        own.start_looking()
    assert len(woken) == 1


def test_the_last_words_of_a_stream_that_is_gone_do_too():
    readers = StreamReaders(lambda: "here")
    costs = []
    for others in (10, 5_000):
        while len(readers.all()) < others:
            readers.add(connection(uuid4()))
        stream, got = uuid4(), list[StoredMessage]()
        readers.add(connection(stream, got))
        looks.clear()
        readers.conclude(stream, [StoredMessage(1, MessageKind.RESPONSE, "{}")], closed=True)
        costs.append(len(looks))
        assert len(got) == 1
    few, many = costs
    assert few == many > 0


def test_several_connections_may_show_one_stream():
    readers, stream, got = StreamReaders(lambda: "here"), uuid4(), list[StoredMessage]()
    first, second = connection(stream, got), connection(stream, got)
    readers.add(first)
    readers.add(second)
    readers.remove(first)
    readers.remove(first)
    messages = [StoredMessage(1, MessageKind.NOTIFICATION, "{}")]
    readers.offer(stream, messages, epoch=second.epoch, closed=True)
    assert len(got) == 1
    assert not readers
