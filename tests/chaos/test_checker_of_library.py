"""The checker on what our own client and rounds of questions add: clean histories, and planted."""

from __future__ import annotations

from typing import Any

import pytest

from .test_checker import (
    KEY,
    Event,
    act,
    answer,
    call,
    end,
    error,
    figures,
    found,
    head,
    message,
    passed,
)

UNKNOWN: Event = {"e": "unknown", "why": "OutcomeUnknown: The connection broke"}
TURNED_AWAY: Event = {"e": "turned_away", "why": "ServerBusy: The server said 503"}


def asking(nonce: str) -> Event:
    """The end of a round: it is to be called again with an answer."""
    question = {"method": "elicitation/create", "params": {"message": f"{nonce} 0"}}
    result = {"resultType": "input_required", "inputRequests": {"elicit-1": question}}
    return message({"jsonrpc": "2.0", "id": 7, "result": result})


def test_a_call_that_was_sent_again_and_answered_passes():
    again = [head(503), end(), head(a=2), answer(), end(a=2)]
    outcome = figures(call(*again))

    assert not outcome.failed
    assert (outcome.counts["accepted"], outcome.counts["answered"]) == (1, 1)


@pytest.mark.parametrize("why", ["cut", "nobody"])
def test_an_unknown_outcome_that_an_act_explains_is_closed(why):
    outcome = figures(call(head(), end("broken"), passed(why), UNKNOWN), effects={})

    assert not outcome.failed
    assert outcome.closed_by == {why: 1}


def test_an_unknown_outcome_without_a_cause_is_lost():
    assert found(call(head(), end(), passed("complete"), UNKNOWN), effects={}) == {"lost": 1}


def test_who_could_have_come_back_has_lost_the_answer():
    broken = [head(), end("broken", "e.1"), passed("cut"), UNKNOWN]

    assert found(call(*broken), effects={}) == {"lost": 1}


def test_a_connection_that_is_used_again_may_have_been_cut_before():
    refused = call(end("refused"), UNKNOWN)

    assert found([act("cut")], refused, effects={}) == {}
    assert found([act("kill")], refused, effects={}) == {"lost": 1}


def test_who_has_gone_on_purpose_has_left():
    outcome = figures(call(head(), end("broken", "e.1"), {"e": "leaves"}), effects={})

    assert not outcome.failed
    assert outcome.closed_by == {"left": 1}


def test_the_end_of_a_client_is_no_request_but_comes_within_the_bound():
    closing = {"what": "close", "key": "n2"}

    assert figures(call(**closing)).counts["requests"] == 0
    assert found(call({"e": "gave_up"}, **closing)) == {"hung": 1}


def test_what_makes_no_sense_to_its_caller_is_lost():
    baffled = {"e": "baffled", "why": "UnexpectedAnswer: text/html"}

    assert found(call(head(), end(), passed("cut"), baffled), effects={}) == {"lost": 1}


def test_what_was_not_taken_up_must_not_have_run():
    turned_away = call(head(503), end(), TURNED_AWAY)
    outcome = figures(turned_away, effects={})

    assert not outcome.failed
    assert outcome.counts["failed"] == 1
    assert found(turned_away, effects={KEY: 1}) == {"unfounded": 1}


@pytest.mark.parametrize(("rows", "expected"), [(2, {}), (3, {"run twice": 1})])
def test_what_may_be_repeated_is_repeated_once(rows, expected):
    repeated = call(end("refused"), head(a=2), answer(), end(a=2), safe=True)

    assert found(repeated, effects={KEY: rows}) == expected


def test_what_comes_when_nobody_waits_is_misrouted():
    stray: Event = {"e": "stray", "x": "s1", "message": {"method": "notifications/progress"}}

    assert found([stray]) == {"misrouted": 1}


@pytest.mark.parametrize("code", [-32600, -32601, -32602, -32700])
def test_a_request_that_is_refused_as_wrong_is_untaken(code):
    refused = message({"id": 7, "error": {"code": code, "message": "requestState is not valid"}})

    assert found(call(head(), refused, end())) == {"untaken": 1}
    assert found(call(head(), error(), end())) == {}


ROUNDS: list[tuple[dict[str, Any], dict[str, int]]] = [
    ({"asked": KEY, "answered": KEY, "rows": 1}, {}),
    ({"asked": KEY, "answered": KEY, "rows": 0}, {"unfounded": 1}),
    ({"asked": KEY, "answered": KEY, "rows": 2}, {"run twice": 1}),
    ({"asked": "n9", "answered": KEY, "rows": 1}, {"misrouted": 1}),
    ({"asked": KEY, "answered": "n9", "rows": 1}, {"misrouted": 1}),
]


@pytest.mark.parametrize(
    ("facts", "expected"), ROUNDS, ids=["clean", "no-row", "twice", "question", "answer"]
)
def test_the_rounds_of_a_call_have_one_row_and_one_nonce(facts, expected):
    first = call(head(), asking(facts["asked"]), end(), nonce=KEY)
    second = call(head(), answer(facts["answered"]), end(), key="n2", nonce=KEY)

    assert found(first, second, effects={KEY: facts["rows"]}) == expected
