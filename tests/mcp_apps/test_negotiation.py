"""Who hears of apps, and what those read who show none (2026-01-26, MCP Apps)."""

from __future__ import annotations

from typing import Any

import pytest

from django_mcp import MCPServer, RegistrationError
from django_mcp.testing import MCPClient
from tests.server.support import MODERN, REVISIONS

from .support import BOARD, EXTENSION, HTML, PLAIN, SHOWS_APPS, client_of, server_with

WITHOUT_META = "2025-03-26"
WITH_META = [each for each in REVISIONS if each != WITHOUT_META]
OTHERS: list[dict[str, Any]] = [
    {},
    {"extensions": {}},
    {"extensions": {EXTENSION: {}}},
    {"extensions": {EXTENSION: {"mimeTypes": ["text/uri-list"]}}},
    {"extensions": {EXTENSION: {"mimeTypes": HTML}}},
    {"extensions": {"com.example/ui": {"mimeTypes": [HTML]}}},
]


def board(**options: Any) -> MCPServer:
    server = server_with(**options)
    server.tool(name="show", app=BOARD)(lambda: "Two tickets.")
    server.tool(name="refresh", app=BOARD, visibility=["app"])(lambda: "Three tickets.")
    server.tool(name="other", meta={"own": 1})(lambda: "")
    return server


def described(server: MCPServer, capabilities: Any, revision: str) -> dict[str, Any]:
    tools = client_of(server, capabilities, revision=revision).list_tools()
    return {tool["name"]: tool.get("_meta") for tool in tools}


@pytest.mark.django_db
@pytest.mark.parametrize("revision", WITH_META)
def test_who_shows_apps_is_told_which_tool_has_one(revision: str):
    assert described(board(), SHOWS_APPS, revision) == {
        "other": {"own": 1},
        "refresh": {"ui": {"resourceUri": BOARD, "visibility": ["app"]}},
        "show": {"ui": {"resourceUri": BOARD}},
    }


@pytest.mark.django_db
@pytest.mark.parametrize("revision", WITH_META)
@pytest.mark.parametrize("capabilities", OTHERS, ids=str)
def test_others_are_shown_tools_for_models_as_plain_tools(capabilities: Any, revision: str):
    assert described(board(), capabilities, revision) == {"other": {"own": 1}, "show": None}


@pytest.mark.django_db
def test_a_revision_whose_tools_have_no_meta_has_no_apps():
    client = client_of(board(), revision=WITHOUT_META)
    assert [tool["name"] for tool in client.list_tools()] == ["other", "show"]
    assert client.list_resources() == []
    assert "extensions" not in client_of(board(), revision=WITHOUT_META).initialize().result


@pytest.mark.django_db
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("capabilities", [{}, SHOWS_APPS], ids=["plain", "apps"])
def test_both_can_call_either_tool(capabilities: Any, revision: str):
    client = client_of(board(), capabilities, revision=revision)
    client.tool("show").assert_ok().assert_contains("Two tickets.")
    client.tool("refresh").assert_ok().assert_contains("Three tickets.")


@pytest.mark.django_db
@pytest.mark.parametrize("revision", WITH_META)
def test_the_page_is_listed_for_those_who_show_it_and_read_by_all(write, revision: str):
    write({"board.html": PLAIN})
    ui = {"csp": {"connectDomains": ["https://api.example.com"]}, "prefersBorder": True}
    server = board(csp={"connect_domains": ["https://api.example.com"]}, prefers_border=True)
    client = client_of(server, revision=revision)

    (listed,) = client.list_resources()
    assert (listed["uri"], listed["mimeType"], listed["_meta"]) == (BOARD, HTML, {"ui": ui})
    assert client_of(server, {}, revision=revision).list_resources() == []
    for each in (client, client_of(server, {}, revision=revision)):
        (contents,) = each.read(BOARD).assert_ok().result["contents"]
        assert contents == {"uri": BOARD, "mimeType": HTML, "text": PLAIN, "_meta": {"ui": ui}}


@pytest.mark.django_db
@pytest.mark.parametrize("revision", WITH_META)
def test_a_server_with_apps_declares_the_extension_and_others_do_not(revision: str):
    def declared(server: MCPServer, capabilities: Any = SHOWS_APPS) -> Any:
        client = client_of(server, capabilities, revision=revision)
        modern = client.revision.modern
        first = client.request("server/discover") if modern else client.initialize()
        return first.assert_ok().result["capabilities"].get("extensions")

    own = {EXTENSION: {"mimeTypes": [HTML]}}
    assert declared(board()) == own
    # What anybody may discover is kept for all; a handshake of an older revision is one client's.
    assert declared(board(), {}) == (own if revision == MODERN else None)
    assert declared(MCPServer("test")) is None


def test_what_depends_on_the_client_is_not_kept_for_other_clients():
    def scopes(server: MCPServer) -> set[str]:
        client = MCPClient(server, revision=MODERN, auth="django_mcp.auth.public")
        lists = (client.request(method) for method in ("tools/list", "resources/list"))
        return {each.result["cacheScope"] for each in lists}

    plain = MCPServer("test")
    plain.tool(name="it")(lambda: "")
    plain.resource("x://y", name="it")(lambda: "")
    assert scopes(plain) == {"public"}
    assert scopes(board()) == {"private"}


def test_permissions_hold_for_tools_that_models_do_not_see(write):
    """Visibility is a wish of the site's, which clients grant: it protects nothing."""
    write({"board.html": PLAIN})
    server = server_with(permission=lambda user: user.is_staff)
    server.tool(
        name="refresh", app=BOARD, visibility=["app"], permission=lambda user: user.is_staff
    )(lambda: "")
    client = client_of(server)
    assert client.list_tools() == []
    client.tool("refresh").assert_error(-32602, "Unknown tool")
    client.read(BOARD).assert_error(-32602, "not found")


def test_pages_of_lists_are_as_long_without_the_tools_of_apps(pages_of_two):
    server = board()
    server.tool(name="zz")(lambda: "")
    client = client_of(server, {})
    first = client.request("tools/list").result
    assert [tool["name"] for tool in first["tools"]] == ["other", "show"]
    rest = client.request("tools/list", cursor=first["nextCursor"]).result
    assert [tool["name"] for tool in rest["tools"]] == ["zz"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"app": "https://example.com/board"}, "no URI of an app"),
        ({"app": "ui://tickets/{id}"}, "no variables"),
        ({"visibility": "app"}, 'as in ["app"]'),
        ({"visibility": ["user"]}, '"model", "app" or both'),
        ({"app": BOARD, "meta": {"ui": {}}}, 'meta= has "ui"'),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], complaint: str):
    with pytest.raises(RegistrationError) as caught:
        MCPServer("test").tool(name="it", **options)(lambda: "")
    assert complaint in str(caught.value)


def test_meta_of_the_sites_own_is_sent_to_all_as_it_stands():
    """For hosts that show apps and do not say so."""
    server = MCPServer("test")
    server.tool(name="it", meta={"ui": {"resourceUri": BOARD}})(lambda: "")
    (tool,) = client_of(server, {}).list_tools()
    assert tool["_meta"] == {"ui": {"resourceUri": BOARD}}
