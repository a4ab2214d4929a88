"""Which revision is spoken, and with which headers."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from django_mcp.client import (
    AuthenticationFailed,
    Client,
    OutcomeUnknown,
    RemoteError,
    UnexpectedAnswer,
    UnsupportedServer,
)

from .scripted import (
    URL,
    LegacyServer,
    ModernServer,
    Reply,
    Seen,
    Stream,
    as_bytes,
    as_json,
    as_stream,
    text,
)

LEGACY_ANSWERS = {
    "400 without a body": lambda seen: httpx.Response(400),
    "400 with a page": lambda seen: as_bytes(b"<html>", "text/html", 400),
    "404": lambda seen: httpx.Response(404),
    "405": lambda seen: httpx.Response(405),
    "an error of its own": lambda seen: as_json(seen.error(-32000), 400),
    "an unknown method": lambda seen: as_json(seen.error(-32601)),
    "an unknown method, by status": lambda seen: as_json(seen.error(-32601), 404),
    "a result that is none": lambda seen: as_json(seen.result({})),
    "a result of another kind": lambda seen: as_json(seen.result({"tools": []})),
    "no message at all": lambda seen: as_bytes(b"ok", "text/plain"),
    "legacy revisions only": lambda seen: as_json(
        seen.result({"supportedVersions": ["2025-11-25"], "capabilities": {}})
    ),
    "a refusal that names legacy ones": lambda seen: as_json(
        seen.error(-32022, data={"supported": ["2025-06-18"], "requested": "2026-07-28"}), 400
    ),
}


@pytest.mark.parametrize("answer", LEGACY_ANSWERS.values(), ids=LEGACY_ANSWERS)
async def test_what_is_not_modern_is_legacy(answer: Any) -> None:
    server = LegacyServer(handlers={"server/discover": answer})
    async with server.client() as client:
        assert client.revision == "2025-11-25"
        assert client.server_info is not None
        assert client.server_info.name == "scripted"


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_the_server_chooses_among_the_legacy_revisions(revision: str) -> None:
    server = LegacyServer(revision=revision)
    server.handlers["tools/list"] = lambda seen: as_json(seen.result({"tools": []}))
    async with server.client() as client:
        await client.list_tools()
        assert client.revision == revision
    assert server.of("tools/list")[0].headers["mcp-protocol-version"] == revision
    assert server.of("initialize")[0].params["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("revision", ["2024-11-05", "2026-07-28", "2099-01-01"])
async def test_a_revision_that_is_not_spoken_is_refused(revision: str) -> None:
    with pytest.raises(UnsupportedServer, match=revision):
        await LegacyServer(revision=revision).client().open()


async def test_a_modern_server_is_recognised() -> None:
    server = ModernServer()
    info = {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "2.0"}}

    def discover(seen: Seen) -> Reply:
        found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        return as_json(seen.result({**found, "instructions": "Ask.", "_meta": info}))

    server.handlers["server/discover"] = discover
    async with server.client() as client:
        assert client.revision == "2026-07-28"
        assert client.instructions == "Ask."
        assert client.server_info is not None
        assert client.server_info.version == "2.0"
        assert client.server_capabilities.tools is not None
    assert server.count("DELETE") == 0


async def test_a_modern_server_may_have_its_version_confirmed() -> None:
    server = ModernServer()

    def discover(seen: Seen) -> Reply:
        if server.count("server/discover") > 1:
            return server.discover(seen)
        data = {"supported": ["2026-07-28"], "requested": "2026-07-28"}
        return as_json(seen.error(-32022, data=data), 400)

    server.handlers["server/discover"] = discover
    async with server.client() as client:
        assert client.revision == "2026-07-28"


async def test_without_a_common_revision_there_is_no_session() -> None:
    server = LegacyServer()
    data = {"supported": ["2099-01-01"], "requested": "2026-07-28"}
    server.handlers["server/discover"] = lambda seen: as_json(seen.error(-32022, data=data), 400)
    with pytest.raises(UnsupportedServer, match="2099-01-01"):
        await server.client().open()
    assert server.count("initialize") == 0


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (lambda seen: httpx.Response(401), AuthenticationFailed),
        (lambda seen: httpx.Response(403), AuthenticationFailed),
        (lambda seen: httpx.Response(502), OutcomeUnknown),
        (lambda seen: httpx.Response(307, headers={"Location": "/mcp/"}), UnexpectedAnswer),
        (lambda seen: as_json(seen.error(-32020), 400), RemoteError),
    ],
    ids=["401", "403", "502", "307", "header mismatch"],
)
async def test_an_outage_or_a_refusal_is_no_verdict(reply: Any, error: type[Exception]) -> None:
    server = LegacyServer(handlers={"server/discover": reply})
    with pytest.raises(error):
        await server.client().open()
    assert server.count("initialize") == 0


@pytest.mark.parametrize(("revision", "probes"), [("2025-06-18", 0), ("2026-07-28", 0), (None, 1)])
async def test_a_revision_that_is_given_saves_the_probe(revision: str | None, probes: int) -> None:
    server: LegacyServer | ModernServer = LegacyServer(revision="2025-06-18")
    if revision == "2026-07-28":
        server = ModernServer()
    server.handlers["tools/list"] = lambda seen: as_json(seen.result({"tools": []}))
    async with server.client(revision=revision) as client:
        assert await client.list_tools() == []
        assert client.revision in (revision, "2025-06-18")
    assert server.count("server/discover") == probes


def test_a_revision_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="2024-11-05"):
        Client(URL, revision="2024-11-05")


async def test_initialize_may_be_answered_by_a_stream() -> None:
    server = LegacyServer()

    def initialize(seen: Seen) -> Reply:
        answer = LegacyServer.initialize(server, seen)
        stream = Stream()
        stream.send(id="1")
        stream.write(b"data: " + b"".join(answer.stream) + b"\n\n")  # type: ignore[arg-type]
        return as_stream(stream, **{"Mcp-Session-Id": answer.headers["mcp-session-id"]})

    server.handlers["initialize"] = initialize
    async with server.client() as client:
        assert client.revision == "2025-11-25"
    assert server.of("DELETE")[0].session == "session-1"


# What a modern request carries


async def test_every_modern_request_says_all() -> None:
    server = ModernServer()
    server.handlers |= {
        "tools/call": lambda seen: as_json(seen.result(text("done"))),
        "resources/read": lambda seen: as_json(seen.result({"contents": []})),
        "prompts/get": lambda seen: as_json(seen.result({"messages": []})),
    }
    async with server.client(name="shop", version="3") as client:
        await client.set_log_level("warning")
        await client.call_tool("pay", meta={"own": 1})
        await client.read_resource("order://ünï")
        await client.get_prompt("=?base64?x?=")
        await client.ping()
    meta = server.of("tools/call")[0].params["_meta"]
    assert meta == {
        "own": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "shop", "version": "3"},
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "warning",
    }
    for seen in server.seen:
        assert seen.headers["mcp-protocol-version"] == "2026-07-28"
        assert seen.headers["mcp-method"] == seen.method
        assert seen.headers["accept"] == "application/json, text/event-stream"
        assert seen.session is None
    assert server.of("tools/call")[0].headers["mcp-name"] == "pay"
    assert server.of("resources/read")[0].headers["mcp-name"] == "=?base64?b3JkZXI6Ly/DvG7Drw==?="
    assert server.of("prompts/get")[0].headers["mcp-name"].startswith("=?base64?")


def tool(name: str, properties: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


async def test_arguments_are_mirrored_and_wrong_annotations_leave_a_tool_out() -> None:
    server = ModernServer()
    nested = {"type": "object", "properties": {"at": {"type": "integer", "x-mcp-header": "At"}}}
    region = {"type": "string", "x-mcp-header": "Region"}
    tools = [
        tool("good", {"region": region, "place": nested}),
        tool("empty", {"region": {**region, "x-mcp-header": ""}}),
        tool("number", {"region": {**region, "type": "number"}}),
        tool("twice", {"a": region, "b": {**region, "x-mcp-header": "REGION"}}),
        tool("items", {"a": {"type": "array", "items": region}}),
    ]
    server.handlers |= {
        "tools/list": lambda seen: as_json(seen.result({"tools": tools})),
        "tools/call": lambda seen: as_json(seen.result(text("done"))),
    }
    async with server.client() as client:
        assert [each.name for each in await client.list_tools()] == ["good"]
        await client.call_tool("good", {"region": "nörth", "place": {"at": 7}})
        await client.call_tool("good", {"region": None})
    first, second = server.of("tools/call")
    assert first.headers["mcp-param-region"].startswith("=?base64?")
    assert first.headers["mcp-param-at"] == "7"
    assert not [name for name in second.headers if name.startswith("mcp-param")]


async def test_earlier_revisions_have_no_mirrored_arguments() -> None:
    server = LegacyServer()
    tools = [tool("odd", {"region": {"type": "string", "x-mcp-header": ""}})]
    server.handlers["tools/list"] = lambda seen: as_json(seen.result({"tools": tools}))
    async with server.client() as client:
        assert [each.name for each in await client.list_tools()] == ["odd"]


async def test_a_call_that_lacks_headers_learns_them_and_is_sent_again() -> None:
    server = ModernServer()
    tools = [tool("pay", {"region": {"type": "string", "x-mcp-header": "Region"}})]

    def call(seen: Seen) -> Reply:
        if "mcp-param-region" in seen.headers:
            return as_json(seen.result(text("done")))
        return as_json(seen.error(-32020), 400)

    server.handlers |= {
        "tools/list": lambda seen: as_json(seen.result({"tools": tools})),
        "tools/call": call,
    }
    async with server.client() as client:
        assert (await client.call_tool("pay", {"region": "north"})).content[0].text == "done"
    assert server.count("tools/call") == 2


# Lists


async def test_lists_follow_cursors() -> None:
    server = ModernServer()
    pages = {None: ("a", "two"), "two": ("b", "three"), "three": ("c", None)}

    def listing(seen: Seen) -> Reply:
        name, cursor = pages[seen.params.get("cursor")]
        more = {"nextCursor": cursor} if cursor else {}
        return as_json(seen.result({"prompts": [{"name": name}], **more}))

    server.handlers["prompts/list"] = listing
    async with server.client() as client:
        assert [prompt.name for prompt in await client.list_prompts()] == ["a", "b", "c"]


async def test_a_list_that_leads_in_a_circle_ends() -> None:
    server = ModernServer()
    page = {"resources": [], "nextCursor": "again"}
    server.handlers["resources/list"] = lambda seen: as_json(seen.result(page))
    async with server.client() as client:
        with pytest.raises(UnexpectedAnswer, match="circle"):
            await client.list_resources()
    assert server.count("resources/list") == 2


async def test_schemas_stay_as_they_were_sent() -> None:
    server = ModernServer()
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"a": {"$anchor": "b"}},
        "allOf": [{"anyOf": []}],
        "if": {},
        "then": {"$ref": "https://elsewhere.example/"},
        "additionalProperties": False,
    }
    tools = [{"name": "pay", "inputSchema": schema}]
    server.handlers["tools/list"] = lambda seen: as_json(seen.result({"tools": tools}))
    async with server.client() as client:
        (listed,) = await client.list_tools()
    assert json.dumps(listed.input_schema) == json.dumps(schema)
