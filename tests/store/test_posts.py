from __future__ import annotations

import json
import time

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_mcp.auth import Principal
from django_mcp.models import PendingRequest
from django_mcp.store.delivery.records import CallRecord, QuestionRecord
from django_mcp.store.delivery.stream_writer import (
    FIRST_WRITE_DELAY_SECONDS,
    UNWRITTEN_BYTES,
    StreamWriter,
)

from .visiting import Visit

WORD = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}


@pytest.fixture
def submitted():
    return []


@pytest.fixture
def post(submitted):
    return StreamWriter(
        server="test",
        principal=Principal(AnonymousUser()),
        session_id="6b1f7a52-0000-4000-8000-000000000000",
        durable=True,
        submit=submitted.append,
    )


def spoken(post: StreamWriter) -> CallRecord:
    """Return a call of the POST that has said its first word."""
    call = CallRecord(1, "tools/call", "speaks")
    post.begin(call)
    post.notify(WORD)
    return call


def test_what_could_not_be_registered_has_no_rows(post, submitted):
    call = CallRecord(1, "subscriptions/listen", "")
    post.begin(call)
    with pytest.raises(ZeroDivisionError), post.registering():
        assert 1 / (not post.wants_rows), "it has, for now"
    assert not post.wants_rows
    post.end(call, PendingRequest.State.FAILED, b"{}")
    assert not submitted


def test_nothing_is_said_after_the_last_response(post):
    # A synchronous function that was left behind may be between its check and its word.
    call = spoken(post)
    word = post.take()
    post.end(call, PendingRequest.State.ANSWERED, b"{}")
    post.notify(WORD)
    batch = post.take()
    assert [message.seq for message, _ in [*word.messages, *batch.messages]] == [1, 2]
    assert batch.closes
    post.notify(WORD)
    assert post.take().empty


def test_a_call_of_a_batch_may_speak_after_another_has_ended(post):
    first, second = CallRecord(1, "tools/call", "one"), CallRecord(2, "tools/call", "two")
    post.begin(first)
    post.notify(WORD)
    post.end(first, PendingRequest.State.ANSWERED, b"{}", last=False)
    before = post.take()
    post.begin(second)
    post.notify(WORD)
    post.end(second, PendingRequest.State.ANSWERED, b"{}")
    batch = post.take()
    assert [message.seq for message, _ in [*before.messages, *batch.messages]] == [1, 2, 3, 4]
    assert batch.closes


def test_a_call_that_ends_within_a_moment_of_its_first_word_gets_no_rows(post):
    begun = time.monotonic()
    call = spoken(post)
    assert post.wants_rows
    assert (
        begun + FIRST_WRITE_DELAY_SECONDS
        <= post.write_at
        <= time.monotonic() + FIRST_WRITE_DELAY_SECONDS
    )
    post.end(call, PendingRequest.State.ANSWERED, b"{}")
    assert not post.wants_rows
    assert post.take().empty
    assert [json.loads(each) for each in post.unwritten] == [WORD]


def test_of_a_batch_that_ends_so_only_the_words_are_handed_back(post):
    calls = [CallRecord(1, "tools/call", "one"), CallRecord(2, "tools/call", "two")]
    for call in calls:
        post.begin(call)
        post.notify(WORD)
    post.end(calls[0], PendingRequest.State.ANSWERED, b'{"id":1}', last=False)
    post.end(calls[1], PendingRequest.State.ANSWERED, b'{"id":2}')
    assert post.take().empty
    assert [json.loads(each) for each in post.unwritten] == [WORD, WORD]


def test_a_call_that_says_much_is_written_however_soon_it_ends(post):
    # Of that, a client that reads slowly may have to come back for the rest.
    call, word = CallRecord(1, "tools/call", "chatty"), {**WORD, "params": {"data": "x" * 10_000}}
    post.begin(call)
    for _ in range(UNWRITTEN_BYTES // 10_000):
        post.notify(word)
        assert post.write_at
    post.notify(word)
    assert not post.write_at
    post.end(call, PendingRequest.State.ANSWERED, b"{}")
    assert post.wants_rows
    assert post.unwritten == []
    assert len(post.take().messages) == UNWRITTEN_BYTES // 10_000 + 2


def test_what_is_being_written_is_not_handed_back(post):
    call = spoken(post)
    batch = post.take()
    post.end(call, PendingRequest.State.ANSWERED, b"{}")
    assert post.wants_rows
    assert post.unwritten == []
    assert [message.seq for message, _ in batch.messages] == [1]
    assert [message.seq for message, _ in post.take().messages] == [2]


def test_what_may_have_been_written_is_not_handed_back(post):
    call = spoken(post)
    batch = post.take()
    batch.is_unsure = True
    post.put_back(batch)
    post.end(call, PendingRequest.State.ANSWERED, b"{}")
    assert post.wants_rows
    assert post.take() is batch
    assert [message.seq for message, _ in post.take().messages] == [2]


def test_what_could_not_be_written_is(post):
    call = spoken(post)
    post.put_back(post.take())
    post.end(call, PendingRequest.State.ANSWERED, b"{}")
    assert not post.wants_rows
    assert [json.loads(each) for each in post.unwritten] == [WORD]


def test_a_question_is_asked_at_once(post, submitted):
    call = spoken(post)
    assert post.write_at
    assert post.ask(QuestionRecord(call, "elicitation/create", {}, 1))
    assert not post.write_at
    post.end(call, PendingRequest.State.ANSWERED, b"{}")
    assert post.wants_rows


def test_no_question_is_asked_of_a_call_that_ends_meanwhile(post, monkeypatch):
    """A worker thread is about to ask when the loop ends the call."""
    call, original = CallRecord(1, "tools/call", "asks"), post.want_rows
    post.begin(call)

    def opened():
        original()
        post.end(call, PendingRequest.State.CANCELLED, b"{}")

    monkeypatch.setattr(post, "want_rows", opened)
    assert not post.ask(QuestionRecord(call, "elicitation/create", {}, 1))
    assert post.take().empty


def test_what_had_ended_before_a_batch_became_rows_is_among_them(post):
    early, late = CallRecord(1, "ping", ""), CallRecord(2, "tools/call", "speaks")
    for call in (early, late):
        post.begin(call)
    post.end(early, PendingRequest.State.ANSWERED, b'{"id":1}', last=False)
    post.notify(WORD)
    batch = post.take()
    assert batch.begun == [early, late]
    assert batch.ended == {early: PendingRequest.State.ANSWERED}
    assert [(message.seq, call) for message, call in batch.messages] == [(1, early), (2, None)]


def test_a_call_that_has_spoken_may_become_a_row_at_once(post, submitted):
    spoken(post)
    post.want_rows()
    assert not post.write_at
    assert len(submitted) == 2
    post.want_rows()
    assert len(submitted) == 2


def test_a_call_that_has_ended_without_rows_gets_none(post, submitted):
    call = CallRecord(1, "tools/call", "quick")
    post.begin(call)
    post.end(call, PendingRequest.State.ANSWERED, b"{}")
    post.want_rows()
    post.notify(WORD)
    assert submitted == []
    assert not post.wants_rows
    assert post.take().empty


@pytest.mark.django_db
def test_a_call_that_becomes_a_row_asks_for_its_own_cancellation_alone():
    """A client may have cancelled any number of others early."""
    visit = Visit()
    running = visit.begin(number="mine")
    running.post.want_rows()
    for request_id in ("mine", "another", "MINE"):
        visit.cancel(request_id)
    with CaptureQueriesContext(connection) as queries:
        kept = running.write()
    assert kept.cancelled == [running.call]
    (look,) = [each["sql"] for each in queries if "notifications/cancelled" in each["sql"]]
    assert '"mine' in look.replace("\\", "")
