"""Clients choose tools, by the URL or by headers: what they say only ever takes away."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import include, path, reverse

from django_mcp import MCPServer, endpoint
from django_mcp.auth import public
from tests.support.caller import Caller
from tests.support.entrances import Entrance
from tests.support.messages import LEGACY, MODERN
from tests.support.sites import urlconf

REVISIONS = (LEGACY[-1], MODERN)
ISSUER = "https://id.example.com"
WELL_KNOWN = "/.well-known/oauth-protected-resource"

server = MCPServer("shop")


@server.tool(read_only=True, toolset="orders", tags=["reports"])
def sales() -> str:
    """Sum up the sales."""
    return "100"


@server.tool(toolset="orders")
def ship() -> str:
    """Ship an order."""
    return "Shipped"


@server.tool(read_only=True, toolset="stock", permission=lambda user: user.is_authenticated)
def hidden() -> str:
    """Count what is in stock."""
    return "3"


@server.tool(read_only=True)
def about() -> str:
    """Say what this is."""
    return "A shop"


ALL = ["about", "sales", "ship"]
READ_ONLY = ["about", "sales"]


@pytest.fixture(autouse=True)
def site(settings):
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=server, auth=public, name="shop"),
        path("", include("django_mcp.well_known")),
    )


def listed(caller: Caller) -> list[str]:
    return [tool["name"] for tool in caller.call("tools/list").result["tools"]]


def at(entrance: Entrance, after: str, revision: str = MODERN, **headers: str) -> Caller:
    caller = Caller(entrance, path=f"/mcp{after}").with_headers(**headers)
    return caller.in_revision(revision)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        ("", ALL),
        ("/", ALL),
        ("/readonly", READ_ONLY),
        ("/readonly/", READ_ONLY),
        ("/x/orders", ["sales", "ship"]),
        ("/x/reports", ["sales"]),
        ("/x/orders/readonly", ["sales"]),
        ("/x/stock", []),
    ],
)
def test_the_url_chooses(after, wanted, revision, entrance):
    caller = at(entrance, after, revision)
    assert listed(caller) == wanted
    for name in (*ALL, "hidden"):
        answer = caller.tool(name)
        assert ("result" in answer.message) == (name in wanted), name
        if name not in wanted:
            assert answer.message["error"]["message"] == f"Unknown tool: {name}"


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({"X_MCP_Toolsets": "orders"}, ["sales", "ship"]),
        ({"X_MCP_Toolsets": " reports , nowhere"}, ["sales"]),
        ({"X_MCP_Toolsets": "stock"}, []),
        ({"X_MCP_Tools": "about,ship,hidden,nothing"}, ["about", "ship"]),
        ({"X_MCP_Toolsets": "reports", "X_MCP_Tools": "about"}, ["about", "sales"]),
        ({"X_MCP_Toolsets": "", "X_MCP_Tools": " , "}, ALL),
        ({"X_MCP_Readonly": "true"}, READ_ONLY),
        ({"X_MCP_Readonly": "1", "X_MCP_Toolsets": "orders"}, ["sales"]),
        ({"X_MCP_Readonly": " False "}, ALL),
        ({"X_MCP_Readonly": "0"}, ALL),
    ],
)
def test_headers_choose(headers, wanted, revision, entrance):
    caller = at(entrance, "", revision, **headers)
    assert listed(caller) == wanted
    for name in (*ALL, "hidden"):
        assert ("result" in caller.tool(name).message) == (name in wanted), name


def test_headers_take_away_from_what_the_url_has_chosen(entrance):
    assert listed(at(entrance, "/x/reports", X_MCP_Toolsets="orders")) == ["sales"]
    assert listed(at(entrance, "/x/reports", X_MCP_Tools="ship")) == []
    assert listed(at(entrance, "/readonly", X_MCP_Readonly="false")) == READ_ONLY


def test_a_toolset_that_is_not_there_is_no_page(entrance):
    answer = Caller(entrance, path="/mcp/x/ordres").call("tools/list")
    assert answer.status == 404
    assert "no toolset 'ordres'" in answer.message["error"]["message"]


@pytest.mark.parametrize("after", ["/x", "/x/", "/x/orders/ship", "/read", "/readonly/x/orders"])
def test_nothing_else_is_below_an_endpoint(after, entrance):
    assert Caller(entrance, path=f"/mcp{after}").call("tools/list").status == 404


def test_the_same_session_may_be_used_at_either_url(entrance):
    whole = at(entrance, "", LEGACY[-1])
    assert whole.session is not None
    part = Caller(entrance, path="/mcp/x/reports").in_session(whole.session)
    assert listed(part) == ["sales"]
    assert listed(whole) == ALL


def test_what_is_chosen_by_a_header_is_for_nobody_else(entrance, settings):
    """Clients keep lists by the URL: one that a header has made smaller must not be shared."""
    assert at(entrance, "").call("tools/list").result["cacheScope"] == "private", "hidden is hidden"
    server_for_all = MCPServer("open")
    server_for_all.tool(toolset="a", name="one")(lambda: "1")
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server_for_all, auth=public))
    assert at(entrance, "").call("tools/list").result["cacheScope"] == "public"
    chosen = at(entrance, "", X_MCP_Toolsets="a").call("tools/list")
    assert chosen.result["cacheScope"] == "private"
    assert at(entrance, "/x/a").call("tools/list").result["cacheScope"] == "public"


def test_the_tools_that_are_wanted_make_no_other_resource(entrance, settings):
    def closed(request: Any) -> None:
        """Let nobody in."""

    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTHORIZATION_SERVERS": [ISSUER]}
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=server, auth=closed), path("", include("django_mcp.well_known"))
    )
    refused = Caller(entrance, path="/mcp/x/orders").call("tools/list")
    assert refused.status == 401
    challenge = refused.header("WWW-Authenticate")
    assert f'resource_metadata="http://testserver{WELL_KNOWN}/mcp"' in challenge
    for after in ("", "/x/orders", "/readonly"):
        document = entrance.send("GET", f"{WELL_KNOWN}/mcp{after}", []).json()
        assert document["resource"] == "http://testserver/mcp"


def test_the_url_of_an_endpoint_is_still_the_shortest():
    assert reverse("shop") == "/mcp"
