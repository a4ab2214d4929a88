"""The modern era: metadata, mirrored headers, caching."""

from __future__ import annotations

from typing import Any

import pytest

from django_mcp.protocol import lifecycle
from django_mcp.protocol.lifecycle import SHORT_BYTES
from tests.support.answers import HTTPAnswer
from tests.support.caller import Caller
from tests.support.messages import (
    META_CAPABILITIES,
    META_CLIENT,
    META_LOG_LEVEL,
    META_SERVER,
    MODERN,
    OMIT,
    encoded,
    mirrored,
    modern_request,
)

from . import site
from .test_errors import assert_error

CACHED = {
    "server/discover": {},
    "tools/list": {},
    "prompts/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "page://front"},
}
PLAIN = {
    "tools/call": {"name": "add", "arguments": {"a": 1}},
    "prompts/get": {"name": "greet", "arguments": {"name": "a"}},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "name", "value": "a"},
    },
}


def call(caller: Caller, arguments: dict[str, Any], **headers: str) -> HTTPAnswer:
    """Call the tool whose arguments are mirrored, with these ``Mcp-Param`` headers."""
    message = modern_request("tools/call", 1, name="mirrored", arguments=arguments)
    given = {f"Mcp-Param-{name}": value for name, value in headers.items()}
    return caller.post(message, **mirrored(message), **given)


def pages_of(caller: Caller, method: str) -> list[dict[str, Any]]:
    """Return all pages of a list."""
    pages = [caller.call(method).result]
    while "nextCursor" in pages[-1]:
        pages.append(caller.call(method, cursor=pages[-1]["nextCursor"]).result)
    return pages


@pytest.mark.parametrize(("method", "params"), [*CACHED.items(), *PLAIN.items()])
def test_every_result_says_whose_it_is(caller, method, params):
    result = caller.call(method, **params).result
    assert result["resultType"] == "complete"
    assert result["_meta"][META_SERVER]["name"] == "wire"
    assert ("ttlMs" in result, "cacheScope" in result) == (method in CACHED,) * 2


def test_metadata_of_a_tool_stays_beside_the_servers(caller):
    meta = caller.call("tools/call", name="ready_made").result["_meta"]
    assert meta["example.com/k"] == "v"
    assert META_SERVER in meta


@pytest.mark.parametrize(("method", "params"), CACHED.items())
def test_an_open_endpoint_may_be_cached_for_all(caller, method, params):
    """Unless a function of the site lists, or is read, by who asks."""
    result = caller.call(method, **params).result
    listed_by_function = method == "resources/list"
    assert result["cacheScope"] == ("private" if listed_by_function else "public")
    assert result["ttlMs"] == {"resources/list": 0, "resources/read": 5000}.get(method, 60_000)


@pytest.mark.parametrize("method", [each for each in CACHED if each != "resources/read"])
def test_what_depends_on_the_caller_is_private(entrance, django_user_model, method):
    django_user_model.objects.create_superuser("root", password="x")
    guarded = Caller(entrance, "/guarded/mcp").with_headers(X_User="root")
    members = Caller(entrance, "/members/mcp").with_headers(X_User="root")
    for caller in (guarded, members):
        assert caller.call(method).result["cacheScope"] == "private"
    secret = guarded.call("resources/read", uri="locker://page").result
    assert secret["cacheScope"] == "private"


@pytest.mark.parametrize(
    ("method", "member"),
    [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ],
)
def test_the_pages_of_a_list_are_one_list(entrance, settings, method, member):
    """In one order, without gaps or doubles, cached alike."""
    caller = Caller(entrance, "/paged/mcp")
    for size in (1, 2, 3, 7, 100):
        settings.DJANGO_MCP = {"PAGE_SIZE": size, "WORKER_THREADS": 2}
        pages = pages_of(caller, method)
        names = [item["name"] for page in pages for item in page[member]]
        assert len(pages) == -(-7 // size)
        assert names == sorted(names)
        assert len(set(names)) == 7
        assert len({(page["cacheScope"], page["ttlMs"]) for page in pages}) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_a_list_that_a_function_makes_is_paged_by_what_came_last(caller, settings, size):
    """It begins on the page where what was registered ends."""
    settings.DJANGO_MCP = {"PAGE_SIZE": size, "WORKER_THREADS": 2}
    pages = pages_of(caller, "resources/list")
    uris = ["page://front", "page://pixel", *(f"note://{each}" for each in range(1, 6))]
    assert [[item["uri"] for item in page["resources"]] for page in pages] == [
        uris[start : start + size] for start in range(0, 7, size)
    ]
    assert {page["cacheScope"] for page in pages} == {"private"}


def test_the_client_may_be_unnamed(caller):
    """2026-07-28, basic/index: ``clientInfo`` is not required."""
    message = modern_request("tools/call", 1, {META_CLIENT: OMIT}, name="whoami", arguments={})
    seen = caller.post(message, **mirrored(message)).result["structuredContent"]
    assert seen["client"] is None


@pytest.mark.parametrize(
    "capabilities",
    [{}, {"elicitation": {}}, {"sampling": {"tools": {}}}, {"extensions": {"a/b": {}}}, {"x": 1}],
)
def test_capabilities_of_later_days_are_no_fault(caller, capabilities):
    message = modern_request("tools/list", 1, {META_CAPABILITIES: capabilities})
    assert caller.post(message, **mirrored(message)).status == 200


@pytest.mark.parametrize(
    ("meta", "blamed"),
    [
        ({META_CLIENT: {"name": "n"}}, META_CLIENT),
        ({META_CLIENT: {"name": "n", "version": 1}}, META_CLIENT),
        ({META_CLIENT: {"name": "n" * 2 * SHORT_BYTES}}, META_CLIENT),
        ({META_CAPABILITIES: {"roots": 1}}, META_CAPABILITIES),
        ({META_CAPABILITIES: {"roots": 1}, META_CLIENT: {"name": "n"}}, META_CAPABILITIES),
    ],
)
def test_what_a_client_says_of_itself_is_checked_each_time(caller, meta, blamed):
    """What was valid is remembered by all that was said, and what was not is never."""
    wrong, right = modern_request("tools/list", 1, meta), modern_request("tools/list", 2)
    for _ in range(2):
        answer = caller.post(wrong, **mirrored(wrong))
        assert_error(answer, 400, -32602, 1)
        assert answer.error["message"].startswith(f"{blamed} is not valid: ")
        assert caller.post(right, **mirrored(right)).status == 200


def test_little_is_kept_of_what_clients_say_of_themselves(caller):
    def kept() -> int:
        return lifecycle._check_said_once.cache_info().currsize

    lifecycle._check_said_once.cache_clear()
    long = {"name": "n" * SHORT_BYTES, "version": "1"}
    for size, client in ((0, long), (1, {"name": "n", "version": "1"})):
        message = modern_request("tools/list", 1, {META_CLIENT: client})
        assert caller.post(message, **mirrored(message)).status == 200
        assert kept() == size


def test_a_log_level_is_taken(caller):
    message = modern_request("tools/list", 1, {META_LOG_LEVEL: "debug"})
    assert caller.post(message, **mirrored(message)).status == 200


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": None, "count": None, "dry": None}, {}),
        ({"region": "eu"}, {"Region": "eu"}),
        ({"region": "eu"}, {"Region": "  eu\t"}),
        ({"region": "eu"}, {"Region": "=?base64?ZXU=?="}),
        ({"region": ""}, {"Region": ""}),
        ({"region": ""}, {"Region": "=?base64??="}),
        ({"region": " eu "}, {"Region": "=?base64?IGV1IA==?="}),
        ({"region": "ünï"}, {"Region": "=?base64?w7xuw68=?="}),
        ({"region": "a,b"}, {"Region": "a,b"}),
        ({"region": "=?base64?ZXU=?="}, {"Region": "=?base64?PT9iYXNlNjQ/WlhVPT89?="}),
        ({"region": "=?base64?ZXU="}, {"Region": "=?base64?ZXU="}),
        ({"region": "=?BASE64?ZXU=?="}, {"Region": "=?BASE64?ZXU=?="}),
        ({"count": 42}, {"Count": "42"}),
        ({"count": 42}, {"Count": "42.0"}),
        ({"count": -7}, {"Count": "-7"}),
        ({"count": 0}, {"Count": "0"}),
        ({"dry": True}, {"Dry": "true"}),
        ({"dry": False}, {"Dry": "false"}),
        ({"region": "eu", "count": 1, "dry": True}, {"REGION": "eu", "count": "1", "dRy": "true"}),
    ],
)
def test_mirrored_arguments_that_match_are_let_through(caller, arguments, headers):
    """Streamable-http, "Value Encoding" and "Case Sensitivity"."""
    assert call(caller, arguments, **headers).result["isError"] is False


FULL_WIDTH = "=?base64?77yU77yS?="
"""42 in full-width digits."""


@pytest.mark.parametrize(
    "value", ["4_2", FULL_WIDTH, "0x2A", "4 2", "42.5", "NaN", "inf", "", "+-42"]
)
def test_an_integer_in_a_header_is_a_decimal_number(caller, value):
    """What a gateway would not read as 42 must not pass for it."""
    assert_error(call(caller, {"count": 42}, Count=value), 400, -32020, 1)


@pytest.mark.parametrize("header", ["Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version"])
def test_a_routing_header_that_comes_twice_is_refused(caller, header):
    """A gateway may have looked at the other one."""
    message = modern_request("tools/call", 1, name="add", arguments={"a": 1})
    headers = [*caller.headers.items(), *mirrored(message).items()]
    again = (header, mirrored(message)[header])
    answer = caller.entrance.send("POST", "/mcp", [*headers, again], encoded(message))
    assert answer.status == 400
    assert answer.message["id"] == 1
    assert site.calls == []


def test_a_routing_header_in_two_halves_is_refused(caller):
    """Joined by a comma they would spell a URI, of which a gateway sees one half."""
    if caller.entrance.name != "mount":
        pytest.skip("WSGI and Django join them before anybody looks")
    message = modern_request("resources/read", 1, uri="note://1,2")
    halves = [("Mcp-Name", "note://1"), ("Mcp-Name", "2")]
    standing = mirrored(message) | {"Mcp-Name": OMIT}
    headers = [*caller.headers.items(), *((k, v) for k, v in standing.items() if v is not OMIT)]
    answer = caller.entrance.send("POST", "/mcp", [*headers, *halves], encoded(message))
    assert_error(answer, 400, -32020, 1)


def test_a_name_that_is_no_ascii_is_mirrored_in_base64(caller):
    """Decoded before it is compared."""
    message = modern_request("resources/read", 1, uri="note://ü")
    given = mirrored(message) | {"Mcp-Name": "=?base64?bm90ZTovL8O8?="}
    assert_error(caller.post(message, **given), 200, -32602, 1)


def test_headers_that_mean_nothing_here_are_ignored(caller):
    answer = caller.with_headers(
        Mcp_Param_Unknown="x", Last_Event_ID="1", Mcp_Session_Id="x", X_Other="y"
    ).call("tools/list")
    assert answer.status == 200


def test_mirrored_headers_are_nothing_to_a_legacy_session(caller):
    """streamable-http, "Server Validation": of the modern era only."""
    member = caller.opened().with_headers(Mcp_Method="wrong", Mcp_Name="wrong")
    answer = member.call("tools/call", name="mirrored", arguments={"region": "eu"})
    assert answer.result["isError"] is False


def test_tool_headers_are_flat_and_in_the_schema(caller):
    """No ``anyOf``, no ``$ref``, on direct primitive properties only."""
    tools = caller.call("tools/list").result["tools"]
    schema = next(tool["inputSchema"] for tool in tools if tool["name"] == "mirrored")
    for name, kind in (("region", "string"), ("count", "integer"), ("dry", "boolean")):
        described = schema["properties"][name]
        assert described["type"] == kind
        assert described["x-mcp-header"].lower() == name
        assert not {"anyOf", "$ref"} & set(described)


def test_an_error_with_a_code_of_the_sites_own_keeps_it(caller):
    """2026-07-28, basic/index, "Error Codes": the rest of the integers is for applications."""
    answer = caller.call("tools/call", name="own_error", arguments={})
    assert_error(answer, 200, 7001, 1)
    assert caller.opened().call("tools/call", name="own_error").error["code"] == 7001


def test_a_capability_that_the_client_lacks_is_400(caller):
    """2026-07-28, basic/index: -32021 names what is missing."""
    answer = caller.call("tools/call", name="demand", arguments={})
    assert_error(answer, 400, -32021, 1)
    assert answer.error["data"] == {"requiredCapabilities": {"sampling": {}}}


def test_revision_is_what_user_code_sees(caller):
    assert (
        caller.call("tools/call", name="whoami").result["structuredContent"]["revision"] == MODERN
    )
