"""The system checks of what clients and models will not take of what a server offers."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from django.apps import apps
from django.contrib.admin import AdminSite
from django.contrib.auth.models import Group
from django.core.checks import run_checks
from django.test import override_settings
from pydantic import create_model

from django_mcp import Ask, Elicit, MCPServer, ModelTools, endpoint
from django_mcp.checks import check_servers
from django_mcp.doctor.tools import finds_rows
from django_mcp.model_tools.generic.chosen_models import holds_credentials
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


def with_tools_of(count: int) -> MCPServer:
    server = MCPServer("shop")
    for number, model in enumerate(apps.get_models()[:count]):
        key = model._meta.pk.name
        options = {"fields": [key], "name": f"t{number}", "plural": f"t{number}s"}
        server.model(model)(type("T", (ModelTools,), {**options, "allow_secret": [key]}))
    return server


@pytest.mark.parametrize(("count", "expected"), [(12, []), (13, ["django_mcp.W055"])])
def test_tools_of_many_models_cost_more_than_five_for_all(count: int, expected: list[str]):
    assert ids(with_tools_of(count)) == expected


@pytest.mark.parametrize(("count", "expected"), [(12, []), (13, ["django_mcp.W055"])])
def test_tools_of_many_admins_count_as_well(count: int, expected: list[str]):
    server, site = MCPServer("shop"), AdminSite()
    models = [each for each in apps.get_models() if not holds_credentials(each)][:count]
    assert len(models) == count
    for number, model in enumerate(models):
        site.register(model)
        server.admin(model, site=site, name=f"t{number}", plural=f"t{number}s")
    assert ids(server) == expected


def test_five_tools_for_many_models_are_no_tools_of_many_models():
    server, site = MCPServer("shop"), AdminSite()
    models = [each for each in apps.get_models() if not holds_credentials(each)]
    assert len(models) > 13
    site.register(models)
    server.admin_site(site, models=["*"])
    assert ids(server) == []


def test_the_costs_of_tools_for_each_model_are_told_in_figures():
    server = with_tools_of(14)
    with override_settings(ROOT_URLCONF=urlconf(endpoint("a", server=server))):
        (message,) = (each for each in check_servers() if each.id == "django_mcp.W055")
    tools = [tool.description for tool in server.tools]
    size = sum(len(json.dumps(tool, separators=(",", ":"))) for tool in tools)
    assert message.msg == (
        f"The server 'shop' has 28 tools for 14 models, which take {size:,} characters of its list "
        f"({size // 4:,} tokens). Five tools for any number of models would take 3,000 (750)."
    )
    assert "mcp.admin_site(admin.site, models=[...])" in message.hint
    assert "SILENCED_SYSTEM_CHECKS" in message.hint


def test_a_model_with_several_kinds_of_tools_is_one_model():
    server = with_tools_of(12)
    again = {"fields": ["id"], "name": "again", "plural": "all_again"}
    server.model(Group)(type("T", (ModelTools,), again))
    assert Group in {each.model for each in server.models[:-1]}
    assert ids(server) == []


@pytest.mark.parametrize(("models", "expected"), [(12, []), (13, ["django_mcp.W055"])])
def test_a_model_with_tools_of_its_own_and_of_its_admin_is_one_model(
    models: int, expected: list[str]
):
    server, site = with_tools_of(models), AdminSite()
    site.register(Group)
    assert Group in {each.model for each in server.models}
    server.admin(Group, site=site, name="admin_group", plural="admin_groups", write=["update"])
    assert {"find_admin_groups", "update_admin_group"} <= {tool.key for tool in server.tools}
    assert ids(server) == expected


def test_the_doctor_knows_such_tools_from_outside():
    server, site, both = with_tools_of(1), AdminSite(), AdminSite()
    for each in (site, both):
        each.register(Group)
    server.admin(Group, site=site)
    server.admin_site(both, models=["*"])
    described = [tool.description for tool in server.tools]
    assert [each["name"] for each in described if finds_rows(each)] == ["find_groups", "find_t0s"]


def test_other_tools_do_not_count_as_tools_of_models():
    assert ids(serving(30, description="x" * 500)) == []
