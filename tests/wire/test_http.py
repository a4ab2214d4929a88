"""HTTP around the messages: forms, methods, addresses."""

from __future__ import annotations

import gc

import pytest

from django_mcp.models import Session
from tests.support.caller import Caller
from tests.support.messages import LEGACY, MODERN, OMIT, notification, request

from .test_errors import assert_error

JSON, EVENTS = "application/json", "text/event-stream"


@pytest.mark.parametrize(
    "content_type",
    [JSON, "APPLICATION/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8"],
)
def test_json_is_taken_however_it_is_spelt(caller, content_type):
    assert caller.with_headers(Content_Type=content_type).call("tools/list").status == 200


@pytest.mark.parametrize(
    "content_type",
    [
        OMIT,
        "",
        "text/plain",
        "text/json",
        "application/jsonp",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json-rpc",
        "json",
        f"text/html, {JSON}",
    ],
)
def test_another_content_type_is_415(caller, content_type):
    """What a form of another site can send without asking is refused."""
    answer = caller.with_headers(Content_Type=content_type).call("tools/list", 4242)
    assert_error(answer, 415, -32600, None)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (OMIT, JSON),
        ("", JSON),
        ("*/*", JSON),
        (JSON, JSON),
        ("application/*", JSON),
        (f"{JSON}, {EVENTS}", JSON),
        (f"{EVENTS}, {JSON}", JSON),
        (f"{JSON};q=0.1, {EVENTS}", JSON),
        (f"text/html, {JSON};q=0.9, */*;q=0.8", JSON),
        ("APPLICATION/JSON", JSON),
        (f"{JSON}; charset=utf-8", JSON),
        (EVENTS, EVENTS),
        ("text/*", EVENTS),
        (f"{JSON};q=0, {EVENTS}", EVENTS),
        (f"{JSON};q=0.0, */*", EVENTS),
        (f"application/*;q=0, {EVENTS};q=0.5", EVENTS),
        (f"{EVENTS};q=0, */*;q=0.1", JSON),
        ("text/html", None),
        ("image/*", None),
        ("*/*;q=0", None),
        (f"{JSON};q=0, {EVENTS};q=0", None),
        (f"{JSON};q=0", None),
        ("nonsense", None),
    ],
)
def test_the_form_of_the_answer_is_what_the_client_accepts(caller, accept, expected):
    """Wildcards and q-values count; 406 only if neither form will do."""
    answer = caller.with_headers(Accept=accept).call("tools/list", 4242)
    if expected is None:
        assert_error(answer, 406, -32600, None)
        return
    assert answer.status == 200
    assert answer.header("Content-Type").partition(";")[0] == expected
    assert answer.message["id"] == 4242
    assert answer.result["tools"]


def test_a_stream_of_one_event_is_framed_as_one(caller):
    """What proxies must know of any stream."""
    answer = caller.with_headers(Accept=EVENTS).call("tools/list")
    assert answer.body.startswith(b"event: message\ndata: {")
    assert answer.body.endswith(b"}\n\n")
    assert answer.body.count(b"\n") == 3
    assert answer.header("X-Accel-Buffering") == "no"
    assert answer.header("Cache-Control") == "no-cache, no-transform"


def test_a_session_can_be_opened_by_a_client_that_takes_events_only(caller):
    member = caller.with_headers(Accept=EVENTS).opened()
    assert member.call("tools/call", name="add", arguments={"a": 1}).result["isError"] is False


@pytest.mark.parametrize(
    "make",
    [
        lambda caller: caller.post(notification("notifications/x"), Mcp_Protocol_Version=MODERN),
        lambda caller: caller.opened().post(notification("notifications/cancelled")),
        lambda caller: caller.opened().send("DELETE"),
        lambda caller: caller.send("OPTIONS"),
    ],
    ids=["modern notification", "legacy notification", "DELETE", "OPTIONS"],
)
@pytest.mark.parametrize("accept", [f"{JSON}, {EVENTS}", EVENTS])
def test_an_answer_without_content_says_of_no_type_that_it_has(caller, make, accept):
    """An empty body is no HTML."""
    answer = make(caller.with_headers(Accept=accept))
    assert answer.status in (202, 204)
    assert answer.body == b""
    assert "html" not in (answer.header("Content-Type") or "")


def test_an_answer_without_content_has_no_length(caller):
    """RFC 9110, section 8.6: MUST NOT. At the view, it is Django's middleware that adds one."""
    if caller.entrance.name != "mount":
        pytest.skip("CommonMiddleware")
    for answer in (caller.send("OPTIONS"), caller.opened().send("DELETE")):
        assert answer.status == 204
        assert answer.header("Content-Length") is None


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "HEAD", "TRACE", "PROPFIND"])
def test_other_methods_are_405(caller, method):
    """2025-11-25, "Listening for Messages", 3: 405 where there are no streams."""
    has_streams = method == "GET" and caller.entrance.name == "mount"
    for version in (MODERN,) if has_streams else (OMIT, LEGACY[-1], MODERN):
        answer = caller.with_headers(Mcp_Protocol_Version=version, Accept=EVENTS).send(method)
        assert answer.status == 405
        assert {"POST", "DELETE", "OPTIONS"} <= set(answer.header("Allow").split(", "))
        if method != "HEAD":
            assert answer.error["code"] == -32600


@pytest.mark.parametrize("version", [OMIT, *LEGACY])
def test_get_without_a_session_is_400_where_there_are_streams(caller, version):
    answer = caller.with_headers(Mcp_Protocol_Version=version).send("GET")
    assert answer.status == (400 if caller.entrance.name == "mount" else 405)
    assert answer.error["code"] == -32600


@pytest.mark.parametrize(("accept", "status"), [("application/json", 406), (EVENTS, 404)])
def test_get_needs_a_session_and_a_client_that_takes_streams(caller, accept, status):
    if caller.entrance.name == "mount":
        unknown = caller.with_headers(Mcp_Session_Id="unknown", Accept=accept)
        assert unknown.send("GET").status == status


def test_delete_without_a_session_is_400(caller):
    """2025-11-25, "Session Management", 2."""
    assert_error(caller.send("DELETE"), 400, -32600, None)


@pytest.mark.parametrize("version", ["1999-01-01", "nonsense"])
def test_delete_with_an_unsupported_version_is_400(caller, version):
    """2025-11-25, "Protocol Version Header": a request with an unsupported one MUST be 400."""
    member = caller.opened()
    assert member.send("DELETE", Mcp_Protocol_Version=version).status == 400
    assert member.call("ping").status == 200


@pytest.mark.parametrize("append", [True, False])
def test_the_endpoint_answers_with_and_without_a_slash(entrance, settings, append):
    """Both answered, no redirect."""
    settings.APPEND_SLASH = append
    for slash in ("", "/"):
        public, members = (Caller(entrance, path + slash) for path in ("/mcp", "/members/mcp"))
        assert public.call("tools/list").status == 200
        assert public.send("PUT").status == 405
        assert members.call("tools/list").status == members.send("GET").status == 401


@pytest.mark.parametrize("path", ["/mcp//", "/mcpx", "/mcp/x", "/x/mcp"])
def test_a_path_that_is_none_of_ours_goes_to_django(caller, path):
    answer = caller.entrance.send("POST", path, list(caller.headers.items()), b"{}")
    assert answer.status == 404
    assert "html" in answer.header("Content-Type")


def test_the_query_is_nobodys_business(caller):
    sender = Caller(caller.entrance, "/mcp?session=1")
    assert sender.call("tools/list").status == 200


def test_every_reply_stays_with_its_caller(caller):
    """A shared cache keeps nothing, a browser guesses nothing."""
    for answer in (caller.call("tools/list"), caller.post(b"{"), caller.send("GET")):
        assert "no-store" in answer.header("Cache-Control")
        assert answer.header("X-Content-Type-Options") == "nosniff"


def test_no_answer_says_more_of_a_session_than_its_opening(caller):
    """A modern request neither gets nor echoes a session."""
    member = caller.opened()
    assert member.call("ping").header("Mcp-Session-Id") is None
    modern = caller.with_headers(Mcp_Session_Id=member.session)
    answer = modern.call("tools/call", name="whoami")
    assert answer.header("Mcp-Session-Id") is None
    assert answer.result["structuredContent"]["session"] is False
    assert caller.with_headers(Mcp_Session_Id="unknown").call("tools/list").status == 200


def test_a_session_id_is_visible_ascii_and_long_enough_to_be_a_secret(caller):
    """2025-11-25, "Session Management", 1."""
    secrets = {caller.opened().session for _ in range(3)}
    assert len(secrets) == 3
    for secret in secrets:
        assert len(secret) >= 32
        assert all("\x21" <= character <= "\x7e" for character in secret)


def test_authentication_may_be_asynchronous(entrance):
    caller = Caller(entrance, "/async/mcp")
    assert caller.call("tools/list").status == 200
    assert caller.opened().call("ping").status == 200


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_authentication_may_be_an_asynchronous_object(entrance):
    status = Caller(entrance, "/object/mcp").call("tools/list").status
    gc.collect()
    assert status == 200


def test_a_browser_session_authenticates_at_every_entrance(entrance, client, django_user_model):
    """The mount runs no middleware, and knows who is logged in nevertheless."""
    anna = django_user_model.objects.create_user("anna")
    caller = Caller(entrance, "/session/mcp")
    assert caller.call("tools/list").status == 401
    client.force_login(anna)
    cookie = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    known = caller.with_headers(Cookie=cookie)
    assert known.call("tools/call", name="whoami").result["structuredContent"]["user"] == "anna"
    anna.is_active = False
    anna.save()
    assert known.call("tools/list").status == 401


def test_the_scripts_prefix_is_known_to_user_code(caller):
    """Below a prefix, a tool sees the whole path, and ``reverse()`` makes links that work."""
    caller.entrance.root_path = "/app"
    seen = caller.call("tools/call", name="whoami").result["structuredContent"]
    assert seen["path"] == "/app/mcp"
    assert seen["link"] == "/app/mcp/elsewhere"


def test_a_redirect_is_never_the_answer(caller):
    """POST after a redirect would be GET."""
    for path in ("/mcp", "/mcp/"):
        for method in ("GET", "POST", "DELETE", "OPTIONS", "HEAD"):
            answer = Caller(caller.entrance, path).send(method, b"{}")
            assert not 300 <= answer.status < 400


def test_a_refused_request_leaves_no_row(caller):
    Session.objects.all().delete()
    caller.post(b"{")
    caller.with_headers(Content_Type="text/plain").initialize(LEGACY[-1])
    caller.with_headers(Accept="text/html").initialize(LEGACY[-1])
    caller.with_headers(Origin="https://elsewhere.example").initialize(LEGACY[-1])
    caller.post(request("initialize"))
    caller.initialize(LEGACY[-1], clientInfo={})
    assert Session.objects.count() == 0
