"""The system checks of what clients and models will not take of what a server offers."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from django.core.checks import run_checks
from django.test import override_settings
from pydantic import create_model

from django_mcp import Ask, Elicit, MCPServer, endpoint
from django_mcp.checks import check_servers
from django_mcp.server.default_server import mcp
from tests.support.sites import urlconf


def ids(server: MCPServer) -> list[str]:
    with override_settings(ROOT_URLCONF=urlconf(endpoint("a", server=server))):
        return [message.id for message in check_servers() if message.id >= "django_mcp.W010"]


def serving(count: int = 1, *, description: str = "", **options: Any) -> MCPServer:
    server = MCPServer("shop", **options)
    for number in range(count):
        server.tool(name=f"t{number}", description=description)(lambda: "")
    return server


def nested(count: int) -> Any:
    model = create_model("Last", value=(int, ...))
    for number in range(count):
        model = create_model(f"Level{number}", left=(model, ...), right=(model, ...))
    return model


@pytest.mark.parametrize(("characters", "expected"), [(56, []), (57, ["django_mcp.W010"])])
def test_a_long_name_leaves_no_room_for_that_of_the_server(characters: int, expected: list[str]):
    server = MCPServer("shop")
    server.tool(name="x" * characters)(lambda: "")
    assert ids(server) == expected


@pytest.mark.parametrize(("characters", "expected"), [(2048, []), (2049, ["django_mcp.W011"])])
def test_claude_code_cuts_long_descriptions_and_instructions(characters, expected, settings):
    assert ids(serving(description="x" * characters)) == expected
    assert ids(serving(instructions="x" * characters)) == expected
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "INSTRUCTIONS": "x" * characters}
    assert ids(mcp) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (40, []),
        (41, ["django_mcp.W012"]),
        (128, ["django_mcp.W012"]),
        (129, ["django_mcp.W012", "django_mcp.W013"]),
    ],
)
def test_cursor_and_vs_code_take_so_many_tools(count: int, expected: list[str]):
    assert ids(serving(count)) == expected


def test_a_long_list_fills_the_context():
    assert ids(serving(40, description="x" * 1_800)) == []
    assert ids(serving(40, description="x" * 2_000)) == ["django_mcp.W014"]


def test_a_letter_beyond_ascii_is_one_character_of_a_list():
    assert ids(serving(40, description="\u3042" * 1_800)) == []
    assert ids(serving(40, description="\u3042" * 2_000)) == ["django_mcp.W014"]


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf", "allOf", "not", "enum"])
def test_a_given_schema_with_alternatives_at_its_root_breaks_all_tools_of_a_session(keyword):
    server = MCPServer("shop")
    schema: dict[str, Any] = {"type": "object", keyword: []}
    server.tool(name="it", input_schema=schema)(lambda: "")
    assert ids(server) == ["django_mcp.W015"]
    below: dict[str, Any] = {"type": "object", "properties": {"a": {keyword: []}}}
    server.tool(name="it2", input_schema=below)(lambda: "")
    assert ids(server) == ["django_mcp.W015"]


def test_schemas_that_would_grow_too_large_keep_their_definitions():
    server = MCPServer("shop")

    def take(value):
        return {}

    def give():
        return {}

    take.__annotations__ = {"value": nested(10)}
    give.__annotations__ = {"return": nested(10)}
    server.tool(take)
    assert ids(server) == ["django_mcp.W016"]
    server.tool(give)
    assert ids(server) == ["django_mcp.W016"] * 2
    server.tool(name="given", input_schema={"type": "object"}, output_schema=False)(take)
    assert ids(server) == ["django_mcp.W016"] * 2


def test_an_argument_for_clients_that_cannot_be_asked_may_keep_its_definitions():
    server = MCPServer("shop")

    def ask():
        return Elicit("What?", str)

    def take(value):
        return ""

    take.__annotations__ = {"value": Annotated[nested(10), Ask(ask, or_argument=True)]}
    server.tool(take)
    assert ids(server) == ["django_mcp.W016"]


def test_each_warning_names_the_tool_and_the_cure_and_can_be_silenced(settings):
    server = MCPServer("shop", instructions="x" * 3_000)
    server.tool(name="x" * 60, description="x" * 3_000)(lambda: "")
    settings.ROOT_URLCONF = urlconf(endpoint("a", server=server))
    messages = [each for each in check_servers() if each.id >= "django_mcp.W010"]
    assert [each.id[-4:] for each in messages] == ["W010", "W011", "W011"]
    assert all("shop" in each.msg and each.hint for each in messages)
    assert "'" + "x" * 60 + "'" in messages[0].msg
    settings.SILENCED_SYSTEM_CHECKS = ["django_mcp.W010", "django_mcp.W011"]
    silenced = [each for each in run_checks(tags=["urls"]) if each in messages]
    assert silenced
    assert all(each.is_silenced() for each in silenced)
