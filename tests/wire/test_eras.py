"""Which era a request belongs to, and what that decides."""

from __future__ import annotations

import logging

import pytest

from tests.support.caller import Caller
from tests.support.messages import (
    LEGACY,
    META_VERSION,
    MODERN,
    OMIT,
    REVISIONS,
    mirrored,
    modern_request,
    notification,
    request,
)

from . import site
from .test_errors import assert_error


def test_metadata_in_the_body_makes_a_request_modern(caller):
    """Whatever else is there: a session, or the name of a legacy method."""
    member = caller.opened()
    message = modern_request("initialize", 1, protocolVersion="2025-11-25")
    assert_error(member.post(message, **mirrored(message)), 404, -32601, 1)
    message = modern_request("tools/call", 1, name="whoami", arguments={})
    seen = member.post(message, **mirrored(message)).result["structuredContent"]
    assert seen["revision"] == MODERN
    assert seen["session"] is False


@pytest.mark.parametrize("version", [OMIT, *REVISIONS, "1999-01-01", "2031-01-01", "nonsense"])
def test_initialize_is_legacy_whatever_the_header_says(caller, version):
    answer = caller.with_headers(Mcp_Protocol_Version=version, Mcp_Method="initialize").initialize(
        "2025-06-18"
    )
    assert answer.result["protocolVersion"] == "2025-06-18"
    assert answer.header("Mcp-Session-Id")


@pytest.mark.parametrize("version", [MODERN, "2026-07-29", "2031-01-01"])
def test_a_modern_header_alone_makes_a_request_modern_and_malformed(caller, version):
    """Also in a session, whose id a modern request does not need."""
    for sender in (caller, caller.opened()):
        answer = sender.post(request("tools/list", 7), Mcp_Protocol_Version=version)
        assert_error(answer, 400, -32602, 7)


@pytest.mark.parametrize("version", [OMIT, *LEGACY, "1999-01-01", "v999.0.0", "9", "2026-7-28"])
def test_everything_else_is_legacy(caller, version):
    """And so needs a session."""
    answer = caller.post(request("tools/list", 7), Mcp_Protocol_Version=version)
    assert_error(answer, 400, -32600, 7)


@pytest.mark.parametrize("version", ["2026-07-28 ", " 2026-07-28", "\t2026-07-28"])
def test_white_space_around_the_version_means_nothing(caller, version):
    """RFC 9110, section 5.5: it is not part of the value."""
    message = modern_request("tools/list")
    answer = caller.post(message, **(mirrored(message) | {"Mcp-Protocol-Version": version}))
    assert answer.status == 200


@pytest.mark.parametrize("revision", LEGACY)
def test_without_a_header_the_session_decides(caller, revision):
    """2025-03-26 is assumed only where nothing else is known."""
    member = caller.opened(revision).with_headers(Mcp_Protocol_Version=OMIT)
    seen = member.call("tools/call", name="whoami")
    assert revision in seen.result["content"][0]["text"]


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("header", LEGACY)
def test_against_another_header_the_session_wins(caller, revision, header, caplog):
    """Logged where they differ."""
    member = caller.opened(revision).with_headers(Mcp_Protocol_Version=header)
    with caplog.at_level(logging.INFO, "django_mcp"):
        seen = member.call("tools/call", name="whoami")
    assert revision in seen.result["content"][0]["text"]
    assert (header in caplog.text and revision in caplog.text) == (revision != header)


def test_only_modern_versions_are_offered_to_a_modern_client(caller):
    """It could otherwise send a legacy one in ``_meta``."""
    assert caller.call("server/discover").result["supportedVersions"] == [MODERN]


@pytest.mark.parametrize("requested", [*LEGACY, MODERN, "2024-11-05", "1.0", "", "2031-01-01"])
def test_initialize_answers_with_a_revision_that_a_handshake_can_reach(caller, requested):
    """2025-11-25, lifecycle, "Version Negotiation"."""
    answered = caller.initialize(requested).result["protocolVersion"]
    assert answered == (requested if requested in LEGACY else LEGACY[-1])


@pytest.mark.parametrize(
    "method", ["notifications/cancelled", "notifications/initialized", "no/such", "tools/call"]
)
@pytest.mark.parametrize("version", [MODERN, "2031-01-01"])
def test_a_modern_notification_is_accepted_and_dropped(caller, method, version):
    """A session that it names is not touched either."""
    message = notification(method, requestId=1, name="add", arguments={"a": 1})
    for sender in (caller, caller.opened()):
        answer = sender.post(message, Mcp_Protocol_Version=version)
        assert (answer.status, answer.body) == (202, b"")
    assert site.calls == []


def test_a_notification_with_modern_metadata_is_modern(caller):
    """The body decides, for notifications as for requests."""
    opened = caller.initialize(LEGACY[-1]).header("Mcp-Session-Id")
    message = notification("notifications/initialized", _meta={META_VERSION: MODERN})
    caller.post(message, Mcp_Session_Id=opened, Mcp_Protocol_Version=OMIT)
    assert site.session_state(opened) == "opened"


@pytest.mark.parametrize("method", ["notifications/cancelled", "no/such", "initialize"])
def test_a_legacy_notification_is_accepted(caller, method):
    """2025-11-25, "Sending Messages", 4."""
    answer = caller.opened().post(notification(method, requestId=1))
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("body", [{"result": {}}, {"error": {"code": 1, "message": "no"}}])
def test_a_legacy_response_is_accepted(caller, body):
    """2025-11-25, "Sending Messages", 4: also one that nobody waits for."""
    answer = caller.opened().post({"jsonrpc": "2.0", "id": 77, **body})
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_error_of_a_handler_is_an_ordinary_answer(caller, revision):
    """200, in both eras; only an unknown method is 404 in the modern one."""
    member = caller.in_revision(revision)
    for params in ({"name": "none"}, {}, {"name": 5}, {"name": "add", "arguments": []}):
        assert member.call("tools/call", **params).status in (200, 400)
    unknown = member.call("no/such/method")
    assert unknown.status == (404 if revision == MODERN else 200)
    assert member.call("tools/call", name="fail", arguments={"kind": "bug"}).status == 200


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_unknown_resource_has_the_code_of_its_era(caller, revision):
    """With the URI in the data; what the site said stays with the site."""
    member = caller.in_revision(revision)
    for uri in ("note://404", "note://405", "note://406", "none://", "note://x", ""):
        answer = member.call("resources/read", 3, uri=uri)
        assert_error(answer, 200, -32602 if revision == MODERN else -32002, 3)
        assert answer.error["data"] == {"uri": uri}


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_not_registered_is_neither_declared_nor_there(entrance, revision):
    caller = Caller(entrance, "/bare/mcp")
    if revision == MODERN:
        declared = caller.call("server/discover").result["capabilities"]
    else:
        declared = caller.initialize(revision).result["capabilities"]
    assert set(declared) <= {"logging"}
    member = caller.in_revision(revision)
    for method in (
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    ):
        assert member.call(method, name="x").error["code"] == -32601, method


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_registered_is_declared(caller, revision):
    """What is declared is served, at each entrance alike."""
    if revision == MODERN:
        declared = caller.call("server/discover").result["capabilities"]
    else:
        declared = caller.initialize(revision).result["capabilities"]
    expected = {"tools", "resources", "prompts", "completions"}
    assert set(declared) == (expected if revision == MODERN else expected | {"logging"})
    assert "tasks" not in declared


def test_logging_is_only_declared_where_it_can_be_asked_for(caller):
    """The modern era has no ``logging/setLevel``; the capability without it would be a lie."""
    member = caller.opened()
    for level in ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"):
        assert member.call("logging/setLevel", level=level).result == {}
