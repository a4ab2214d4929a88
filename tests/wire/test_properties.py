"""Whatever comes in, what goes out is JSON-RPC; and what is encoded comes back."""

from __future__ import annotations

import base64
import contextlib
import json
import math
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from django_mcp import MCPServer
from django_mcp.protocol import cursors, headers
from django_mcp.protocol.errors import MCPError
from django_mcp.server import paging
from django_mcp.server.arguments import ArgumentError
from django_mcp.server.signature import Signature
from django_mcp.testing import MCPClient
from tests.support.answers import HTTPAnswer
from tests.support.messages import LEGACY, MODERN, OMIT, mirrored, modern_request

from . import strategies
from .site import wire
from .strategies import bounded
from .validator import Wire

VERSIONS = st.sampled_from([OMIT, *LEGACY, MODERN, "1999-01-01"])
SESSIONS = st.sampled_from([OMIT, "unknown", ""])


def assert_answered(answer: HTTPAnswer, wire: Wire) -> None:
    """JSON-RPC, no failure of ours; the validator has seen to id, form and status."""
    assert wire.take() == []
    assert answer.status < 500, answer.message
    if answer.status not in (202, 204):
        message = answer.message
        for each in message if isinstance(message, list) else [message]:
            assert each.get("error", {}).get("code") != -32603, message


@bounded
@given(st.binary(max_size=200), VERSIONS, SESSIONS)
@example(b"\xef\xbb\xbf{}", OMIT, OMIT)
@example(b"\x00", MODERN, OMIT)
def test_any_bytes_are_answered(caller, valid_wire, body, version, session):
    answer = caller.post(body, Mcp_Protocol_Version=version, Mcp_Session_Id=session)
    assert_answered(answer, valid_wire)


@bounded
@given(strategies.anything, VERSIONS, SESSIONS)
def test_any_json_is_answered(caller, valid_wire, value, version, session):
    answer = caller.post(value, Mcp_Protocol_Version=version, Mcp_Session_Id=session)
    assert_answered(answer, valid_wire)


@bounded
@given(strategies.anything, st.sampled_from(LEGACY))
def test_any_json_is_answered_in_a_session(caller, valid_wire, value, revision):
    """One session for each revision, however much nonsense it is sent."""
    member = caller.opened(revision)
    assert_answered(member.post(value), valid_wire)
    assert member.call("ping").status == 200


@bounded
@given(strategies.messages)
def test_any_message_is_answered_in_the_modern_era(caller, valid_wire, message):
    """With the headers that go with it."""
    headers_of: dict[str, Any] = {"Mcp-Protocol-Version": MODERN}
    method = message.get("method")
    headers_of["Mcp-Method"] = method if _sendable(method) else OMIT
    params = message.get("params")
    name = params.get("name", params.get("uri")) if isinstance(params, dict) else None
    headers_of["Mcp-Name"] = headers.encode(name) if isinstance(name, str) else OMIT
    assert_answered(caller.post(message, **headers_of), valid_wire)


NAMES = st.sampled_from(
    [
        "Accept",
        "Content-Type",
        "Content-Length",
        "Origin",
        "Host",
        "Mcp-Protocol-Version",
        "Mcp-Session-Id",
        "Mcp-Method",
        "Mcp-Name",
        "Mcp-Param-Region",
        "Mcp-Param-Count",
        "Last-Event-ID",
        "Authorization",
        "Cookie",
        "Access-Control-Request-Headers",
        "X-Forwarded-Host",
        "Accept-Encoding",
    ]
)


@pytest.fixture
def bare_caller(caller, settings):
    """A caller of a site without middleware, whose answers would be its own."""
    settings.MIDDLEWARE = []
    return caller


@bounded
@given(st.dictionaries(NAMES, strategies.header_values, max_size=3), st.booleans())
@example({"Accept": "application/json;q=1e999, a;q=nan, ;;, ;q=--1"}, True)
@example({"Content-Type": ";charset"}, True)
@example({"Origin": "http://user:pass@:99/[]"}, True)
def test_any_headers_are_answered(bare_caller, valid_wire, given_headers, modern):
    message = modern_request(
        "tools/call", 5, name="mirrored", arguments={"region": "eu", "count": 1}
    )
    standing = mirrored(message) if modern else {}
    answer = bare_caller.post(message, **(standing | given_headers))
    assert_answered(answer, valid_wire)


LISTS = st.sampled_from(
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
)
PLACES = st.tuples(
    st.sampled_from(["registered", "note://{number}", "page://front"]) | strategies.text,
    st.none() | strategies.text,
).map(lambda pair: cursors.Cursor(*pair))
GARBAGE = strategies.json_values.map(
    lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode()
)


@bounded
@given(LISTS, strategies.json_values | PLACES | GARBAGE | strategies.text)
def test_any_cursor_is_answered(caller, valid_wire, method, cursor):
    """With a page, or with -32602; also what the server has sealed, and has no page for."""
    if isinstance(cursor, cursors.Cursor):
        cursor = cursor.seal(paging.keys(f"{wire.name}\0{method}")[0])
    answer = caller.call(method, cursor=cursor)
    assert_answered(answer, valid_wire)
    assert answer.status == 200
    assert "result" in answer.message or answer.error["code"] == -32602


@bounded
@given(strategies.text)
@example(" padded ")
@example("=?base64?literal?=")
@example("=?base64?\n?=")
@example("tab\tinside")
@example("\x7f")
@example("")
def test_a_mirrored_value_comes_back(value):
    """Streamable-http, "Value Encoding"."""
    encoded = headers.encode(value)
    assert all(character == "\t" or " " <= character <= "~" for character in encoded)
    assert encoded == encoded.strip()
    assert headers.decode("Mcp-Name", encoded) == value


@bounded
@given(strategies.header_values)
def test_any_mirrored_value_is_read_or_refused(value):
    decoded = _or_code(headers.decode, "Mcp-Name", value)
    assert decoded == -32020 or headers.decode("Mcp-Name", headers.encode(decoded)) == decoded


@bounded
@given(strategies.text, st.none() | strategies.text)
def test_a_cursor_comes_back(source, last):
    cursor = cursors.Cursor(source, last)
    sealed = cursor.seal(b"now")
    assert cursors.unseal(sealed, [b"now"]) == cursors.unseal(sealed, [b"later", b"now"]) == cursor
    assert _or_code(cursors.unseal, sealed, [b"later"]) == -32602


@bounded
@given(st.text())
def test_any_text_that_was_not_sealed_is_refused(text):
    assert _or_code(cursors.unseal, text, [b"now"]) == -32602


@bounded
@given(strategies.header_values)
def test_any_accept_header_is_read(value):
    acceptable = headers.acceptable(value)
    assert {acceptable.json, acceptable.events} <= {True, False}


@bounded
@given(st.data(), st.lists(strategies.kinds, min_size=1, max_size=3), st.booleans())
def test_what_a_schema_accepts_can_be_bound(data, kinds, optional):
    """A model that keeps to the schema is never refused."""
    names = [f"p{number}" for number in range(len(kinds))]
    signature = Signature(_with_parameters(names, kinds, optional=optional))
    schema = {**signature.schema, "additionalProperties": False}
    arguments = {
        name: data.draw(strategies.values_of(kind) | strategies.json_values, label=name)
        for name, kind in zip(names, kinds, strict=True)
        if data.draw(st.booleans()) or not optional
    }
    accepted = jsonschema.Draft202012Validator(schema).is_valid(arguments)
    assume(accepted)
    bound = signature.bind(arguments)
    assert set(bound) == set(names)


@bounded
@given(st.data(), strategies.kinds)
def test_what_a_schema_refuses_is_refused_or_converted_with_care(data, kind):
    """Lax conversions may let more in, and may raise nothing but what the model is told."""
    signature = Signature(_with_parameters(["p"], [kind], optional=False))
    with contextlib.suppress(ArgumentError):
        signature.bind({"p": data.draw(strategies.json_values)})


echo = MCPServer("echo")


@echo.tool(name="echo")
def echo_value(value: JsonValue) -> dict[str, JsonValue]:
    """Return the argument."""
    return {"value": value}


@bounded
@given(strategies.json_values, st.sampled_from([*LEGACY[1:], MODERN]))
def test_any_json_goes_through_a_tool_unchanged(db, valid_wire, value, revision):
    """In and out again, as structured content and as text."""
    answer = MCPClient(echo, revision=revision).tool("echo", value=value)
    assert valid_wire.take() == []
    assert _same(answer.structured, {"value": value})
    assert _same(json.loads(answer.result["content"][0]["text"]), {"value": value})


def _or_code(function: Callable[..., Any], *arguments: str) -> Any:
    """Return what ``function`` makes of ``arguments``, or the code of its refusal."""
    try:
        return function(*arguments)
    except MCPError as error:
        return error.code


def _sendable(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isprintable()


def _with_parameters(names: list[str], kinds: list[Any], *, optional: bool) -> Any:
    default = " = None" if optional else ""
    source = f"def function({', '.join(name + default for name in names)}): ..."
    scope: dict[str, Any] = {}
    exec(source, scope)
    function = scope["function"]
    function.__annotations__ = dict(zip(names, kinds, strict=True))
    return function


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=0, abs_tol=0)
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
