"""Sentry: its real SDK, of which nothing is replaced but the way out."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import pytest
import sentry_sdk
from django.conf import settings as django_settings
from django.http import HttpRequest, HttpResponse
from sentry_sdk.consts import DEFAULT_OPTIONS
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations.dedupe import DedupeIntegration
from sentry_sdk.integrations.django import DjangoIntegration
from sentry_sdk.transport import Transport

from django_mcp.contrib.sentry import apps as sentry_apps
from django_mcp.contrib.sentry.hiding import FILTERED, hidden
from django_mcp.testing import MCPClient
from tests.support.messages import META_CAPABILITIES, modern, request, tool_call

from . import site
from .conftest import TOKEN

PLANTED = 'planted-"in\\meta"-with-ünï-0123456789'
"""Texts have it in several spellings: as it is, in JSON, in what repr() makes of it."""
CAN_BE_ASKED = {META_CAPABILITIES: {"elicitation": {"form": {}}}}
SESSION = "c2VjcmV0IG9mIGEgc2Vzc2lvbg-xyz"


class Outbox(Transport):
    """Keeps what would be sent."""

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        super().__init__(options)
        self.envelopes: list[Envelope] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        self.envelopes.append(envelope)

    def _of(self, kind: str) -> list[dict[str, Any]]:
        items = [item for each in self.envelopes for item in each.items if item.type == kind]
        return [json.loads(item.get_bytes()) for item in items]

    @property
    def errors(self) -> list[dict[str, Any]]:
        return self._of("event")

    @property
    def transactions(self) -> list[dict[str, Any]]:
        return self._of("transaction")

    @property
    def everything(self) -> str:
        return b"".join(each.serialize() for each in self.envelopes).decode()


ALL_THAT_IS_PERSONAL: dict[str, Any] = {"send_default_pii": True}
ALL_THAT_CAN_BE = {"data_collection": {"user_info": True}}
"""The newer way, in which Sentry hides less."""
WAYS = [ALL_THAT_IS_PERSONAL, *([ALL_THAT_CAN_BE] if "data_collection" in DEFAULT_OPTIONS else [])]


TRACES: list[dict[str, Any]] = [{}, {"traces_sample_rate": 1.0}]
if "trace_lifecycle" in DEFAULT_OPTIONS:
    TRACES.append({"traces_sample_rate": 1.0, "trace_lifecycle": "stream"})


def initialized(**options: Any) -> Outbox:
    """Set Sentry up as a site does that wants to know everything."""
    outbox = Outbox()
    given = {
        "transport": outbox,
        "integrations": [DjangoIntegration()],
        "auto_enabling_integrations": False,
        "max_request_body_size": "always",
        "attach_stacktrace": True,
        **options,
    }
    if "data_collection" not in options:
        given |= ALL_THAT_IS_PERSONAL
    with warnings.catch_warnings(action="ignore"):  # newer ones deprecate it
        sentry_sdk.init("http://key@127.0.0.1:9/1", **given)
    return outbox


@pytest.fixture(autouse=True)
def _app() -> Iterator[None]:
    """The app as it is installed."""
    package = sys.modules["django_mcp.contrib.sentry"]
    sentry_apps.SentryConfig("django_mcp.contrib.sentry", package).ready()
    yield
    sentry_sdk.get_client().close()
    sentry_sdk.get_global_scope().set_client(None)
    DedupeIntegration.reset_last_seen()


@pytest.fixture
def outbox() -> Outbox:
    """What is sent."""
    return initialized()


@pytest.mark.parametrize("tool", ["crash", "acrash", "speak_and_crash"])
def test_a_tool_that_fails_is_one_event_named_after_the_call(caller, outbox, tool):
    answer = caller.call("tools/call", "seven", name=tool, arguments={})
    (event,) = outbox.errors
    assert event["transaction"] == f"MCP tools/call {tool}"
    assert event["user"]["id"] == "7"
    assert event["exception"]["values"][-1]["type"] == "Broken"
    tags = {
        "mcp.server": "observed",
        "mcp.method": "tools/call",
        "mcp.name": tool,
        "mcp.era": "modern",
        "mcp.revision": "2026-07-28",
        "mcp.request_id": "seven",
        "mcp.client": "desk",
    }
    assert event["tags"].items() >= tags.items()
    reference = re.search(r"reference (\w+)", str(answer.messages()))
    assert reference is not None
    assert event["extra"]["reference"] == reference[1]
    assert TOKEN not in outbox.everything


def test_a_session_is_a_tag_by_its_public_id(caller, outbox):
    member = caller.opened()
    member.tool("crash")
    (event,) = outbox.errors
    assert event["tags"]["mcp.session"]
    assert member.session not in outbox.everything


def test_nothing_of_a_call_is_in_what_comes_later(caller, outbox):
    caller.tool("crash")
    sentry_sdk.capture_message("later")
    _, event = outbox.errors
    assert "mcp.name" not in event.get("tags", {})
    assert not str(event.get("transaction")).startswith("MCP")


def test_what_a_function_sends_itself_belongs_to_its_call(caller, outbox):
    site.look = lambda: sentry_sdk.capture_message("from inside")
    for tool in ("add", "aadd"):
        caller.tool(tool, a=1, b=2)
    assert [each["transaction"] for each in outbox.errors] == [
        "MCP tools/call add",
        "MCP tools/call aadd",
    ]


def test_calls_of_a_batch_are_told_apart(caller, outbox):
    member = caller.opened("2025-03-26")
    member.post([tool_call("crash", 1), tool_call("acrash", 2)])
    names = [(each["transaction"], each["tags"]["mcp.request_id"]) for each in outbox.errors]
    assert names == [("MCP tools/call crash", "1"), ("MCP tools/call acrash", "2")]


def test_an_answer_that_has_no_json_belongs_to_its_call(caller, outbox):
    caller.tool("unencodable")
    (event,) = outbox.errors
    assert event["transaction"] == "MCP tools/call unencodable"


def crash_afterwards(get_response: Callable[[HttpRequest], HttpResponse]) -> Any:
    """Return a middleware that breaks when the view has answered."""

    def middleware(request: HttpRequest) -> HttpResponse:
        get_response(request)
        raise RuntimeError("in a middleware")

    return middleware


def secrets_in(text: str, *secrets: str) -> list[str]:
    """Return which secrets a text shows, in whatever spelling; also a good part of one."""
    spelt = {
        form
        for each in secrets
        for form in (each, each[:20], each[-20:], json.dumps(each)[1:-1], repr(each)[1:-1])
    }
    return [each for each in spelt if each in text or json.dumps(each)[1:-1] in text]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: next(iter(way)))
@pytest.mark.parametrize("traces", TRACES)
@pytest.mark.parametrize("length", [None, 300])
def test_no_secret_is_in_an_event_of_a_tool(caller, way, traces, length):
    outbox = initialized(**way, **traces, max_value_length=length)
    meta = {**CAN_BE_ASKED, "com.example/secret": PLANTED, "com.example/deep": [{"a": PLANTED}]}
    call = {"name": "ask_and_crash", "arguments": {}, "meta": meta}
    message, headers = modern("tools/call", **call)
    asked = caller.post(message, **headers).result
    (key,) = asked["inputRequests"]
    state = asked["requestState"]
    answer = {key: {"action": "accept", "content": {"value": "Anna"}}}
    message, headers = modern("tools/call", **call, inputResponses=answer, requestState=state)
    caller.post(message, **headers)
    sentry_sdk.flush()
    (event,) = outbox.errors
    assert "bytes for Anna" in str(event)
    assert "com.example/secret" in outbox.everything or length
    assert secrets_in(outbox.everything, TOKEN, state, PLANTED) == []


@pytest.mark.parametrize("way", WAYS, ids=lambda way: next(iter(way)))
@pytest.mark.parametrize("traces", TRACES)
@pytest.mark.parametrize("where", ["AUTH", "middleware", "dispatch", "body"])
def test_no_secret_is_in_an_event_of_a_crash_elsewhere(
    caller, settings, monkeypatch, way, traces, where
):
    outbox = initialized(**way, **traces)
    token = TOKEN if where != "AUTH" else f"crash-{TOKEN}"
    if where == "middleware":
        settings.MIDDLEWARE = [f"{__name__}.crash_afterwards", *django_settings.MIDDLEWARE]
    if where == "dispatch":
        monkeypatch.setattr("django_mcp.server.dispatch._read_params", fail)
    if where == "body":
        monkeypatch.setattr("django_mcp.http.admission.read_body", fail)
    member = caller.with_headers(Mcp_Session_Id=SESSION, Authorization=f"Bearer {token}")
    message, headers = modern(
        "tools/call", name="add", arguments={}, requestState=PLANTED, meta={"x/y": PLANTED[::-1]}
    )
    member.post(message, **headers)
    member.post(request("ping", _meta={"x/y": PLANTED}))
    sentry_sdk.flush()
    assert outbox.errors or (where == "middleware" and caller.entrance.name == "mount")
    assert secrets_in(outbox.everything, token, SESSION, PLANTED, PLANTED[::-1]) == []


def fail(*args: Any) -> Any:
    raise RuntimeError("planted")


def test_a_transaction_is_named_after_the_call(caller):
    outbox = initialized(traces_sample_rate=1.0)
    caller.tool("add", a=1, b=2)
    (transaction,) = outbox.transactions
    assert transaction["transaction"] == "MCP tools/call add"
    operations = [transaction["contexts"]["trace"]["op"]]
    operations += [each["op"] for each in transaction["spans"]]
    assert "mcp.server" in operations


def test_what_the_site_wants_to_happen_to_an_event_still_does(caller):
    seen: list[str] = []

    def before_send(event: Any, hint: Any) -> Any:
        seen.append(str(event))
        return None if "crash" in event["transaction"] else event

    outbox = initialized(before_send=before_send)
    message, headers = modern("tools/call", name="crash", arguments={}, meta={"x/y": PLANTED})
    caller.post(message, **headers)
    assert outbox.errors == []
    assert seen
    assert secrets_in(str(seen), TOKEN, PLANTED) == []


@pytest.mark.parametrize("tool", ["add", "aadd"])
def test_a_thread_that_a_function_has_started_knows_the_secrets_of_its_call(caller, outbox, tool):
    """Nothing on its stack does."""

    def send() -> None:
        sentry_sdk.capture_message(f"It is {PLANTED} of {TOKEN}")

    def in_a_thread() -> None:
        thread = threading.Thread(target=copy_context().run, args=(send,))
        thread.start()
        thread.join()

    site.look = in_a_thread
    arguments = {"a": 1, "b": 2}
    message, headers = modern("tools/call", name=tool, arguments=arguments, meta={"x/y": PLANTED})
    caller.post(message, **headers)
    (event,) = outbox.errors
    assert event["logentry"]["message"] if "logentry" in event else event["message"]
    assert event["transaction"] == f"MCP tools/call {tool}"
    assert secrets_in(outbox.everything, TOKEN, PLANTED) == []


def with_urlconf(get_response: Callable[[HttpRequest], HttpResponse]) -> Any:
    """Return a middleware that chooses URLs for each request: Sentry then looks it up again."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.urlconf = django_settings.ROOT_URLCONF  # type: ignore[attr-defined]
        return get_response(request)

    return middleware


@pytest.mark.parametrize("tool", ["crash", "acrash"])
def test_sentry_does_not_name_it_after_the_url_again(caller, outbox, settings, tool):
    settings.MIDDLEWARE = [f"{__name__}.with_urlconf", *django_settings.MIDDLEWARE]
    # What is logged is the first of two that are the same.
    logging.getLogger("django_mcp.server").addFilter(drop)
    try:
        caller.tool(tool)
    finally:
        logging.getLogger("django_mcp.server").removeFilter(drop)
    assert [each["transaction"] for each in outbox.errors] == [f"MCP tools/call {tool}"]


def drop(record: logging.LogRecord) -> bool:
    return False


def test_logs_show_no_secret_either(caller):
    outbox = initialized(enable_logs=True)
    site.look = lambda: sentry_sdk.logger.info(f"Authorization: Bearer {TOKEN}")
    caller.tool("add", a=1, b=2)
    sentry_sdk.flush()
    assert "Authorization" in outbox.everything
    assert TOKEN not in outbox.everything


def test_before_sentry_is_set_up_nothing_is_done(caller):
    """And it may be set up after the apps are ready."""
    assert caller.tool("add", a=1, b=2).result["isError"] is False
    outbox = initialized()
    caller.tool("crash")
    assert [each["transaction"] for each in outbox.errors] == ["MCP tools/call crash"]
    assert TOKEN not in outbox.everything


def test_with_the_test_client(outbox, user):
    MCPClient(site.server).as_user(user).tool("crash")
    assert [each["transaction"] for each in outbox.errors] == ["MCP tools/call crash"]


@pytest.mark.parametrize(
    ("event", "clean"),
    [
        ({"Mcp-Session-Id": "abc"}, {"Mcp-Session-Id": FILTERED}),
        (
            {"a": [["b'mcp-session-id'", "b'abcdefghij'"], "abcdefghij"]},
            {"a": [["b'mcp-session-id'", FILTERED], FILTERED]},
        ),
        (
            {"a": "{'requestState': 'abc', 'x': 'y'}"},
            {"a": f"{{'requestState': '{FILTERED}', 'x': 'y'}}"},
        ),
        ({"a": "request_state='abc'"}, {"a": f"request_state='{FILTERED}'"}),
        ({"a": '{"requestState":"abc"}'}, {"a": f'{{"requestState":"{FILTERED}"}}'}),
        ({"a": r"{\"requestState\": \"abc\"}"}, {"a": rf"{{\"requestState\": \"{FILTERED}\"}}"}),
        (
            {"Authorization": "Basic zzzzzzzzzz", "b": "Basic zzzzzzzzzz"},
            {"Authorization": FILTERED, "b": FILTERED},
        ),
        ({"a": "bearer abc.d-e"}, {"a": f"bearer {FILTERED}"}),
        ({"_meta": {"a": {"": {"len": 5}}}}, {"_meta": {"a": {"": {"len": 5}}}}),
        (
            {"a": {"_meta": {"progressToken": 1, "x": 2}}},
            {"a": {"_meta": {"progressToken": 1, "x": FILTERED}}},
        ),
        ({"request_state": None, "a": 5, "b": True}, {"request_state": None, "a": 5, "b": True}),
        ({"a": "it ends in abcdefghi"}, {"a": f"it ends in {FILTERED}"}),
        ({"a": "it ends in abcdefghi..."}, {"a": f"it ends in {FILTERED}"}),
    ],
)
def test_what_is_hidden_where(event, clean):
    assert hidden(event, ["abcdefghijkl"]) == clean
