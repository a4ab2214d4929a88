"""
Every message that the server sends in any test, held against the specification.

``watch()`` stands between the entrances and the endpoint, sees each request and its reply, and
collects what is wrong. The fixture ``valid_wire`` puts it there for every test and fails the test
at its end, so that a test that did not look at a reply, or swallowed its error, fails nevertheless.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from mcp_types import PROTOCOL_VERSION_META_KEY
from mcp_types.jsonrpc import PARSE_ERROR, JSONRPCError, JSONRPCResponse
from mcp_types.methods import (
    parse_server_notification,
    parse_server_request,
    validate_server_result,
)
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from tests.support.answers import messages_of

from . import schemas
from . import version_facts as facts

MAX_ID_LENGTH = 512
"""Ids longer than this need not be echoed: the server bounds them."""

_MODERN_CODES = {-32020: "HeaderMismatchError"}
_MODERN_CODES[-32021] = "MissingRequiredClientCapabilityError"
_MODERN_CODES[-32022] = "UnsupportedProtocolVersionError"
_LEGACY_CODES = {-32001, -32002, -32042}


@dataclass(frozen=True, slots=True)
class Traffic:
    """One request as it was read, and its reply."""

    method: str
    headers: Any
    received: bytes | None
    """The request's body; ``None`` where it was refused unread."""
    status: int
    reply_headers: dict[str, str]
    sent: bytes
    complete: bool = True
    """Whether the client has seen the reply end."""
    resumed: dict[Any, Any] = field(default_factory=dict)
    """On a GET: what was asked in the session before."""

    @property
    def incoming(self) -> Any:
        """The request's body as JSON; ``None`` where it is none."""
        try:
            return json.loads(self.received or b"")
        except (ValueError, RecursionError):
            return None


@dataclass(slots=True)
class Wire:
    """What went over the wire in one test."""

    found: list[str] = field(default_factory=list)
    sessions: dict[str, str] = field(default_factory=dict, repr=False)
    """The revision that each session negotiated, by its id."""
    requests: dict[str, dict[Any, Any]] = field(default_factory=dict, repr=False)
    """What was asked in each session, by the request's id."""
    replies: int = 0

    def __repr__(self) -> str:
        return f"<Wire {self.replies} replies, {len(self.found)} faults>"

    def observe(self, traffic: Traffic) -> None:
        """Check one reply, and learn from it which revision its session speaks."""
        self.replies += 1
        self._learn(traffic)
        if traffic.method == "GET":
            traffic = replace(traffic, resumed=self._requests_of(traffic))
        revision = self._revision(traffic)
        for fault in (*http_faults(traffic), *body_faults(traffic, revision)):
            self.found.append(f"{revision or 'unknown revision'}: {fault}\n  {_excerpt(traffic)}")

    def take(self) -> list[str]:
        """Return what was found, and forget it: for tests of this very check."""
        found, self.found = self.found, []
        return found

    def was_sent_elsewhere(self, session: str, message: dict[str, Any]) -> None:
        """Know a request of a session that another process has received."""
        self.requests.setdefault(session, {})[_key(message["id"])] = message

    def learn_requests(self, traffic: Traffic) -> None:
        """Know what was asked, as soon as an answer begins: its end may come on another stream."""
        own = self.requests.setdefault(traffic.headers.get("Mcp-Session-Id") or "", {})
        asked = traffic.incoming if isinstance(traffic.incoming, list) else [traffic.incoming]
        own.update({_key(each["id"]): each for each in asked if _has_id(each)})

    def _learn(self, traffic: Traffic) -> None:
        self.learn_requests(traffic)
        session = traffic.reply_headers.get("mcp-session-id")
        if session:
            result = json.loads(traffic.sent.partition(b"data: ")[2] or traffic.sent)["result"]
            self.sessions[session] = result["protocolVersion"]

    def _requests_of(self, traffic: Traffic) -> dict[Any, Any]:
        return self.requests.get(traffic.headers.get("Mcp-Session-Id") or "", {})

    def _revision(self, traffic: Traffic) -> str | None:
        incoming = traffic.incoming
        header = (traffic.headers.get("Mcp-Protocol-Version") or "").strip()
        opened = traffic.reply_headers.get("mcp-session-id")
        named = (
            _stated(incoming)
            or self.sessions.get(opened or "")
            or (header if header in MODERN_PROTOCOL_VERSIONS else None)
            or self.sessions.get(traffic.headers.get("Mcp-Session-Id") or "")
            or header
        )
        return named if named in KNOWN_PROTOCOL_VERSIONS else None


def http_faults(traffic: Traffic) -> Iterator[str]:
    """Yield what is wrong with the HTTP response, whatever it carries."""
    headers, status = traffic.reply_headers, traffic.status
    if status in (202, 204) and traffic.sent:
        yield f"{status} with a body"
    if status == 401 and not headers.get("www-authenticate"):
        yield "401 without WWW-Authenticate"
    if status == 405 and not headers.get("allow"):
        yield "405 without Allow"
    if status >= 300 and status < 400:
        yield f"a redirect, {status}"
    if "mcp-session-id" in headers and _requests(traffic.incoming)[:1] != ["initialize"]:
        yield "Mcp-Session-Id on a reply to something else than initialize"
    if headers.get("content-type", "").startswith("application/json") and b"\n" in traffic.sent:
        yield "JSON of more than one line"


def body_faults(traffic: Traffic, revision: str | None) -> Iterator[str]:
    """Yield what is wrong with the messages of a reply."""
    if not traffic.sent:
        if traffic.complete and traffic.status not in (202, 204) and traffic.method != "HEAD":
            yield f"{traffic.status} without a body"
        return
    try:
        sent = messages_of(traffic.reply_headers.get("content-type"), traffic.sent)
    except (ValueError, AssertionError) as error:
        yield f"the body is no sequence of messages: {error}"
        return
    replies = [each for each in sent if isinstance(each, list) or "method" not in each]
    for each in sent:
        if isinstance(each, dict) and "method" in each:
            yield from spoken_faults(each, revision)
    yield from _order_faults(sent, replies, traffic)
    incoming = traffic.incoming
    for reply in replies:
        if traffic.method == "GET" and traffic.status == 200:
            incoming = traffic.resumed.get(_key(reply.get("id")))
        asked = _asked_by(reply, incoming)
        yield from reply_faults(reply, asked, traffic.status, revision)


def spoken_faults(message: dict[str, Any], revision: str | None) -> Iterator[str]:
    """Yield what is wrong with a notification or a request that the server sends."""
    allowed = {"jsonrpc", "method", "params"} | ({"id"} if "id" in message else set())
    if message.get("jsonrpc") != "2.0" or not set(message) <= allowed:
        yield f"not a JSON-RPC message: members {sorted(message)}"
    if revision is None:
        return
    parse = parse_server_request if "id" in message else parse_server_notification
    try:
        parse(message["method"], revision, message.get("params"))
    except KeyError:
        yield f"{message['method']!r} from the server, which {revision} does not have"
        return
    except ValidationError as error:
        yield f"mcp-types, {message['method']}: {error.errors(include_url=False)[:3]}"
    definition = schemas.definition_of_method(revision, message["method"])
    if definition:
        # Until 2025-06-18 the schemas describe messages without their envelope.
        described = schemas.definitions(revision)[definition]["properties"]
        known = {name: value for name, value in message.items() if name in described}
        yield from schemas.faults(known, revision, definition)


def _order_faults(sent: list[Any], replies: list[Any], traffic: Traffic) -> Iterator[str]:
    """The responses come last, and a complete reply holds one for each request."""
    if replies and sent[-1] not in replies:
        yield "something after the last response"
    if traffic.method == "POST" and traffic.complete and traffic.status == 200:
        asked = traffic.incoming if isinstance(traffic.incoming, list) else [traffic.incoming]
        expected = 1 if replies and isinstance(replies[0], list) else len(asked)
        if len(replies) != min(expected, len([each for each in asked if _has_id(each)]) or 1):
            yield f"{len(replies)} responses to {len(asked)} messages"


def _asked_by(reply: Any, incoming: Any) -> Any:
    """Return the request of a batch that a response on a stream belongs to."""
    if isinstance(reply, list) or not isinstance(incoming, list):
        return incoming
    asked = {_key(each["id"]): each for each in incoming if _has_id(each)}
    return asked.get(_key(reply.get("id")))


def reply_faults(reply: Any, incoming: Any, status: int, revision: str | None) -> Iterator[str]:
    """Yield what is wrong with one message, or one batch, as the reply to ``incoming``."""
    if isinstance(reply, list):
        if revision != "2025-03-26":
            yield "a batch, which only 2025-03-26 has"
        asked = {_key(each["id"]): each for each in incoming if _has_id(each)}
        for each in reply:
            request = asked.get(_key(each.get("id")))
            yield from message_faults(each, request, status, revision)
        return
    yield from message_faults(reply, incoming, status, revision)


def message_faults(message: Any, request: Any, status: int, revision: str | None) -> Iterator[str]:
    """Yield what is wrong with one response as the answer to ``request``."""
    if not isinstance(message, dict):
        yield "not a JSON object"
        return
    yield from _envelope_faults(message, status)
    yield from _id_faults(message, request)
    if revision is None:
        return
    if "error" in message:
        yield from error_faults(message["error"], revision)
    elif isinstance(message.get("result"), dict) and isinstance(request, dict):
        result = _without_extensions(message["result"], request)
        yield from result_faults(result, request.get("method"), revision)


def _without_extensions(result: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """Leave out the extensions that a server declares to a client that declares some.

    Schemas before 2026-07-28 do not know them, and say of capabilities that they are no closed set.
    """
    if request.get("method") != "initialize":
        return result
    if "extensions" not in request["params"].get("capabilities", {}):
        return result
    declared = dict(result["capabilities"])
    declared.pop("extensions", None)
    return {**result, "capabilities": declared}


def result_faults(result: dict[str, Any], method: Any, revision: str) -> Iterator[str]:
    """Yield what is wrong with the result of ``method`` in ``revision``."""
    try:
        validate_server_result(method, revision, result)
    except KeyError:
        yield f"a result of {method!r}, which {revision} does not have"
        return
    except ValidationError as error:
        yield f"mcp-types: {error.errors(include_url=False)[:3]}"
    definition = schemas.result_definition(method, result)
    if definition:
        yield from schemas.faults(result, revision, definition)
    yield from facts.unknown_fields(result, method, revision)
    yield from facts.invalid_schemas(result)


def error_faults(error: dict[str, Any], revision: str) -> Iterator[str]:
    """Yield what is wrong with an error in ``revision``."""
    modern = revision in MODERN_PROTOCOL_VERSIONS
    code = error.get("code")
    if code in (_LEGACY_CODES if modern else _MODERN_CODES):
        yield f"the code {code}, which {revision} does not have"
    elif code in _MODERN_CODES:
        wrapped = {"jsonrpc": "2.0", "id": 0, "error": error}
        yield from schemas.faults(wrapped, revision, _MODERN_CODES[code])


def _envelope_faults(message: dict[str, Any], status: int) -> Iterator[str]:
    model = JSONRPCError if "error" in message else JSONRPCResponse
    try:
        model.model_validate(message, strict=True)
    except ValidationError as error:
        yield f"not a JSON-RPC response: {error.errors(include_url=False)[:3]}"
        return
    members = {"jsonrpc", "id", "error" if model is JSONRPCError else "result"}
    if set(message) != members:
        yield f"members {sorted(message)}, not {sorted(members)}"
    if model is JSONRPCError and not set(message["error"]) <= {"code", "message", "data"}:
        yield f"an error with members {sorted(message['error'])}"
    if message["id"] is None and status < 300:
        yield f'"id": null in a {status}'
    if model is JSONRPCResponse and status >= 300:
        yield f"a result in a {status}"


def _id_faults(message: dict[str, Any], request: Any) -> Iterator[str]:
    unread = message.get("error", {}).get("code") == PARSE_ERROR
    expected = request["id"] if _has_id(request) and not unread else None
    if expected is not None and len(json.dumps(expected)) > MAX_ID_LENGTH:
        return
    if _key(message.get("id")) != _key(expected):
        yield f"the id {message.get('id')!r} instead of {expected!r}"


def _has_id(request: Any) -> bool:
    # The id of a response is the server's own, and never comes back.
    if not isinstance(request, dict) or ("method" not in request and _is_response(request)):
        return False
    value = request.get("id")
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _is_response(message: dict[str, Any]) -> bool:
    return "result" in message or "error" in message


def _key(value: Any) -> tuple[str, str]:
    return type(value).__name__, json.dumps(value)


def _stated(incoming: Any) -> str | None:
    params = incoming.get("params") if isinstance(incoming, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    stated = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
    if not isinstance(stated, str):
        return None
    # Whatever it says, the request is of the modern era, and so is its error.
    return stated if stated in MODERN_PROTOCOL_VERSIONS else MODERN_PROTOCOL_VERSIONS[-1]


def _requests(incoming: Any) -> list[Any]:
    each = incoming if isinstance(incoming, list) else [incoming]
    return [message.get("method") for message in each if isinstance(message, dict)]


def _excerpt(traffic: Traffic) -> str:
    received = (traffic.received or b"")[:400].decode("utf-8", "replace")
    sent = traffic.sent[:800].decode("utf-8", "replace")
    return f"{traffic.method} {received} -> {traffic.status} {sent}"


class _Reading:
    """A request that remembers the body that was read from it."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self.received: bytes | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)

    async def read(self, limit: int, caller: Callable[[], str]) -> bytes:
        body: bytes = await self._request.read(limit, caller)
        self.received = body
        return body


def watch(respond: Callable[..., Any], wire: Wire) -> Callable[..., Any]:
    """Return ``respond`` with ``wire`` looking on."""

    async def watched(request: Any, endpoint: Any, runner: Any) -> Any:
        reading = _Reading(request)
        reply = await respond(reading, endpoint, runner)
        headers = {name.lower(): value for name, value in reply.headers.items()}
        about = (request.method, request.headers, reading.received, reply.status, headers)

        def observe(sent: bytes, *, complete: bool = True) -> None:
            wire.observe(Traffic(*about, sent, complete))

        if reply.events is None:
            observe(reply.body)
            return reply
        wire.learn_requests(Traffic(*about, b"", False))
        reply.events = _Watched(reply.events, observe)
        return reply

    return watched


class _Watched:
    """Events of a reply, for the mount, which takes them, and for Django, which iterates."""

    def __init__(self, events: Any, observe: Callable[..., None]) -> None:
        self._events = self._iterator = events
        self._observe = observe
        self._chunks: list[bytes] = []
        self._is_observed = False
        self.on_ready = events.on_ready

    @property
    def is_over(self) -> bool:
        return bool(self._events.is_over)

    def take(self) -> bytes | None:
        chunk: bytes | None = self._events.take()
        if chunk is not None:
            self._chunks.append(chunk)
        elif self.is_over:
            self._end(complete=True)
        return chunk

    def __aiter__(self) -> Any:
        self._iterator = aiter(self._events)
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk: bytes = await anext(self._iterator)
        except StopAsyncIteration:
            self._end(complete=True)
            raise
        self._chunks.append(chunk)
        return chunk

    def close(self) -> None:
        self._events.close()
        self._end(complete=False)

    def _end(self, *, complete: bool) -> None:
        if self._is_observed:
            return
        self._is_observed = True
        # A stream that may be taken up again ends without its response.
        sent = b"".join(self._chunks)
        last = sent.rpartition(b"data: ")[2]
        self._observe(sent, complete=complete and b'"id"' in last and b'"method"' not in last)


@contextmanager
def watching() -> Iterator[Wire]:
    """Look on at both entrances; fail at the end if anything was wrong."""
    wire = Wire()
    with pytest.MonkeyPatch.context() as patch:
        for entrance in ("django_mcp.http.views", "django_mcp.asgi"):
            original = pytest.importorskip(entrance).respond
            patch.setattr(f"{entrance}.respond", watch(original, wire))
        yield wire
    if wire.found:
        pytest.fail("\n".join(("The server sent what it must not:", *wire.found)), pytrace=False)


@pytest.fixture(autouse=True)
def valid_wire() -> Iterator[Wire]:
    """Fail any test in which the server sends something that its revision does not allow."""
    with watching() as wire:
        yield wire
