"""What calls of the same session want kept in the same transaction."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.db import OperationalError, connection

from django_mcp.models import PendingRequest, Session
from django_mcp.protocol.messages import encode
from django_mcp.store.delivery.outbox import write_batches
from django_mcp.store.delivery.records import QuestionRecord, WriteResult
from django_mcp.store.sessions.session_rows import end_sessions
from django_mcp.store.sessions.session_use import write_use

from .visiting import ALIVE, Running, Visit
from .writing import at_once

State = PendingRequest.State


def keep_together(*calls: Running) -> list[WriteResult]:
    """Write what several calls have to say as the ledger does: in one transaction."""
    kept = write_batches([each.post.take() for each in calls], ALIVE)
    assert all(isinstance(each, WriteResult) for each in kept), kept
    return kept  # type: ignore[return-value]


def end(call: Running) -> Running:
    """Let a call end, which is not written yet."""
    answer = encode({"jsonrpc": "2.0", "id": call.call.request_id, "result": {}})
    call.post.end(call.call, State.FAILED, answer)
    return call


@pytest.mark.django_db
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_call_ends_in_its_rows_beside_one_that_comes_too_late_for_the_session(order):
    """The end of one is not taken for a beginning because of the other."""
    visit = Visit()
    told = visit.call(number=1)
    visit.leave()
    calls = [end(told), visit.begin(number=2).say()]
    kept = keep_together(*(calls[each] for each in order))
    assert [kept[order.index(each)].stream_has_ended for each in range(2)] == [False, True]
    assert (told.row.state, told.stream.closed is None) == (State.FAILED, False)
    assert len(told.bodies()) == 2
    assert not PendingRequest.objects.filter(pk=calls[1].call.id).exists()


@pytest.mark.django_db
def test_a_call_that_asks_and_ends_after_its_session_ends_in_its_rows():
    visit = Visit()
    call = visit.call()
    visit.leave()
    call.post.ask(QuestionRecord(call.call, "elicitation/create", {"message": "?"}, 60))
    (kept,) = keep_together(end(call))
    assert not kept.stream_has_ended
    assert (call.row.state, call.stream.closed is None) == (State.FAILED, False)


@pytest.mark.django_db
def test_nothing_is_asked_in_a_session_that_has_ended():
    visit = Visit()
    call = visit.call()
    visit.leave()
    assert not call.ask().write().stream_has_ended
    assert not PendingRequest.objects.filter(parent=call.call.id).exists()
    assert (end(call).write().stream_has_ended, call.row.state) == (False, State.FAILED)


def collide(works: list[Any]) -> None:
    """Have several write at once, each many times."""
    chance = random.Random(7)

    def often(work: Any) -> None:
        for _ in range(60):
            work(chance.random())

    at_once(*(lambda work=work: often(work) for work in works))


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
def test_who_notes_the_use_of_several_sessions_is_in_nobodys_way():
    """In whatever order their rows lie, they are locked in one: nobody waits for a deadlock."""
    visits = [Visit() for _ in range(6)]

    def note(chance: float) -> None:
        keys = random.Random(chance).sample([each.info.id for each in visits], 5)
        write_use(dict.fromkeys(keys, 1), at_once=True)

    def begin(chance: float) -> None:
        chosen = random.Random(chance).sample(visits, 5)
        keep_together(*(each.begin(number=chance).say() for each in chosen))

    collide([note, note, begin, begin])
    counts = sum(Session.objects.values_list("request_count", flat=True))
    assert counts == 2 * 60 * 5
    assert PendingRequest.objects.count() == 2 * 60 * 5


@pytest.mark.django_db(transaction=True)
def test_use_is_counted_all_or_not_at_all():
    """Who is interrupted counts again from the beginning."""
    visits = [Visit() for _ in range(3)]
    used = {each.info.id: number for number, each in enumerate(visits, start=1)}
    statements = 0

    def interrupt(execute: Any, *args: Any) -> Any:
        nonlocal statements
        statements += "request_count" in args[0]
        if statements == 2:
            raise InterruptedError
        return execute(*args)

    with connection.execute_wrapper(interrupt), pytest.raises(InterruptedError):
        write_use(used, at_once=True)
    assert sum(Session.objects.values_list("request_count", flat=True)) == 0
    write_use(used, at_once=True)
    assert [each.row.request_count for each in visits] == [1, 2, 3]


@pytest.mark.django_db(transaction=True)
def test_a_session_is_ended_although_others_are_in_the_way():
    """Whoever ends it need not try again himself."""
    visit = Visit()
    collisions = iter([OperationalError(1213, "Deadlock found")] * 2)

    def collide(execute: Any, *args: Any) -> Any:
        if args[0].startswith("UPDATE") and (collision := next(collisions, None)):
            raise collision
        return execute(*args)

    with connection.execute_wrapper(collide):
        assert end_sessions(Session.objects.filter(pk=visit.info.id)) == 1
    assert next(collisions, None) is None
    assert visit.row.state == Session.State.ENDED
