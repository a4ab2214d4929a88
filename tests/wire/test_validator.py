"""The check of all messages, checked: what it must refuse, and that it looks at every reply."""

from __future__ import annotations

from typing import Any

import pytest

from django_mcp.protocol.versions import FIRST_SEEN, REVISIONS
from django_mcp.testing import MCPClient
from tests.support.messages import LEGACY, MODERN
from tests.support.messages import REVISIONS as NAMES

from . import schemas, site, validator
from . import version_facts as facts

ASKED = ("CreateMessageRequestParams", "ElicitRequestFormParams", "ElicitRequestURLParams")
NEVER_FITTED = {("CallToolResult", "resultType"), ("Tool", "execution")}
NEVER_FITTED |= {(kind, name) for kind in ASKED for name in ("_meta", "task")}
NEVER_FITTED |= {("ElicitRequestURLParams", "elicitationId")}
"""Fields that the table leaves out on purpose: the dispatcher adds one, nobody sends the others."""
INSIDE_REQUESTS = {
    "CreateMessageRequestParams": "CreateMessageRequest",
    "ElicitRequestFormParams": "ElicitRequest",
}
"""Parameters that earlier revisions describe as part of their request."""
ONCE_ENUM_SCHEMA = {
    "LegacyTitledEnumSchema": ("type", "title", "description", "enum", "enumNames"),
    "UntitledSingleSelectEnumSchema": ("type", "title", "description", "enum"),
}
"""What 2025-06-18 has in one type, ``EnumSchema``."""

TOOL = {"name": "t", "inputSchema": {"type": "object"}}
MODERN_LIST = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


def listed(**more: Any) -> dict[str, Any]:
    return {"tools": [TOOL | more]}


def reply(result: Any, request_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def asked(method: str = "tools/list", request_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method}


@pytest.mark.parametrize("revision", REVISIONS, ids=lambda each: each.name)
@pytest.mark.parametrize("kind", FIRST_SEEN)
def test_the_table_of_fields_agrees_with_the_schema_both_ways(kind, revision):
    properties = published_properties(kind, schemas.definitions(revision.name))
    published = {name for name in properties if (kind, name) not in NEVER_FITTED}
    assert facts.known(kind, revision.name) == published


def published_properties(kind: str, definitions: Any) -> Any:
    """Return the properties of a type, under whatever name a revision has it."""
    if kind in definitions:
        return definitions[kind]["properties"]
    request, choice = INSIDE_REQUESTS.get(kind), ONCE_ENUM_SCHEMA.get(kind, ())
    if request in definitions:
        params = definitions[request]["properties"]["params"]
        return params.get("properties", {})
    enum = definitions.get("EnumSchema", {})
    return [name for name in enum.get("properties", ()) if name in choice]


@pytest.mark.parametrize("revision", NAMES)
def test_every_method_of_the_table_of_results_has_its_definition(revision):
    for method, definition in schemas.RESULTS.items():
        if schemas.definition_of_method(revision, method):
            assert definition in schemas.definitions(revision), method


@pytest.mark.parametrize(
    ("revision", "result", "complaint"),
    [
        ("2025-03-26", listed(title="T"), "title"),
        ("2025-06-18", listed(icons=[{"src": "x"}]), "icons"),
        ("2025-11-25", {"tools": [], "ttlMs": 1}, "ttlMs"),
        ("2025-11-25", listed(outputSchema={"type": "array"}), "outputSchema"),
        ("2025-11-25", listed(inputSchema={"type": "object", "required": 1}), "no JSON Schema"),
        ("2025-11-25", {"tools": [{"name": "t"}]}, "inputSchema"),
        (MODERN, {"tools": []}, "ttlMs"),
        (MODERN, {"tools": [], **MODERN_LIST, "ttlMs": -1}, "ttlMs"),
        (MODERN, {"tools": [TOOL | {"execution": {}}], **MODERN_LIST}, "execution"),
    ],
)
def test_a_list_of_tools_that_a_revision_does_not_allow_is_found(revision, result, complaint):
    faults = list(validator.reply_faults(reply(result), asked(), 200, revision))
    assert any(complaint in fault for fault in faults), faults


@pytest.mark.parametrize("revision", LEGACY)
def test_the_table_of_fields_refuses_a_later_one_by_itself(revision):
    result = listed(icons=[{"src": "x"}], title="T")
    faults = list(facts.unknown_fields(result, "tools/list", revision))
    assert bool(faults) == (revision != "2025-11-25")


@pytest.mark.parametrize("revision", NAMES)
def test_what_is_known_of_a_revision_has_its_source_and_no_prose(revision):
    schema = schemas.load(revision)
    assert f"schema/{revision}/schema.json" in schema["$comment"]
    assert schemas.stripped(schema) == schema


@pytest.mark.parametrize(
    ("message", "status", "complaint"),
    [
        (reply({}, "1"), 200, "the id '1' instead of 1"),
        (reply({}, True), 200, "id"),
        (reply({}) | {"error": {"code": 1, "message": ""}}, 200, "members"),
        (reply({}) | {"extra": 1}, 200, "members"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": ""}}, 200, "JSON-RPC"),
        ({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": ""}}, 200, "null"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32020, "message": ""}}, 200, "-32020"),
        ([reply({})], 200, "batch"),
        (reply({}), 400, "a result in a 400"),
    ],
)
def test_an_envelope_that_is_none_is_found(message, status, complaint):
    incoming = [asked("ping")] if isinstance(message, list) else asked("ping")
    faults = list(validator.reply_faults(message, incoming, status, "2025-11-25"))
    assert any(complaint in fault for fault in faults), faults


@pytest.mark.parametrize("code", [-32001, -32002, -32042])
def test_a_code_of_the_legacy_revisions_is_refused_in_the_modern_one(code):
    assert list(validator.error_faults({"code": code, "message": ""}, MODERN))
    assert not list(validator.error_faults({"code": code, "message": ""}, "2025-11-25"))


@pytest.mark.parametrize(
    ("body", "content_type", "complaint"),
    [
        (b"<html>", "text/html", "neither JSON nor events"),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {"x": NaN}}', "application/json", "NaN"),
        (b'{\n"jsonrpc": "2.0", "id": 1, "result": {}}', "application/json", "one line"),
        (b"", "application/json", "without a body"),
    ],
)
def test_a_body_that_is_none_is_found(body, content_type, complaint):
    headers = {"content-type": content_type}
    traffic = validator.Traffic("POST", {}, b'{"id":1,"method":"ping"}', 200, headers, body)
    faults = [*validator.http_faults(traffic), *validator.body_faults(traffic, None)]
    assert any(complaint in fault for fault in faults), faults


def test_every_reply_of_the_test_client_is_looked_at(db, valid_wire):
    client = MCPClient(site.wire)
    client.list_tools()
    assert valid_wire.replies == 3  # initialize, notifications/initialized, tools/list
    assert list(valid_wire.sessions.values()) == ["2025-11-25"]


def test_every_reply_of_every_entrance_is_looked_at(caller, valid_wire):
    caller.call("tools/list")
    caller.post(b"no JSON")
    assert valid_wire.replies == 2


def test_a_fault_fails_the_test_at_its_end(caller):
    def swallow() -> None:
        with validator.watching() as wire:
            caller.call("server/discover")
            wire.found.append("something")

    with pytest.raises(pytest.fail.Exception, match="must not"):
        swallow()
