"""What users have answered: it is kept until whoever asked has it, and no longer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from django_mcp.models import PendingRequest
from django_mcp.protocol.messages import Response
from django_mcp.store.access.access_watch import AccessWatch
from django_mcp.store.in_flight.recovery import end_abandoned
from django_mcp.store.in_flight.running_requests import RunningRequests
from django_mcp.store.inbox import take_answer
from django_mcp.store.ledger import ledger

from .aging import let_pass
from .visiting import DEAD, Process, Running, Visit

pytestmark = pytest.mark.django_db
SECRET = {"action": "accept", "content": {"password": "hunter2"}}


def asked(running: Running) -> PendingRequest:
    """Return the row of the newest question of a call."""
    return PendingRequest.objects.filter(parent=running.call.id).latest("created", "pk")


def answer(visit: Visit, question: PendingRequest) -> None:
    take_answer(visit.info, Response(json.loads(question.request_id), SECRET, None))
    assert "hunter2" in PendingRequest.objects.get(pk=question.pk).answer


def states() -> set[tuple[str, str]]:
    """Return state and answer of each question, every one of which has ended."""
    rows = PendingRequest.objects.filter(direction="to")
    assert not rows.filter(ended=None).exists()
    return set(rows.values_list("state", "answer"))


def test_it_is_forgotten_once_it_has_been_taken():
    visit = Visit()
    running = visit.call().ask()
    question, taken = asked(running), []
    answer(visit, question)
    requests = RunningRequests("alive", AccessWatch())
    requests.watch_question(question.pk, taken.append)
    requests.look()
    assert taken == [{"result": SECRET}]
    assert states() == {("answered", "")}
    assert running.row.state == "running"


def test_the_process_that_has_asked_is_woken(monkeypatch):
    visit = Visit()
    question = asked(visit.call().ask())
    PendingRequest.objects.filter(pk=question.pk).update(channel="of the process")
    woken: list[Any] = []
    monkeypatch.setattr(ledger().doorbell, "wake", woken.append)
    answer(visit, question)
    take_answer(visit.info, Response(json.loads(question.request_id), SECRET, None))
    assert woken == [["of the process"]], "once: the second answer is none"


def test_a_look_that_takes_none_writes_nothing(django_assert_num_queries):
    question = asked(Visit().call().ask())
    requests = RunningRequests("alive", AccessWatch())
    requests.watch_question(question.pk, lambda answer: None)
    with django_assert_num_queries(1):
        requests.look()


@pytest.mark.parametrize("process", [Process("alive", ""), DEAD], ids=["ends", "dies"])
def test_what_nobody_has_taken_goes_with_the_call(process):
    visit = Visit()
    running = visit.call(process).ask()
    question = asked(running)
    answer(visit, question)
    ended: Any = PendingRequest.objects.get(pk=question.pk).ended
    running.ask()  # and this one is still open
    if process is DEAD:
        let_pass(minutes=5)
        end_abandoned()
    else:
        running.end()
    assert states() == {("answered", ""), ("cancelled", "")}
    # When it was answered is still known.
    if process is not DEAD:
        assert PendingRequest.objects.get(pk=question.pk).ended == ended
