"""Sessions and batches of the legacy revisions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from django_mcp.models import PendingRequest, Session
from tests.support.caller import Caller
from tests.support.messages import IDS, LEGACY, OMIT, notification, request

from . import site
from .test_errors import assert_error

BATCHES, *LATER = LEGACY
PING = request("ping", "p")
ADD = request("tools/call", 2, name="add", arguments={"a": 1})
RESPONSE = {"jsonrpc": "2.0", "id": 9, "result": {}}


@pytest.mark.parametrize("revision", LEGACY)
def test_ping_is_answered_with_nothing(caller, revision):
    assert caller.opened(revision).call("ping").result == {}


def test_a_request_before_initialized_is_served(caller):
    session = caller.initialize(LEGACY[-1]).header("Mcp-Session-Id")
    member = caller.with_headers(Mcp_Session_Id=session)
    assert member.post(ADD).result["isError"] is False


def test_initialize_in_a_session_opens_another(caller):
    member = caller.opened()
    other = member.initialize(LEGACY[-1]).header("Mcp-Session-Id")
    assert other not in (None, member.session)
    assert member.call("ping").status == 200
    assert Session.objects.count() == 2


def test_initialize_with_the_id_of_a_dead_session_opens_another(caller):
    assert caller.with_headers(Mcp_Session_Id="dead").initialize(LEGACY[-1]).status == 200


def test_delete_ends_one_session_and_no_other(caller):
    """2025-11-25, "Session Management", 5."""
    one, other = caller.opened(), caller.opened()
    answer = one.send("DELETE")
    assert (answer.status, answer.body) == (204, b"")
    assert one.call("ping").status == 404
    assert other.call("ping").status == 200


def test_delete_needs_neither_form_nor_version(caller):
    member = caller.opened()
    bare = member.with_headers(Content_Type=OMIT, Accept=OMIT, Mcp_Protocol_Version=OMIT)
    assert bare.send("DELETE").status == 204


@pytest.mark.parametrize("task", [{"ttl": 60_000}, {}, {"ttl": None}])
def test_a_task_that_nobody_offers_is_ignored(caller, task):
    result = caller.opened().call("tools/call", name="add", arguments={"a": 1}, task=task).result
    assert result["structuredContent"] == {"result": 2}


def test_a_batch_has_an_answer_for_each_request(caller):
    member = caller.opened(BATCHES)
    bad = request("no/such/method", "bad")
    sent = [PING, notification("notifications/x"), ADD, RESPONSE, bad]
    answer = member.post(sent)
    assert answer.status == 200
    assert [each["id"] for each in answer.message] == ["p", 2, "bad"]
    assert [("error" in each) for each in answer.message] == [False, False, True]


def test_a_batch_keeps_every_id(caller):
    """Types too, and one id many times."""
    ids = [*IDS, 1, 1, 1]
    answer = caller.opened(BATCHES).post([request("ping", each) for each in ids])
    assert [(type(each["id"]), each["id"]) for each in answer.message] == [
        (type(each), each) for each in ids
    ]


def test_a_batch_of_one_is_answered_with_an_array(caller):
    """JSON-RPC 2.0, section 6."""
    assert [each["id"] for each in caller.opened(BATCHES).post([PING]).message] == ["p"]


@pytest.mark.parametrize(
    "batch",
    [
        [notification("notifications/x")],
        [notification("notifications/x"), notification("notifications/y")],
        [RESPONSE],
        [RESPONSE, {"jsonrpc": "2.0", "id": 8, "error": {"code": 1, "message": "no"}}],
        [RESPONSE, notification("notifications/x")],
    ],
)
def test_a_batch_that_asks_for_nothing_is_accepted(caller, batch):
    """Such a batch is 202."""
    answer = caller.opened(BATCHES).post(batch)
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("others", [[], [PING]], ids=["alone", "beside a request"])
def test_what_a_batch_asks_no_answer_for_is_handed_on(caller, others):
    member = caller.opened(BATCHES)
    question = PendingRequest.objects.create(
        session=Session.objects.get(), direction="to", request_id=str(RESPONSE["id"])
    )
    member.post([*others, RESPONSE, notification("notifications/cancelled", requestId=7)])
    question.refresh_from_db()
    assert (question.state, json.loads(question.answer)) == ("answered", {"result": {}})
    cancellation = PendingRequest.objects.get(direction="from")
    assert (cancellation.request_id, cancellation.state) == ("7", "cancelled")


@pytest.mark.parametrize("revision", LEGACY)
def test_an_empty_batch_is_an_invalid_request(caller, revision):
    assert_error(caller.opened(revision).post([]), 400, -32600, None)


@pytest.mark.parametrize("revision", LATER)
@pytest.mark.parametrize("batch", [[PING], [PING, ADD], [notification("notifications/x")]])
def test_later_revisions_have_no_batches(caller, revision, batch):
    """And nothing in it is called."""
    assert_error(caller.opened(revision).post(batch), 400, -32600, None)
    assert site.calls == []


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Mcp_Session_Id": OMIT}, 400, -32600),
        ({"Mcp_Session_Id": "unknown"}, 404, -32001),
        ({"Mcp_Protocol_Version": "1999-01-01"}, 400, -32600),
        ({"Mcp_Protocol_Version": "2026-07-28"}, 400, -32600),
    ],
)
def test_a_batch_that_the_gate_refuses_has_one_error(caller, headers, status, code):
    """One HTTP error for the whole."""
    member = caller.opened(BATCHES).with_headers(**headers)
    assert_error(member.post([PING, ADD]), status, code, None)
    assert site.calls == []


@pytest.mark.parametrize("others", [[], [PING]])
def test_initialize_is_not_part_of_a_batch(caller, others):
    """2025-03-26, lifecycle."""
    initialize = request("initialize", "i", protocolVersion=BATCHES, capabilities={})
    answer = caller.opened(BATCHES).post([initialize, *others])
    refusal = answer.message[0] if isinstance(answer.message, list) else answer.message
    assert refusal["error"]["code"] == -32600
    assert Session.objects.count() == 1
    assert_error(caller.post([initialize]), 400, -32600, None)


@pytest.mark.parametrize(
    "broken",
    [
        {"jsonrpc": "2.0", "id": "b"},
        {"id": "b", "method": "ping"},
        {"jsonrpc": "2.0", "id": "b", "method": 5},
        {"jsonrpc": "2.0", "id": "b", "method": "ping", "params": []},
    ],
)
def test_one_broken_request_does_not_spoil_a_batch(caller, broken):
    """JSON-RPC 2.0, section 6: where its id can be read."""
    answer = caller.opened(BATCHES).post([broken, PING])
    assert {each["id"]: "error" in each for each in answer.message} == {"b": True, "p": False}


@pytest.mark.parametrize(
    "broken", [1, None, [], "x", {}, {"jsonrpc": "2.0", "id": None, "method": "ping"}]
)
def test_a_batch_with_something_that_has_no_id_sends_no_null_in_a_200(caller, broken):
    """The schema of a response has no ``"id": null``."""
    answer = caller.opened(BATCHES).post([PING, broken])
    if answer.status == 200:
        assert all(each["id"] is not None for each in answer.message)
    else:
        assert_error(answer, 400, -32600, None)


def test_a_result_that_cannot_be_sent_spoils_only_its_own_answer(caller):
    """The others have been called already."""
    bad = request("tools/call", "bad", name="half_a_character")
    answer = caller.opened(BATCHES).post([PING, bad, ADD])
    assert answer.status == 200
    assert {each["id"]: each["result"].get("isError", False) for each in answer.message} == {
        "p": False,
        "bad": True,
        2: False,
    }


@pytest.mark.parametrize(
    "client", [{"name": "a\x00b", "version": "\x00"}, {"name": "n" * 2000, "version": ""}]
)
def test_a_client_may_call_itself_anything(caller, client):
    """What JSON allows and a database does not."""
    answer = caller.initialize(LEGACY[-1], clientInfo=client)
    assert answer.status == 200
    assert answer.header("Mcp-Session-Id")


@pytest.mark.parametrize(("depth", "kept"), [(1, True), (28, True), (29, False), (90, False)])
def test_what_a_client_declares_may_be_deep(caller, depth, kept):
    """MariaDB keeps no JSON that is nested deeper than 32 levels; all databases say the same."""
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"x": value}
    answer = caller.initialize(LEGACY[-1], 5, capabilities={"experimental": {"a": value}})
    if kept:
        assert answer.header("Mcp-Session-Id")
    else:
        assert_error(answer, 200, -32602, 5)


def test_what_a_client_declares_may_hold_any_number(caller):
    for value in (2**63, 2**200, -1.5e300, 0.1):
        capabilities = {"experimental": {"a": {"x": value}}}
        assert caller.initialize(LEGACY[-1], capabilities=capabilities).header("Mcp-Session-Id")


def test_what_a_client_declares_has_a_bound(caller):
    """Nothing grows without one."""
    capabilities = {"experimental": {"a": {"x": "y" * 100_000}}}
    assert_error(caller.initialize(LEGACY[-1], 5, capabilities=capabilities), 200, -32602, 5)


@pytest.mark.parametrize("revision", LEGACY)
def test_a_session_of_each_server_is_its_own(entrance, revision):
    one, other = Caller(entrance, "/mcp"), Caller(entrance, "/bare/mcp")
    member = one.opened(revision)
    assert other.with_headers(Mcp_Session_Id=member.session).post(PING).status == 404
