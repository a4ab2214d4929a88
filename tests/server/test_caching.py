"""How long, and for whom, clients of the modern era may keep what they got."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils.translation import gettext_lazy
from mcp_types import Resource

from django_mcp import Context, MCPServer, RegistrationError
from django_mcp.testing import MCPClient
from tests.server.support import LEGACY, MODERN, client_of

PUBLIC = "django_mcp.auth.public"
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


def scope(client: MCPClient, method: str, **params: Any) -> str:
    return client.request(method, **params).result["cacheScope"]


def public(server: MCPServer) -> MCPClient:
    return MCPClient(server, revision=MODERN, auth=PUBLIC)


def serve(**permissions: Any) -> MCPServer:
    server = MCPServer("test")

    def template(key: str) -> str:
        return key

    server.tool(name="tool", permission=permissions.get("tool"))(lambda: "")
    server.prompt(name="prompt", permission=permissions.get("prompt"))(lambda: "")
    server.resource("x://plain", name="p", permission=permissions.get("plain"))(lambda: "")
    server.resource("x://{key}", name="t", permission=permissions.get("template"))(template)
    return server


@pytest.mark.parametrize("method", [*LISTS, "server/discover"])
def test_lists_of_an_open_endpoint_are_public_and_others_private(method):
    assert scope(public(serve()), method) == "public"
    assert scope(client_of(serve()), method) == "private"


def test_instructions_in_the_language_of_who_asks_are_private():
    server = MCPServer("test", instructions=gettext_lazy("Yes"))
    assert scope(public(server), "server/discover") == "private"


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("tool", "tools/list"),
        ("prompt", "prompts/list"),
        ("plain", "resources/list"),
        ("template", "resources/templates/list"),
    ],
)
def test_a_permission_makes_its_list_private(kind, method):
    client = public(serve(**{kind: lambda user: True}))
    assert scope(client, method) == "private"
    for other in LISTS:
        assert scope(client, other) == ("private" if other == method else "public")


def test_a_listing_makes_the_list_of_resources_private_on_all_its_pages():
    server = serve()

    def listed() -> list[Resource]:
        return [Resource(uri=f"y://{number}", name="n") for number in range(3)]

    def read(key: str) -> str:
        return key

    server.resource("y://{key}", list=listed)(read)
    client = public(server)
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "PAGE_SIZE": 1}):
        result = client.request("resources/list").result
        hints = [(result["cacheScope"], result["ttlMs"])]
        while "nextCursor" in result:
            result = client.request("resources/list", cursor=result["nextCursor"]).result
            hints.append((result["cacheScope"], result["ttlMs"]))
    assert hints == [("private", 0)] * 4
    assert scope(client, "resources/templates/list") == "public"


@pytest.mark.parametrize("method", LISTS)
def test_all_pages_of_a_list_have_one_scope(method):
    server = MCPServer("test")

    def template(key: str) -> str:
        return key

    for number in range(3):
        permission = (lambda user: True) if number == 2 else None
        server.tool(name=f"t{number}", permission=permission)(lambda: "")
        server.prompt(name=f"p{number}", permission=permission)(lambda: "")
        server.resource(f"x://{number}", name="r", permission=permission)(lambda: "")
        server.resource(f"y://{number}/{{key}}", permission=permission)(template)
    client = public(server)
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "PAGE_SIZE": 1}):
        result = client.request(method).result
        scopes = [result["cacheScope"]]
        while "nextCursor" in result:
            result = client.request(method, cursor=result["nextCursor"]).result
            scopes.append(result["cacheScope"])
    assert scopes == ["private"] * 3


@pytest.mark.parametrize("method", [*LISTS, "server/discover"])
def test_the_age_of_lists_is_a_setting(method):
    assert client_of(serve()).request(method).result["ttlMs"] == 60_000
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "LIST_TTL_SECONDS": 0}):
        assert client_of(serve()).request(method).result["ttlMs"] == 0
    with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "LIST_TTL_SECONDS": 5}):
        assert client_of(serve()).request(method).result["ttlMs"] == 5000


def read_hints(server: MCPServer, uri: str, *, open_to_all: bool = True) -> tuple[str, int]:
    client = public(server) if open_to_all else client_of(server)
    result = client.read(uri).result
    return result["cacheScope"], result["ttlMs"]


def test_what_is_read_is_stale_at_once_unless_it_says_otherwise():
    server = MCPServer("test")
    server.resource("x://now", name="now")(lambda: "")
    server.resource("x://later", name="later", ttl=1.5)(lambda: "")
    assert read_hints(server, "x://now") == ("public", 0)
    assert read_hints(server, "x://later") == ("public", 1500)
    assert read_hints(server, "x://later", open_to_all=False) == ("private", 1500)


def test_what_is_read_is_private_where_it_depends_on_the_caller():
    server = MCPServer("test")

    def mine(ctx: Context) -> str:
        return str(ctx.user)

    server.resource("x://mine")(mine)
    server.resource("x://allowed", name="a", permission=lambda user: True)(lambda: "")
    assert read_hints(server, "x://mine")[0] == "private"
    assert read_hints(server, "x://allowed")[0] == "private"


def test_what_is_read_in_place_of_something_hidden_is_private_too():
    server = MCPServer("test")

    def read(key: str) -> str:
        return key

    server.resource("x://a/{key}", name="a", permission=lambda user: False)(read)
    server.resource("x://{+key}", name="b")(read)
    assert read_hints(server, "x://a/1")[0] == "private"
    assert read_hints(server, "x://b/1")[0] == "public"


def test_a_negative_age_is_refused():
    with pytest.raises(RegistrationError, match="ttl= must not be negative"):
        MCPServer("test").resource("x://y", ttl=-1)(lambda: "")


def test_results_of_tools_prompts_and_completions_are_not_to_be_kept():
    server = serve()
    server.completion("prompt", "x")(lambda value: [])
    client = public(server)
    for answer in (client.tool("tool"), client.prompt("prompt"), client.complete("prompt", "x")):
        assert answer.result.keys().isdisjoint({"ttlMs", "cacheScope"})


@pytest.mark.django_db
@pytest.mark.parametrize("revision", LEGACY)
def test_legacy_revisions_know_nothing_of_it(revision):
    client = client_of(serve(), revision)
    for method in LISTS:
        assert client.request(method).result.keys().isdisjoint({"ttlMs", "cacheScope"})
    assert client.read("x://plain").result.keys() == {"contents"}
