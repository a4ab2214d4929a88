"""Users who are deleted while their clients write: nobody fails, and nothing of theirs is left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models.deletion import Collector
from django.db.models.signals import pre_delete

from django_mcp.auth import Principal
from django_mcp.models import PendingRequest, Session
from django_mcp.store.access import user_deletion
from django_mcp.store.database import with_retries
from django_mcp.store.delivery import outbox

from .aging import row_counts
from .visiting import Listening, Running, Visit, resource
from .writing import A_WHILE, BOUND, Client, at_once, register

User = get_user_model()
"""Django's own, or the one of :mod:`tests.members`."""

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def anna() -> Principal:
    return Principal(User.objects.create(username="anna"))


@pytest.fixture
def otto() -> Principal:
    return Principal(User.objects.create(username="otto"))


def delete(principal: Principal) -> None:
    """Delete the user, whom a client's process knows as another instance."""
    User.objects.get(pk=principal.user.pk).delete()


def leave_everything(principal: Principal) -> Visit:
    """Leave a row of every kind: of a session, and without one."""
    visit = Visit(principal)
    visit.subscribe(resource(1))
    visit.hear("unread")
    visit.call(number=1).ask()
    visit.call(number=2).ask().end()
    visit.cancel("early")
    Listening(resource(2), principal=principal)
    return visit


def test_everything_goes_with_its_user_and_nothing_else_does(anna, otto):
    leave_everything(otto)
    kept = row_counts()
    leave_everything(anna)
    ended = Visit(anna)
    ended.call()
    ended.leave()
    delete(anna)
    assert row_counts() == kept
    assert set(Session.objects.values_list("user", flat=True)) == {otto.user.pk}


def test_several_users_go_at_once(anna, otto):
    for principal in (anna, otto):
        leave_everything(principal)
    User.objects.all().delete()
    assert not any(row_counts().values())


# Writers. Django looks for the rows that refer to a user first, and deletes what it has found then.


def between_looking_and_deleting(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> None:
    """Let somebody else do something when Django has looked for what it will delete."""
    go_on = Collector.delete

    def meanwhile(collector: Collector) -> Any:
        monkeypatch.setattr(Collector, "delete", go_on)
        at_once(work)
        return go_on(collector)

    monkeypatch.setattr(Collector, "delete", meanwhile)


def call(visit: Visit) -> None:
    assert not visit.call(number=3).ask().end().stream_has_ended


def ask(visit: Visit) -> None:
    visit.call(number=3).ask()


@pytest.mark.parametrize(
    "act",
    [
        call,
        ask,
        lambda visit: visit.subscribe(resource(3)),
        lambda visit: visit.hear("late"),
        lambda visit: visit.cancel("late"),
        lambda visit: leave_everything(visit.principal),
        lambda visit: Listening(resource(3), principal=visit.principal),
    ],
    ids=["call", "question", "subscription", "message", "cancellation", "session", "listening"],
)
def test_what_is_written_after_the_look_goes_too(monkeypatch, anna, act):
    visit = leave_everything(anna)
    between_looking_and_deleting(monkeypatch, lambda: act(visit))
    delete(anna)
    assert not any(row_counts().values())


@pytest.mark.parametrize("act", [call, lambda visit: leave_everything(visit.principal)])
def test_what_was_written_after_the_transaction_began_goes_too(repeatable_read, anna, act):
    """As in the admin, which looks for the user in the transaction that deletes him."""
    visit = leave_everything(anna)
    with transaction.atomic():
        user = User.objects.get(pk=anna.user.pk)
        assert visit.row.user_id == user.pk
        if connection.vendor != "sqlite":  # where nobody else writes from now on
            at_once(lambda: act(visit))
        user.delete()
    assert not any(row_counts().values())


@pytest.mark.parametrize("act", [call, lambda visit: leave_everything(visit.principal)])
def test_what_is_begun_before_the_user_is_locked_goes_too(monkeypatch, anna, act):
    if connection.vendor == "sqlite":
        pytest.skip("on SQLite nobody else writes once the deletion has begun")
    visit = leave_everything(anna)
    lock = user_deletion._lock_living

    def meanwhile(*args: Any) -> None:
        if act is not call:
            lock(*args)
        at_once(lambda: act(visit))

    monkeypatch.setattr(user_deletion, "_lock_living", meanwhile)
    delete(anna)
    assert not any(row_counts().values())


@pytest.mark.parametrize("step", ["_lock_sessions", "_insert"])
def test_what_is_being_written_is_waited_for(monkeypatch, anna, step):
    visit = Visit(anna)
    inside, take_step = threading.Event(), getattr(outbox, step)

    def slowly(*args: Any) -> None:
        take_step(*args)
        inside.set()
        threading.Event().wait(A_WHILE)  # nobody has committed yet

    def late() -> None:
        assert inside.wait(BOUND)
        delete(anna)

    monkeypatch.setattr(outbox, step, slowly)
    (_, lost), _ = at_once(lambda: register(visit), late)
    assert not lost
    assert not any(row_counts().values())


def test_who_writes_while_the_user_goes_finds_that_the_session_has_ended(anna):
    visit = Visit(anna)
    speaking = visit.call(number=1)
    going = threading.Event()

    def slowly(**kwargs: Any) -> None:
        going.set()
        threading.Event().wait(A_WHILE)  # everything has ended, and Django has deleted nothing yet

    def write(*acts: Callable[[], bool]) -> list[bool]:
        assert going.wait(BOUND)
        return [act() for act in acts]

    def begin_without_session() -> bool:
        running = Running(None, principal=anna)
        running.post.want_rows()
        return running.write().stream_has_ended

    in_session = (lambda: register(visit)[1], lambda: speaking.say().write().stream_has_ended)
    pre_delete.connect(slowly, sender=User)
    try:
        lost, without, _ = at_once(
            lambda: write(*in_session), lambda: write(begin_without_session), lambda: delete(anna)
        )
    finally:
        pre_delete.disconnect(slowly, sender=User)
    assert (lost, without) == ([True, True], [True])
    assert not any(row_counts().values())


def test_writers_of_all_kinds_stop_when_their_user_goes(anna, otto):
    clients = [Client(seed, anna) for seed in range(3)]
    staying = Visit(otto)

    def late() -> None:
        threading.Event().wait(A_WHILE)
        with_retries(lambda: delete(anna))  # MySQL may choose it as the victim of a deadlock

    at_once(*[client.work for client in clients], late)
    assert not PendingRequest.objects.exists()
    assert Session.objects.get() == staying.row
