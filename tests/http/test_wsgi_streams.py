"""Streams under WSGI: each holds a thread of the server, so there are as many as the site wants."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.handlers.wsgi import WSGIHandler
from django.db import connections
from django.http import HttpRequest

from django_mcp import Context, MCPServer, endpoint
from django_mcp.auth import Principal
from django_mcp.http import views
from django_mcp.http.event_stream import ON_THREAD, Pace
from django_mcp.protocol import sse
from django_mcp.running.process_loop import process_loop
from django_mcp.running.wsgi_streams import wsgi_streams
from django_mcp.store.in_flight.running_requests import StopReason
from django_mcp.store.ledger import ledger
from tests.support.messages import HEADERS, INITIALIZED, encoded, modern, opening, request
from tests.support.sites import urlconf
from tests.support.waiting import BOUND

pytestmark = pytest.mark.django_db(transaction=True)
server = MCPServer("streams", version="1")


def until(ask: Callable[[], Any]) -> None:
    """Wait until ``ask`` says so."""
    end = time.monotonic() + BOUND
    while not ask():
        assert time.monotonic() < end
        time.sleep(0.02)


class Gate:
    """Holds a tool until the test lets it go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()
        self.cancelled = threading.Event()


gate = Gate()


@server.tool
def speak(ctx: Context, word: str = "hello") -> str:
    """Say something, wait, and end."""
    get_user_model().objects.exists()
    if word:
        ctx.log("info", word)
    gate.entered.set()
    while not gate.opened.wait(0.02):
        if ctx.cancelled:
            gate.cancelled.set()
            ctx.log("info", "too late")
    return "said"


@server.tool
def ask(ctx: Context) -> str:
    """Ask the user."""
    return str(ctx.elicit("Sure?", bool))


@server.tool
def here(http: HttpRequest) -> str:
    """Say on which thread this runs."""
    return threading.current_thread().name


@server.tool
def leave(ctx: Context) -> None:
    """End the thread, as a library may."""
    raise SystemExit


def auth(http: HttpRequest) -> Principal:
    get_user_model().objects.exists()
    return Principal(get_user_model()())


class Response:
    """An answer as a server takes it, piece by piece, on a thread of its own."""

    def __init__(self, message: Any, headers: dict[str, str], method: str = "POST") -> None:
        body = b"" if message is None else encoded(message)
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": "/mcp",
            "SERVER_NAME": "testserver",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "testserver",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.url_scheme": "http",
            "wsgi.input": BytesIO(body),
            "wsgi.errors": None,
            "wsgi.multithread": True,
            **{
                f"HTTP_{name.upper().replace('-', '_')}": text
                for name, text in {**HEADERS, **headers}.items()
            },
        }
        began: list[Any] = []
        self.whole = WSGIHandler()(environ, lambda *started: began.extend(started))
        self.headers = {name.lower(): text for name, text in began[1]}
        self.status = began[0]
        self.pieces: Iterator[bytes] = iter(self.whole)

    @property
    def streams(self) -> bool:
        return self.headers.get("content-type") == "text/event-stream"

    def close(self) -> None:
        self.whole.close()

    def rest(self) -> bytes:
        rest = b"".join(self.pieces)
        self.close()
        return rest


def call(tool: str, session: str = "", **arguments: Any) -> Response:
    """Call a tool, in the modern era if there is no session."""
    params = {"name": tool, "arguments": arguments}
    if session:
        return Response(request("tools/call", **params), {"Mcp-Session-Id": session})
    meta = {"io.modelcontextprotocol/logLevel": "debug"}
    message, headers = modern("tools/call", meta=meta, **params)
    return Response(message, headers)


def opened(revision: str = "2025-11-25", **capabilities: Any) -> str:
    """Open a session, and return its key."""
    began = request("initialize", 0, **opening(revision))
    began["params"]["capabilities"] = capabilities
    key = Response(began, {}).headers["mcp-session-id"]
    Response(INITIALIZED, {"Mcp-Session-Id": key})
    return key


@pytest.fixture(autouse=True)
def site(settings) -> Iterator[None]:
    global gate
    gate = Gate()
    settings.MIDDLEWARE = []
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server))
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": auth, "WSGI_STREAMS": 1}
    yield
    gate.opened.set()
    for running in ledger().requests.running():
        running.stop(StopReason.SHUTTING_DOWN)
    until(lambda: not ledger().requests)


def paced(monkeypatch, **seconds: float) -> None:
    """Let streams be paced otherwise."""
    given = {"keep_alive_seconds": 5.0, "max_age_seconds": 60.0, "question_seconds": 3.0}
    marks = {"ages_while_listening": True, "begins_late": True}
    monkeypatch.setattr(views, "ON_THREAD", Pace(**{**given, **seconds}, **marks))


@pytest.mark.parametrize("in_session", [False, True])
def test_what_a_call_says_comes_as_it_says_it(in_session):
    answer = call("speak", opened() if in_session else "")
    assert answer.streams
    head = next(answer.pieces)
    while b"hello" not in head:
        head += next(answer.pieces)
    assert b"said" not in head
    gate.opened.set()
    assert b'"text":"said"' in answer.rest()


def test_the_thread_that_waits_holds_no_connection():
    answer = call("speak")
    next(answer.pieces)
    held = [each for each in connections.all(initialized_only=True) if each.connection is not None]
    # SQLite in memory is its connection.
    assert all(each.is_in_memory_db() for each in held if each.vendor == "sqlite")
    assert all(each.vendor == "sqlite" for each in held)
    gate.opened.set()
    answer.rest()


def test_beyond_so_many_a_call_is_answered_in_one_piece():
    first = call("speak")
    assert first.streams
    next(first.pieces)
    gate.opened.set()
    second = call("speak")
    # What it said comes with its end.
    assert b"hello" in second.rest()
    assert b"said" in first.rest()
    gate.opened.clear()
    third = call("speak")
    assert b"hello" in next(third.pieces) + next(third.pieces)
    third.close()


def test_a_thread_is_free_again_when_its_stream_ends_and_when_its_client_goes():
    for word in ("hello", "again"):
        answer = call("speak", word=word)
        next(answer.pieces)
        assert not wsgi_streams().take()
        answer.close()
        assert wsgi_streams().take()
        wsgi_streams().give_back()


def test_without_streams_everything_is_collected(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "WSGI_STREAMS": 0}
    gate.opened.set()
    assert b"hello" in call("speak").rest()
    refused = call("ask", opened(elicitation={}))
    assert refused.headers["content-type"] == "application/json"
    assert json.loads(refused.rest())["result"]["isError"]


def test_a_modern_client_that_goes_cancels_its_call():
    answer = call("speak")
    next(answer.pieces)
    answer.close()
    assert gate.cancelled.wait(BOUND)


def test_a_modern_call_that_says_nothing_streams_once_it_lasts(settings):
    """Only from writing does the server learn that its client has gone."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STREAM_AFTER_SECONDS": 0.05}
    answer = call("speak", word="")
    assert answer.streams
    assert next(answer.pieces) == sse.KEEP_ALIVE
    answer.close()
    assert gate.cancelled.wait(BOUND)


def test_who_waits_for_a_person_is_asked_to_come_back(monkeypatch):
    """No thread waits for people; what they answer may come in at any process."""
    paced(monkeypatch, question_seconds=0.05)
    key = opened(elicitation={})
    answer = call("ask", key)
    text = answer.rest().decode()
    assert "elicitation/create" in text
    assert "retry:" in text.rsplit("elicitation/create", 1)[1]
    assert '"result"' not in text
    events = [each for each in text.split("\n\n") if each]
    last = [line[4:] for each in events for line in each.split("\n") if line.startswith("id: ")][-1]
    asked = next(
        json.loads(line[6:])
        for each in events
        for line in each.split("\n")
        if line.startswith("data: ") and "elicitation/create" in line
    )
    content = {"action": "accept", "content": {"value": True}}
    given = {"jsonrpc": "2.0", "id": asked["id"], "result": content}
    name = next(iter(asked["params"]["requestedSchema"]["properties"]))
    content["content"] = {name: True}
    assert Response(given, {"Mcp-Session-Id": key}).status.startswith("202")
    back = {"Mcp-Session-Id": key, "Last-Event-ID": last, "Accept": "text/event-stream"}
    again = Response(None, back, method="GET")
    assert again.streams
    assert '"text":"True"' in again.rest().decode()


def test_earlier_revisions_hold_the_stream_while_they_wait_for_a_person(monkeypatch):
    paced(monkeypatch, keep_alive_seconds=0.05, question_seconds=0.05)
    answer = call("ask", opened("2025-06-18", elicitation={}))
    heard = b""
    while heard.count(sse.KEEP_ALIVE) < 5 and b"retry" not in heard:
        heard += next(answer.pieces)
    assert b"elicitation/create" in heard
    assert b"retry:" not in heard
    answer.close()


def test_a_call_goes_on_when_its_stream_has_grown_old(monkeypatch):
    """Its client comes back for the result."""
    paced(monkeypatch, max_age_seconds=0.2)
    key = opened()
    text = heard_with("hello", key, call("speak", key).rest().decode())
    assert "retry:" in text.rsplit("hello", 1)[1]
    assert '"error"' not in text
    gate.opened.set()
    assert '"error"' not in heard_with('"text":"said"', key, text)


def heard_with(word: str, session: str, text: str) -> str:
    """Return all that a client hears who has heard ``text``, and comes back until it has ``word``.

    On a busy machine a stream may have grown old before.
    """
    end = time.monotonic() + BOUND
    while word not in text:
        assert time.monotonic() < end
        *_, last = re.findall("^id: (.+)$", text, re.MULTILINE)
        back = {"Mcp-Session-Id": session, "Last-Event-ID": last, "Accept": "text/event-stream"}
        text += Response(None, back, method="GET").rest().decode()
    return text


def test_listening_ends_after_a_while_with_its_result(monkeypatch):
    paced(monkeypatch, max_age_seconds=0.2)
    message, headers = modern("subscriptions/listen", notifications={"toolsListChanged": True})
    answer = Response(message, headers)
    assert answer.streams
    text = answer.rest().decode()
    assert "notifications/subscriptions/acknowledged" in text
    assert '"toolsListChanged":true' in text
    assert '"resultType":"complete"' in text


def test_the_stream_of_the_session_itself_would_hold_a_thread_for_ever():
    headers = {"Mcp-Session-Id": opened(), "Accept": "text/event-stream"}
    assert Response(None, headers, method="GET").status.startswith("405")


def test_a_response_that_nobody_takes_gives_its_thread_back():
    answer = call("speak")
    del answer.whole, answer.pieces
    until(lambda: wsgi_streams()._open == 0)
    assert ON_THREAD.keep_alive_seconds < 10
    assert process_loop() is not None


def test_of_a_batch_each_call_runs_where_it_belongs():
    """What takes the request runs in its thread, whatever else the batch holds."""
    gate.opened.set()
    calls = [
        request("tools/call", number, name=name, arguments={})
        for number, name in enumerate(("speak", "here", "unknown"), 1)
    ]
    answer = Response(calls, {"Mcp-Session-Id": opened("2025-03-26")})
    text = answer.rest().decode()
    found = (
        [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]
        if answer.streams
        else json.loads(text)
    )
    answers = {each["id"]: each for each in found if "id" in each}
    assert answers.keys() == {1, 2, 3}
    assert answers[1]["result"]["content"][0]["text"] == "said"
    assert answers[2]["result"]["content"][0]["text"] == threading.current_thread().name
    assert answers[3]["error"]["code"] == -32602


def test_a_function_that_ends_its_thread_does_not_keep_the_place_of_a_stream():
    assert b"isError" in call("leave").rest()
    assert wsgi_streams()._open == 0


def test_a_thread_that_is_interrupted_does_not_keep_it_either(monkeypatch):
    async def interrupt(request: Any, endpoint: Any, runner: Any) -> None:
        assert runner.reserve_stream()
        raise KeyboardInterrupt

    monkeypatch.setattr(views, "respond", interrupt)
    with pytest.raises(KeyboardInterrupt):
        call("speak")
    assert wsgi_streams()._open == 0
