"""What is not the client's fault, or is refused before anything is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created
from django.http import HttpResponse

from django_mcp.models import PendingRequest, Session
from tests.support.caller import Caller
from tests.support.messages import IDS, LEGACY, modern_request, notification, request

from . import urls
from .test_errors import assert_error

PUBLIC = {"AUTH": "django_mcp.auth.public"}


def crash_page(request: Any) -> HttpResponse:
    """Stand for a site's ``handler500``."""
    return HttpResponse("<html>sorry</html>", status=500)


urlpatterns = urls.urlpatterns
handler500 = crash_page


def gone(*args: Any, **kwargs: Any) -> NoReturn:
    """Stand for a database that has gone away."""
    raise OperationalError("could not connect to server")


@contextmanager
def outage() -> Iterator[None]:
    """Let every query of the test's connection fail, and every attempt to open another."""
    connection_created.connect(gone)
    try:
        with connection.execute_wrapper(gone):
            yield
    finally:
        connection_created.disconnect(gone)


def busy(**more: Any) -> None:
    """Give every session a call that runs."""
    for session in Session.objects.all():
        PendingRequest.objects.create(session=session, server="wire", method="tools/call", **more)


@pytest.mark.parametrize("setting", ["MAX_SESSIONS", "MAX_SESSIONS_PER_USER"])
def test_when_all_sessions_are_busy_another_is_refused(
    entrance, settings, django_user_model, setting
):
    """503 with Retry-After; the longest idle goes, if there is one."""
    django_user_model.objects.create_user("anna")
    settings.DJANGO_MCP = PUBLIC | {setting: 2}
    anna = Caller(entrance, "/members/mcp").with_headers(X_User="anna")
    anna.opened(), anna.opened()
    busy()
    for request_id in IDS:
        answer = anna.initialize(LEGACY[-1], request_id)
        assert_error(answer, 503, -32603, request_id)
        assert int(answer.header("Retry-After")) > 0
    assert Session.objects.count() == 2
    PendingRequest.objects.update(state=PendingRequest.State.ANSWERED)
    assert anna.initialize(LEGACY[-1]).status == 200


def test_a_busy_session_survives_the_cap(caller, settings):
    """At the cap the longest idle session ends."""
    settings.DJANGO_MCP = PUBLIC | {"MAX_SESSIONS": 2, "ANONYMOUS_SESSIONS_SHARE": 1}
    working = caller.opened()
    busy()
    idle = caller.opened()
    newest = caller.opened()
    statuses = [each.call("ping").status for each in (working, idle, newest)]
    assert statuses == [200, 404, 200]


def test_without_the_database_a_request_of_a_session_is_503(caller):
    member = caller.opened()
    with outage():
        for request_id in IDS:
            answer = member.call("tools/list", request_id)
            assert_error(answer, 503, -32603, request_id)
            assert int(answer.header("Retry-After")) > 0
    assert member.call("tools/list").status == 200


def test_without_the_database_initialize_is_503(caller):
    with outage():
        for request_id in IDS:
            assert_error(caller.initialize(LEGACY[-1], request_id), 503, -32603, request_id)


def test_without_the_database_what_has_no_id_is_503_too(caller):
    member = caller.opened(LEGACY[0])
    messages = [
        notification("notifications/initialized"),
        {"jsonrpc": "2.0", "id": 4242, "result": {}},
        [request("ping", 1), request("ping", 2)],
    ]
    with outage():
        assert_error(member.send("DELETE"), 503, -32603, None)
        for message in messages:
            assert_error(member.post(message), 503, -32603, None)


def test_the_modern_era_needs_no_database(caller):
    """A stateless request that touches no rows is served."""
    with outage():
        assert caller.call("tools/list").status == 200
        answer = caller.call("tools/call", name="aadd", arguments={"a": 1})
    assert answer.result["isError"] is False


def test_authentication_that_crashes_is_500_and_json(caller):
    """Nothing has been read yet, so there is no id, and the cause is not told."""
    broken = Caller(caller.entrance, "/broken/mcp")
    assert_error(broken.call("tools/list", 4242), 500, -32603, None)


def test_authentication_that_cannot_reach_the_database_is_503(entrance):
    """With the request's id, as everywhere else where the body can be read."""
    member = Caller(entrance, "/members/mcp").with_headers(X_User="anna")
    with outage():
        for request_id in IDS:
            answer = member.call("tools/list", request_id)
            assert_error(answer, 503, -32603, request_id)
            assert int(answer.header("Retry-After")) > 0
        for unreadable in (b"", b"{", b"[]", b'{"jsonrpc": "2.0", "method": "x"}'):
            assert_error(member.post(unreadable), 503, -32603, None)
        assert_error(member.send("GET"), 503, -32603, None)


@pytest.mark.parametrize("user", ["anna", "nobody"], ids=["503", "403"])
def test_little_is_read_of_whom_authentication_has_not_let_in(entrance, user):
    """The id of a larger message is not looked for: nobody vouches for its sender."""
    stranger = Caller(entrance, "/members/mcp").with_headers(X_User=user)
    padding = b" " * 100_000
    message = json.dumps(modern_request("ping", 4242)).encode()
    with outage():
        whole = stranger.post(message + padding)
        assert whole.message["id"] is None
        assert whole.status == (503 if user == "anna" else 403)
        if entrance.name == "wsgi":  # which reads no chunks at all
            return
        pieces = [message, *(padding[:1000] for _ in range(100))]
        given = list(stranger.headers.items())
        chunked = entrance.send("POST", stranger.path, given, *pieces)
        assert chunked.message["id"] is None
        if entrance.name == "mount":  # Django's handler has read the whole before
            assert chunked.pieces_read < 20


def test_a_permission_that_cannot_reach_the_database_is_503(entrance, django_user_model):
    """503, which a client tries again, as for any other query of a request."""
    django_user_model.objects.create_user("anna")
    member = Caller(entrance, "/guarded/mcp").with_headers(X_User="anna")

    def once_in(execute, sql, params, many, context):
        if "permission" in sql:
            gone()
        return execute(sql, params, many, context)

    def wrap(connection, **kwargs):
        connection.execute_wrappers.append(once_in)

    connection_created.connect(wrap)
    try:
        with connection.execute_wrapper(once_in):
            answer = member.call("tools/list", 4242)
    finally:
        connection_created.disconnect(wrap)
    assert_error(answer, 503, -32603, 4242)


@pytest.mark.parametrize(
    ("headers", "status"), [({}, 401), ({"X-User": "nobody"}, 403)], ids=["401", "403"]
)
def test_a_refusal_by_authentication_has_a_challenge(entrance, headers, status):
    stranger = Caller(entrance, "/members/mcp").with_headers(**headers)
    for method in ("POST", "GET", "DELETE", "PUT"):
        answer = stranger.send(method, b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        assert answer.status == status
        assert answer.error["code"] == -32600
        assert answer.header("WWW-Authenticate").startswith("Bearer")
    assert Session.objects.count() == 0


@pytest.mark.parametrize(
    ("headers", "status", "challenge"),
    [
        ({}, 401, 'Bearer realm="wire"'),
        ({"Authorization": "Bearer x"}, 401, 'Bearer realm="wire", error="invalid_token"'),
        ({"Authorization": "bearer  x"}, 401, 'Bearer realm="wire", error="invalid_token"'),
        ({"Authorization": "Bearer "}, 401, 'Bearer realm="wire"'),
        ({"Authorization": "Basic YTpi"}, 401, 'Bearer realm="wire"'),
        ({"X-User": "x", "Authorization": "Bearer x"}, 403, 'Bearer realm="wire"'),
    ],
    ids=str,
)
def test_a_challenge_has_one_form(entrance, headers, status, challenge):
    """RFC 6750, section 3.1: ``error`` where a token was shown that does not hold."""
    answer = Caller(entrance, "/closed/mcp").with_headers(**headers).call("tools/list")
    assert (answer.status, answer.header("WWW-Authenticate")) == (status, challenge)
    assert 'send credentials, such as "Authorization: Bearer TOKEN"' in answer.error["message"]


def test_insufficient_scope_keeps_the_id(entrance):
    """403 is decided after parsing."""
    stranger = Caller(entrance, "/members/mcp").with_headers(X_User="nobody")
    assert_error(stranger.call("tools/list", 4242), 403, -32600, 4242)


def test_a_refusal_may_have_headers_and_a_status_of_its_own(entrance):
    """``Refusal.headers``."""
    answer = Caller(entrance, "/slowed/mcp").call("tools/list", 4242)
    assert answer.status == 429
    assert answer.header("Retry-After") == "7"
    assert answer.error["message"] == "Later"


def test_a_challenge_that_no_header_can_carry_is_no_crash(entrance):
    """JSON in every case, at each entrance."""
    answer = Caller(entrance, "/accented/mcp").call("tools/list", 4242)
    assert_error(answer, 401, -32600, None)
    assert answer.header("WWW-Authenticate")


def test_authentication_that_returns_nonsense_lets_nobody_in(entrance):
    """A mistake of the site, which the log explains."""
    assert_error(Caller(entrance, "/odd/mcp").call("tools/list", 4242), 500, -32603, None)


def test_without_auth_the_endpoint_is_closed(entrance, settings):
    """Choosing nothing lets nobody in."""
    settings.DJANGO_MCP = {}
    closed = Caller(entrance, "/unset/mcp")
    assert_error(closed.call("tools/list", 4242), 403, -32600, None)
    assert_error(closed.initialize(LEGACY[-1], 4242), 403, -32600, None)
    assert Session.objects.count() == 0


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("urlconf", ["tests.wire.urls", "tests.wire.test_outages"])
def test_errors_are_json_whatever_the_site_shows_to_people(caller, settings, debug, urlconf):
    """Neither Django's debug page nor the site's ``handler500``."""
    settings.DEBUG = debug
    settings.ROOT_URLCONF = urlconf
    bug = caller.call("tools/call", 4242, name="fail", arguments={"kind": "bug"})
    assert (bug.status, bug.message["id"], bug.result["isError"]) == (200, 4242, True)
    assert ("RuntimeError: a secret" in bug.result["content"][0]["text"]) is debug
    assert_error(caller.post(b"{"), 400, -32700, None)
    assert_error(caller.call("no/such/method", 4242), 404, -32601, 4242)
    assert_error(Caller(caller.entrance, "/broken/mcp").call("ping", 4242), 500, -32603, None)
    assert_error(Caller(caller.entrance, "/members/mcp").call("ping", 4242), 401, -32600, None)


def test_settings_that_cannot_be_meant_are_answered_in_json_too(entrance, settings):
    """JSON in every case, and nobody is let in."""
    settings.DJANGO_MCP = {"ATUH": "x"}
    closed = Caller(entrance, "/unset/mcp")
    assert_error(closed.call("ping", 4242), 500, -32603, None)
    elsewhere = closed.with_headers(Origin="https://elsewhere.example").call("ping", 4242)
    assert elsewhere.status in (403, 500)
    assert elsewhere.message["id"] is None
