"""What is forgotten, and when; and what is not."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_mcp.clock import DatabaseNow
from django_mcp.contrib.tokens.models import Token
from django_mcp.models import Change, PendingRequest, Session, Stream, Subscription
from django_mcp.rates import Rate
from django_mcp.store import cleanup, inbox
from django_mcp.store.access import rate_counters
from django_mcp.store.changes import change_log
from django_mcp.store.cleanup import BATCH_ROWS, cleanup_rules
from django_mcp.store.delivery import outbox
from django_mcp.store.delivery.records import QuestionRecord
from django_mcp.store.in_flight.recovery import end_abandoned

from .aging import forget, let_pass, prune, row_counts
from .visiting import DEAD, SERVER, Listening, Running, Visit, plant, resource

pytestmark = pytest.mark.django_db

REPLAY, RETENTION, IDLE = 300, 7 * 86_400, 86_400


@pytest.fixture
def _kept_briefly(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "RETENTION_SECONDS": 0}


def test_nothing_that_is_in_use_is_due():
    visit = Visit()
    visit.subscribe(resource(1))
    visit.hear("waiting")
    visit.call().ask()
    visit.call(number=2).end()
    visit.cancel("early")
    Listening(resource(2))
    Listening(resource(3)).end()
    change_log.write(SERVER, [resource(1), resource(2)])
    before = row_counts()
    assert prune() == {}
    assert row_counts() == before


# Sessions


def test_an_expired_session_ends_and_goes_when_the_admin_has_shown_it():
    visit = Visit()
    let_pass(seconds=IDLE - 5)
    assert prune() == {}
    let_pass(seconds=10)
    assert prune() == {"expired sessions, which end": 1}
    assert (visit.row.state, bool(visit.row.ended)) == ("ended", True)
    let_pass(seconds=RETENTION - 5)
    assert prune() == {}
    let_pass(seconds=10)
    assert prune() == {"ended sessions": 1}


def test_a_session_that_is_too_old_ends_when_it_has_become_idle(settings):
    visit = Visit()
    let_pass(days=29, hours=23)
    visit.use()
    let_pass(hours=2)
    assert prune() == {}
    let_pass(hours=23)
    assert prune() == {"expired sessions, which end": 1}


def test_a_session_that_may_idle_for_longer_than_it_may_last_ends_by_its_age(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SESSION_MAX_AGE_SECONDS": 3600}
    Visit()
    let_pass(seconds=3590)
    assert prune() == {}
    let_pass(seconds=20)
    assert prune() == {"expired sessions, which end": 1}


def test_a_session_does_not_end_under_a_running_call():
    visit = Visit()
    running = visit.call()
    let_pass(days=60)
    before = row_counts()
    assert prune() == {}
    assert row_counts() == before
    assert not running.end().stream_has_ended
    assert len(running.bodies()) == 2
    assert prune() == {"expired sessions, which end": 1}


def test_a_session_goes_with_all_that_it_has():
    visit = Visit()
    visit.subscribe(resource(1), resource(2))
    visit.hear("unread", "unread too")
    visit.call().ask().end()
    left = visit.call(DEAD, 2)  # was told nothing of the end, and so never closed its stream
    visit.cancel("early")
    visit.leave()
    let_pass(seconds=RETENTION + 5)
    PendingRequest.objects.filter(pk=left.call.id).update(state="failed", ended=visit.row.ended)
    assert prune() == {
        "subscriptions": 2,
        "messages": 3,
        "early cancellations": 1,
        "requests": 3,
        "streams": 1,
        "ended sessions": 1,
    }
    assert not any(row_counts().values())


def test_subscriptions_go_as_soon_as_their_session_has_ended():
    staying, leaving = Visit(), Visit()
    for visit in (staying, leaving):
        visit.subscribe(resource(1))
    leaving.leave()
    assert prune() == {"subscriptions": 1}
    assert str(Subscription.objects.get().session_id) == staying.info.id


# Streams and messages


def test_a_stream_can_be_fetched_again_and_then_no_more():
    running = Visit().call()
    running.end()
    let_pass(seconds=REPLAY - 5)
    assert prune() == {}
    let_pass(seconds=10)
    assert prune() == {"messages": 2}
    # What remains says whose answer it was that is no longer there.
    stream = running.stream
    assert (stream.trimmed, stream.cleared) == (2, True)
    assert running.row.stream_id == stream.pk
    assert prune() == {}


def test_a_stream_that_is_open_keeps_what_it_says():
    visit = Visit()
    running = visit.call()
    visit.hear("unread")
    let_pass(hours=23)
    running.say("more").write()
    assert prune() == {}
    assert len(running.bodies()) == 2


def test_many_messages_go_in_batches():
    for _ in range(3):
        running = Visit().call()
        for _ in range(6):
            running.say()
        running.end()
    let_pass(seconds=REPLAY + 5)
    assert forget("messages", 5) == 3 * 8
    assert set(Stream.objects.values_list("cleared", flat=True)) == {True}


# Requests


def test_requests_are_kept_for_the_admin_with_their_streams():
    visit = Visit()
    running = visit.call().ask()
    running.end()
    modern = Running(None)
    modern.post.want_rows()
    modern.write()
    modern.end()
    let_pass(seconds=RETENTION - 5)
    visit.use()
    prune()
    assert row_counts() == {**dict.fromkeys(row_counts(), 0), **_left(requests=3)}
    let_pass(seconds=60)
    assert prune() == {"requests": 3, "streams": 1}
    assert row_counts()["Session"] == 1


def _left(*, requests: int) -> dict[str, int]:
    return {"Session": 1, "Stream": 1, "PendingRequest": requests}


@pytest.mark.usefixtures("_kept_briefly")
def test_without_a_retention_clients_can_still_come_back():
    running = Visit().call()
    running.end()
    let_pass(seconds=REPLAY - 5)
    assert prune() == {}
    assert len(running.bodies()) == 2
    let_pass(seconds=60)
    assert prune() == {"messages": 2, "requests": 1, "streams": 1}


def test_early_cancellations_are_kept_while_a_call_may_still_find_them():
    visit = Visit()
    visit.cancel("early")
    let_pass(seconds=REPLAY - 5)
    assert prune() == {}
    let_pass(seconds=10)
    assert prune() == {"early cancellations": 1}


def test_a_question_outlives_no_call_and_no_call_its_questions():
    running = Visit().call().ask()
    running.end()
    let_pass(seconds=RETENTION + 60)
    calls = PendingRequest.objects.filter(direction="from")
    (kind,) = (each for each in cleanup_rules() if each.name == "requests")
    PendingRequest.objects.filter(direction="to").update(ended=DatabaseNow())
    assert kind.forget_all(1) == 0
    assert calls.exists()
    let_pass(seconds=RETENTION + 60)
    assert kind.forget_all(1) == 2
    assert not calls.exists()


def test_a_session_leaves_so_many_early_cancellations_and_the_newest_count(monkeypatch):
    monkeypatch.setattr(inbox, "MAX_EARLY", 3)
    visit, other = Visit(), Visit()
    other.cancel("theirs")
    begun = visit.begin(number=5)
    for number in range(6):
        visit.cancel(number)
    left = PendingRequest.objects.filter(session=visit.info.id)
    assert set(left.values_list("request_id", flat=True)) == {"3", "4", "5"}
    begun.post.want_rows()
    assert begun.write().cancelled == [begun.call]
    assert PendingRequest.objects.filter(session=other.info.id).exists()


def test_a_call_goes_with_the_last_of_its_questions():
    """Else it would wait for another round, and so would its stream and its session."""
    running = Visit().call().ask().ask()
    running.end()
    let_pass(seconds=RETENTION + 60)
    (kind,) = (each for each in cleanup_rules() if each.name == "requests")
    assert kind.forget(1) == (1, True, False)
    assert PendingRequest.objects.filter(pk=running.call.id).exists()
    assert kind.forget(1) == (2, True, False)
    assert kind.forget(1) == (0, False, False)


def test_a_question_of_a_call_that_has_ended_by_then_leaves_no_row():
    """Its process would renew the lease for ever, and its session would never expire."""
    running = Visit().call()
    running.post.ask(QuestionRecord(running.call, "elicitation/create", {"message": "?"}, 60))
    running.end()
    assert PendingRequest.objects.get() == running.row
    assert len(running.bodies()) == 3


def test_subscriptions_go_with_the_request_that_listened():
    listening, leaked = Listening(resource(1)), Listening(resource(2), resource(3))
    leaked.end()
    for each in (resource(2), resource(3)):
        Subscription.objects.create(
            request_id=leaked.call.id, server=SERVER, uri=each.uri, uri_digest="0"
        )
    assert forget("subscriptions") == 2
    assert Subscription.objects.get().request_id == listening.call.id
    Subscription.objects.create(request_id=leaked.call.id, server=SERVER, uri="late")
    let_pass(seconds=RETENTION + 60)
    assert forget("requests") == 1
    assert list(PendingRequest.objects.values_list("pk", flat=True)) == [listening.call.id]


# The dead


def test_what_a_dead_process_left_is_not_touched_before_it_is_settled():
    """Only who keeps books can tell the dead from the living, and does so soon."""
    abandoned = Visit().call(DEAD)
    let_pass(hours=23)
    assert prune() == {}
    assert end_abandoned() == []
    assert abandoned.row.state == "failed"


def test_what_nobody_has_settled_for_a_day_is_dead_to_everybody():
    abandoned = Visit().call(DEAD).ask()
    let_pass(days=1, minutes=2)
    assert prune()["abandoned requests, which fail"] == 2
    assert set(PendingRequest.objects.values_list("state", flat=True)) == {"failed", "cancelled"}
    assert '"error"' in abandoned.bodies()[-1]
    let_pass(days=9)
    prune()
    let_pass(days=9)
    prune()
    assert not any(row_counts().values())


# Changes


def test_changes_that_were_heard_for_the_last_time_go_after_a_day():
    visit = Visit()
    visit.subscribe(resource(1), resource(2))
    change_log.write(SERVER, [resource(1), resource(2)])
    Subscription.objects.filter(uri=resource(2).uri).delete()
    let_pass(hours=23)
    visit.use()
    assert prune() == {}
    let_pass(hours=2)
    assert prune() == {"changes": 1}
    assert Change.objects.get().uri == resource(1).uri


def test_a_change_that_is_made_again_meanwhile_stays(monkeypatch):
    visit = Visit()
    visit.subscribe(resource(1))
    change_log.write(SERVER, [resource(1)])
    let_pass(days=2)
    visit.use()
    Subscription.objects.all().delete()
    delete = cleanup._delete

    def late(rows, keys):
        if keys:
            visit.subscribe(resource(1))
            change_log.write(SERVER, [resource(1)])
        return delete(rows, keys)

    monkeypatch.setattr(cleanup, "_delete", late)
    assert forget("changes") == 0
    assert Change.objects.exists()


# Counts


def test_counts_go_when_their_period_is_over():
    assert rate_counters.spend("a digest", Rate(1, 60)) == 0
    let_pass(seconds=55)
    assert prune() == {}
    let_pass(seconds=10)
    assert prune() == {"call counts": 1}


# Batches


STATEMENTS = {
    "expired sessions, which end": 1,
    "abandoned requests, which fail": 1,
    "subscriptions": 3,
    "messages": 5,
    "early cancellations": 2,
    "requests": 7,
    "streams": 3,
    "ended sessions": 9,
    "changes": 3,
    "call counts": 2,
    "redeemed states": 2,
}


def test_each_batch_is_a_few_statements_however_large():
    plant(12)
    for kind in cleanup_rules():
        for limit in (3, 5, BATCH_ROWS):
            with CaptureQueriesContext(connection) as queries:
                kind.forget(limit)
            assert len(queries) <= STATEMENTS[kind.name], [each["sql"] for each in queries]


def test_expired_sessions_end_in_a_transaction_of_three_statements(django_assert_num_queries):
    for _ in range(4):
        Visit()
    let_pass(days=2)
    (kind, *_) = cleanup_rules()
    with django_assert_num_queries(1 + 3 + 2):
        assert kind.forget(3) == (3, True, False)


def test_what_is_not_due_costs_a_look(django_assert_num_queries):
    Visit().subscribe(resource(1))
    with django_assert_num_queries(12):
        assert prune() == {}


@pytest.mark.parametrize("batch_size", [1, 4, BATCH_ROWS])
def test_whoever_is_ended_between_batches_leaves_what_the_next_one_finishes(batch_size):
    plant(6)
    rounds = 0
    while any(kind.forget(batch_size).more or kind.count() for kind in cleanup_rules()):
        rounds += 1
        _is_consistent()
        assert rounds < 100
    prune()
    _is_consistent()
    assert not any(row_counts().values())


def _is_consistent() -> None:
    if connection.vendor != "mysql":  # which checks at once, and all tables when it is asked
        connection.check_constraints()
    for stream in Stream.objects.exclude(closed=None):
        kept = stream.messages.count()
        assert kept == stream.next_seq - 1 - stream.trimmed or stream.trimmed
    for request in PendingRequest.objects.exclude(stream=None):
        assert request.stream.session_id == request.session_id


def test_what_is_counted_is_what_goes():
    plant(5)
    counted = {each.name: each.count() for each in cleanup_rules() if each.count()}
    # Until their subscribers have gone, somebody can still want to hear of them.
    assert {**counted, "changes": 5} == prune()


def test_counting_has_an_end(monkeypatch):
    plant(5)
    monkeypatch.setattr(cleanup, "COUNTED_ROWS", 3)
    assert {each.count() for each in cleanup_rules()} == {0, 3}


def test_tokens_are_none_of_the_sweeps_business():
    assert not any(each.due().model is Token for each in cleanup_rules())


def test_a_message_to_a_stream_that_is_going_is_refused(monkeypatch):
    visit = Visit()
    visit.hear("unread")
    own = visit.listen()
    visit.leave()
    let_pass(seconds=RETENTION + 60)
    delete, late = cleanup._delete, []

    def meanwhile(rows, keys):
        if keys:
            late.append(outbox.write_notifications(own.pk, ["{}"]))
        return delete(rows, keys)

    monkeypatch.setattr(cleanup, "_delete", meanwhile)
    prune()
    assert late == [None] * 3  # the message, the stream, the session
    assert not any(row_counts().values())


def test_a_late_message_to_what_has_gone_is_refused():
    """Nothing is resurrected."""
    visit = Visit()
    running = visit.call()
    own = visit.listen()
    visit.leave()
    let_pass(seconds=RETENTION + 60)
    running.end()
    let_pass(seconds=RETENTION + 60)
    prune()
    assert not Session.objects.exists()
    late = Running(visit.info.id).say()
    assert late.write().stream_has_ended
    assert running.say().write().stream_has_ended or not running.post.take().messages
    assert outbox.write_notifications(own.pk, ["{}"]) is None
    assert not any(row_counts().values())


def test_the_names_under_which_apps_have_imported_them_stay():
    assert (cleanup.Batch, cleanup.Kind) == (cleanup.CleanupStep, cleanup.CleanupRule)
