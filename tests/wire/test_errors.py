"""
Errors keep the request's id.

Every row is tried with every id, for both type and value may be lost. Errors on streams are
among the tests of delivery.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_mcp.models import Session
from django_mcp.protocol.messages import MAX_ID_LENGTH
from django_mcp.store.ledger import close_ledger
from tests.support.answers import HTTPAnswer
from tests.support.caller import Caller
from tests.support.messages import IDS, LEGACY, MODERN, OMIT, notification, request

from . import refusals, site

ANSWERED = [
    *refusals.HEADERS,
    *refusals.VERSIONS,
    *refusals.METADATA,
    *refusals.METHODS,
    *refusals.CALLS,
    *refusals.IN_A_SESSION,
    *refusals.ENVELOPES,
    *refusals.NO_SESSION,
]


def assert_error(answer: HTTPAnswer, status: int, code: int, request_id: Any) -> None:
    """And the id: the same JSON value, of the same type."""
    message = answer.message
    assert answer.status == status, message
    assert set(message) == {"jsonrpc", "id", "error"}, message
    assert message["jsonrpc"] == "2.0"
    assert type(message["error"]["code"]) is int
    assert isinstance(message["error"]["message"], str)
    assert message["error"]["code"] == code, message
    assert type(message["id"]) is type(request_id), message
    assert message["id"] == request_id, message
    assert "secret" not in json.dumps(message)


@pytest.mark.parametrize("row", ANSWERED, ids=lambda row: row.name)
def test_an_error_carries_the_id_of_its_request(caller, row):
    sender = caller.opened() if row.legacy else caller
    for request_id in IDS:
        answer = row.send(sender, request_id)
        assert_error(answer, row.status, row.code, request_id)
        assert row.text in answer.error["message"]
    assert site.calls == [] or row not in refusals.HEADERS


@pytest.mark.parametrize("revision", LEGACY)
def test_an_unknown_session_is_404(caller, revision):
    stranger = caller.opened(revision).with_headers(Mcp_Session_Id="unknown")
    for request_id in IDS:
        assert_error(stranger.call("tools/list", request_id), 404, -32001, request_id)


@pytest.mark.parametrize("secret", ["", " ", "x" * 5000, "\xfc", "a,b"])
def test_an_id_that_no_session_ever_had_is_404(caller, secret):
    stranger = caller.with_headers(Mcp_Session_Id=secret)
    for request_id in IDS:
        assert_error(stranger.post(request("ping", request_id)), 404, -32001, request_id)


def test_an_ended_session_is_404(caller):
    member = caller.opened()
    assert member.send("DELETE").status == 204
    for request_id in IDS:
        assert_error(member.call("tools/list", request_id), 404, -32001, request_id)
    assert member.send("DELETE").status == 404


@pytest.mark.parametrize("field", ["last_active", "expires"])
def test_an_expired_session_is_404(caller, field):
    member = caller.opened()
    close_ledger()  # it notes what was used a moment ago, which would count after the time set here
    Session.objects.update(**{field: timezone.now() - timedelta(days=60)})
    for request_id in IDS:
        assert_error(member.call("tools/list", request_id), 404, -32001, request_id)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/members/mcp", {"X-User": "ben", "X-Client": "laptop"}),
        ("/members/mcp", {"X-User": "anna", "X-Client": "phone"}),
        ("/guarded/mcp", {"X-User": "anna", "X-Client": "laptop"}),
        ("/mcp", {}),
    ],
    ids=["another user", "another client", "another server", "nobody"],
)
def test_a_foreign_session_is_as_good_as_unknown(entrance, django_user_model, path, headers):
    for name in ("anna", "ben"):
        django_user_model.objects.create_user(name)
    anna = Caller(entrance, "/members/mcp").with_headers(X_User="anna", X_Client="laptop").opened()
    thief = Caller(entrance, path).with_headers(**headers, Mcp_Session_Id=anna.session)
    unknown = thief.with_headers(Mcp_Session_Id="unknown").post(request("ping", 7))
    for request_id in IDS:
        assert_error(thief.post(request("ping", request_id)), 404, -32001, request_id)
    assert thief.post(request("ping", 7)).body == unknown.body
    assert thief.send("DELETE").status == 404
    assert anna.call("ping").status == 200


def test_an_unsupported_version_says_what_was_asked_and_what_there_is(caller):
    """Modern versions only."""
    error = refusals.VERSIONS[0].send(caller, 1).error
    assert error["data"] == {"supported": [MODERN], "requested": "v999.0.0"}
    discovered = caller.call("server/discover").result["supportedVersions"]
    assert error["data"]["supported"] == discovered


MALFORMED = {
    "nothing": b"",
    "white space": b" \n",
    "no JSON": b"{",
    "cut off": b'{"jsonrpc":"2.0","id":1,"method":"to',
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "UTF-16": '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
    "something after it": b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}',
    "a member twice": b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    "a method twice": b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}',
    "NaN": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}',
    "infinity": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1e999}}',
    "half a surrogate": b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    "an endless number": b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"ping"}',
    "a deep array": b"[" * 50_000 + b"]" * 50_000,
    "a deep object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "single quotes": b"{'jsonrpc':'2.0','id':1,'method':'ping'}",
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_body_that_cannot_be_read_has_no_id(caller, body):
    """In either era."""
    for version in (OMIT, LEGACY[-1], MODERN):
        answer = caller.post(body, Mcp_Protocol_Version=version)
        assert_error(answer, 400, -32700, None)


@pytest.mark.parametrize("body", [b"1", b'"a"', b"null", b"true", b"1.5", b"[]", b"{}"])
def test_a_body_that_is_no_message_has_no_id(caller, body):
    assert_error(caller.post(body), 400, -32600, None)


@pytest.mark.parametrize("request_id", [None, {}, [], True, False, 1.5, {"a": 1}])
def test_an_id_that_may_not_be_one_is_not_echoed(caller, request_id):
    assert_error(caller.post(request("tools/list", request_id)), 400, -32600, None)


@pytest.mark.parametrize("character", ["x", "ü", '"', "\u0001"])
def test_an_id_has_so_many_characters_of_json_and_no_more(caller, character):
    """So many fit into its column."""
    longest = MAX_ID_LENGTH // (len(json.dumps(character, ensure_ascii=False)) - 2) * character
    assert caller.post(request("no/such", longest)).message["id"] == longest
    assert_error(caller.post(request("no/such", longest + character)), 400, -32600, None)


def _refused(caller: Caller) -> Iterator[tuple[Caller, int]]:
    """Yield ways to have a notification or response of a session refused, and their status."""
    yield caller.with_headers(Mcp_Session_Id="unknown"), 404
    yield caller.with_headers(Mcp_Session_Id=OMIT), 400
    yield caller.with_headers(Mcp_Protocol_Version="1999-01-01"), 400


@pytest.mark.parametrize(
    "message",
    [
        notification("notifications/initialized"),
        {"jsonrpc": "2.0", "id": 4242, "result": {}},
        {"jsonrpc": "2.0", "id": "abc", "error": {"code": 1, "message": "no"}},
    ],
    ids=["notification", "result", "error"],
)
def test_a_notification_or_response_lends_its_id_to_no_error(caller, message):
    for sender, status in _refused(caller.opened()):
        answer = sender.post(message)
        assert answer.status == status
        assert answer.message["id"] is None


@pytest.mark.parametrize(
    "broken",
    [
        {"jsonrpc": "2.0", "id": 4242, "result": 1},
        {"jsonrpc": "2.0", "id": 4242, "result": {}, "error": {}},
        {"jsonrpc": "1.0", "id": 4242, "result": {}},
        {"jsonrpc": "2.0", "result": {}},
        {"id": 4242, "error": {"code": 1, "message": "no"}},
    ],
)
def test_a_broken_response_lends_its_id_to_no_error(caller, broken):
    assert_error(caller.opened().post(broken), 400, -32600, None)


def test_a_modern_client_sends_no_responses(caller):
    """2026-07-28, streamable-http, "Sending Messages", 4."""
    response = {"jsonrpc": "2.0", "id": 4242, "result": {}}
    answer = caller.post(response, Mcp_Protocol_Version=MODERN)
    assert_error(answer, 400, -32600, None)
