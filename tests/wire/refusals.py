"""Requests that must fail, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.answers import HTTPAnswer
from tests.support.caller import Caller
from tests.support.messages import (
    META_CAPABILITIES,
    META_CLIENT,
    META_LOG_LEVEL,
    META_VERSION,
    MODERN,
    OMIT,
    mirrored,
    modern_request,
    request,
)

Send = Callable[[Caller, Any], HTTPAnswer]


@dataclass(frozen=True)
class Row:
    """One request, for any id, and what it is answered with."""

    name: str
    status: int
    code: int
    send: Send
    legacy: bool = False
    """Whether it is sent in a session."""
    text: str = ""
    """What the error's message contains."""


def _header(name: str, value: Any, message: dict[str, Any] | None = None, **params: Any) -> Send:
    """Return a good modern request in which one header is not as it should be."""

    def send(caller: Caller, request_id: Any) -> HTTPAnswer:
        body = message or {"method": "tools/call", "params": {"name": "mirrored", "arguments": {}}}
        sent = modern_request(body["method"], request_id, **{**body["params"], **params})
        return caller.post(sent, **(mirrored(sent) | {name: value}))

    return send


def _argument(header: str, value: Any, **arguments: Any) -> Send:
    """Return a call whose arguments do not say what a mirrored header says."""
    return _header(f"Mcp-Param-{header}", value, arguments=arguments)


def _meta(header: str = MODERN, /, **changes: Any) -> Send:
    """Return a modern request with changed metadata; its version header is ``header``."""

    def send(caller: Caller, request_id: Any) -> HTTPAnswer:
        message = modern_request("tools/list", request_id, changes)
        return caller.post(message, **(mirrored(message) | {"Mcp-Protocol-Version": header}))

    return send


def _bare(meta: Any) -> Send:
    """Return a request that is modern by its header alone."""

    def send(caller: Caller, request_id: Any) -> HTTPAnswer:
        params = {} if meta is OMIT else {"_meta": meta}
        message = request("tools/list", request_id, **params)
        return caller.post(message, **mirrored(message))

    return send


def _speaking(version: str) -> Send:
    """Return a request of a session with this version header."""

    def send(caller: Caller, request_id: Any) -> HTTPAnswer:
        return caller.with_headers(Mcp_Protocol_Version=version).call("tools/list", request_id)

    return send


def _method(method: str, **params: Any) -> Send:
    return lambda caller, request_id: caller.call(method, request_id, **params)


def _body(**members: Any) -> Send:
    """Return a body with an id that can be read, and something wrong beside it."""

    def send(caller: Caller, request_id: Any) -> HTTPAnswer:
        message = request("tools/list", request_id) | members
        return caller.post({name: value for name, value in message.items() if value is not OMIT})

    return send


PROMPT = {"method": "prompts/get", "params": {"name": "show"}}
PAGE = {"method": "resources/read", "params": {"uri": "page://front"}}

HEADERS = [
    Row("no version header", 400, -32020, _header("Mcp-Protocol-Version", OMIT)),
    Row("another version header", 400, -32020, _header("Mcp-Protocol-Version", "2025-11-25")),
    Row("an unknown version header", 400, -32020, _header("Mcp-Protocol-Version", "v999.0.0")),
    Row("an unknown version in _meta", 400, -32020, _meta(**{META_VERSION: "v999.0.0"})),
    Row("no Mcp-Method", 400, -32020, _header("Mcp-Method", OMIT)),
    Row("another Mcp-Method", 400, -32020, _header("Mcp-Method", "tools/list")),
    Row("Mcp-Method in other case", 400, -32020, _header("Mcp-Method", "Tools/Call")),
    Row("an empty Mcp-Method", 400, -32020, _header("Mcp-Method", "")),
    Row("no Mcp-Name", 400, -32020, _header("Mcp-Name", OMIT)),
    Row("another Mcp-Name", 400, -32020, _header("Mcp-Name", "add")),
    Row("Mcp-Name in other case", 400, -32020, _header("Mcp-Name", "MIRRORED")),
    Row("Mcp-Name not ASCII", 400, -32020, _header("Mcp-Name", "m\xefrrored")),
    Row("Mcp-Name with a control character", 400, -32020, _header("Mcp-Name", "mir\x01rored")),
    Row("Mcp-Name, another in Base64", 400, -32020, _header("Mcp-Name", "=?base64?YWRk?=")),
    Row("Mcp-Name, no Base64", 400, -32020, _header("Mcp-Name", "=?base64?bWlycm9yZWQ!?=")),
    Row("Mcp-Name, bad padding", 400, -32020, _header("Mcp-Name", "=?base64?bWlycm9yZQ?=")),
    Row("Mcp-Name, Base64 of no UTF-8", 400, -32020, _header("Mcp-Name", "=?base64?/w==?=")),
    Row("no Mcp-Name for a prompt", 400, -32020, _header("Mcp-Name", OMIT, PROMPT)),
    Row("another Mcp-Name for a prompt", 400, -32020, _header("Mcp-Name", "greet", PROMPT)),
    Row("no Mcp-Name for a resource", 400, -32020, _header("Mcp-Name", OMIT, PAGE)),
    Row("another Mcp-Name for a resource", 400, -32020, _header("Mcp-Name", "page://x", PAGE)),
    Row("no Mcp-Param", 400, -32020, _argument("Region", OMIT, region="eu")),
    Row("another Mcp-Param", 400, -32020, _argument("Region", "us", region="eu")),
    Row("Mcp-Param without an argument", 400, -32020, _argument("Region", "eu")),
    Row("Mcp-Param beside null", 400, -32020, _argument("Region", "eu", region=None)),
    Row("Mcp-Param not ASCII", 400, -32020, _argument("Region", "\xfc", region="\xfc")),
    Row("Mcp-Param in no Base64", 400, -32020, _argument("Region", "=?base64?!?=", region="eu")),
    Row("another integer", 400, -32020, _argument("Count", "43", count=42)),
    Row("no integer at all", 400, -32020, _argument("Count", "forty-two", count=42)),
    Row("an integer with a fraction", 400, -32020, _argument("Count", "42.5", count=42)),
    Row("another boolean", 400, -32020, _argument("Dry", "false", dry=True)),
    Row("a boolean in other case", 400, -32020, _argument("Dry", "True", dry=True)),
]

VERSIONS = [
    Row(
        "an unknown version",
        400,
        -32022,
        _meta("v999.0.0", **{META_VERSION: "v999.0.0"}),
        text="Unsupported protocol version",
    ),
    Row(
        "a version to come",
        400,
        -32022,
        _meta("2031-01-01", **{META_VERSION: "2031-01-01"}),
        text="Unsupported protocol version",
    ),
    Row(
        "a legacy version in _meta",
        400,
        -32022,
        _meta("2025-11-25", **{META_VERSION: "2025-11-25"}),
        text="Unsupported protocol version",
    ),
    *(
        Row(
            f"the version header {version!r} in a session",
            400,
            -32600,
            _speaking(version),
            legacy=True,
            text="Unsupported protocol version",
        )
        for version in ("1999-01-01", "nonsense", "2024-11-05", "")
    ),
]

METADATA = [
    *(
        Row(f"_meta {meta!r} and a modern header", 400, -32602, _bare(meta))
        for meta in (OMIT, None, {}, [], "x", {"progressToken": 1})
    ),
    Row("no version", 400, -32602, _meta(**{META_VERSION: OMIT})),
    Row("a version that is null", 400, -32602, _meta(**{META_VERSION: None})),
    Row("a version that is a number", 400, -32602, _meta(**{META_VERSION: 20260728})),
    Row("no capabilities", 400, -32602, _meta(**{META_CAPABILITIES: OMIT})),
    Row("capabilities that are a list", 400, -32602, _meta(**{META_CAPABILITIES: []})),
    Row("capabilities that are a word", 400, -32602, _meta(**{META_CAPABILITIES: "all"})),
    Row("a client without a name", 400, -32602, _meta(**{META_CLIENT: {"version": "1"}})),
    Row("a client that is a word", 400, -32602, _meta(**{META_CLIENT: "me"})),
    Row("an unknown log level", 400, -32602, _meta(**{META_LOG_LEVEL: "loud"})),
    Row("a log level that is a list", 400, -32602, _meta(**{META_LOG_LEVEL: ["info"]})),
]

REMOVED = (
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/get",
    "no/such/method",
    "",
)
METHODS = [Row(f"the method {name!r}", 404, -32601, _method(name)) for name in REMOVED] + [
    Row(f"the method {name!r} in a session", 200, -32601, _method(name), legacy=True)
    for name in ("server/discover", "subscriptions/listen", "no/such/method", "")
]

CALLS = [
    Row("a resource that crashes", 200, -32603, _method("resources/read", uri="note://500")),
    Row("a tool with an error of its own", 200, 7001, _method("tools/call", name="own_error")),
    Row("an unknown tool", 200, -32602, _method("tools/call", name="none")),
    Row("a tool without a name", 200, -32602, _method("tools/call")),
    Row("an unknown prompt", 200, -32602, _method("prompts/get", name="none")),
    Row("a prompt without its argument", 200, -32602, _method("prompts/get", name="greet")),
    Row("a bad cursor", 200, -32602, _method("tools/list", cursor="!")),
    Row("an empty cursor", 200, -32602, _method("tools/list", cursor="")),
    Row("a cursor that is a number", 200, -32602, _method("tools/list", cursor=5)),
]
IN_A_SESSION = [
    Row(f"{row.name}, in a session", row.status, row.code, row.send, legacy=True) for row in CALLS
] + [
    Row("a bad log level", 200, -32602, _method("logging/setLevel", level="loud"), legacy=True),
    Row("initialize without params", 200, -32602, _body(method="initialize"), legacy=True),
]

ENVELOPES = [
    Row("no jsonrpc", 400, -32600, _body(jsonrpc=OMIT)),
    Row("jsonrpc 1.0", 400, -32600, _body(jsonrpc="1.0")),
    Row("jsonrpc a number", 400, -32600, _body(jsonrpc=2.0)),
    Row("no method", 400, -32600, _body(method=OMIT)),
    Row("a method that is null", 400, -32600, _body(method=None)),
    Row("a method that is a number", 400, -32600, _body(method=1)),
    Row("params that are a list", 400, -32600, _body(params=[])),
    Row("params that are a word", 400, -32600, _body(params="x")),
    Row("nothing but an id", 400, -32600, _body(jsonrpc=OMIT, method=OMIT)),
]

NO_SESSION = [
    Row(f"{method!r} without a session", 400, -32600, _body(method=method))
    for method in ("tools/list", "tools/call", "ping", "no/such/method", "server/discover")
]
