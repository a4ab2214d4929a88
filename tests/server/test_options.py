"""Names and options of what is registered: which are refused, and how the rest is described."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import Icon

from django_mcp import MCPServer, RegistrationError
from django_mcp.server.results import dump


def ping() -> str:
    return "pong"


async def aping() -> str:
    return "pong"


BAD_NAMES = ["a b", "a/b", "größe", "a:b", "x" * 129, "a\n", "<lambda>", "a,b", "a$"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_a_bad_name_is_refused(name):
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match="use 1 to 64 letters, digits, underscores"):
        server.tool(name=name)(ping)
    with pytest.raises(RegistrationError, match="use 1 to 128 letters"):
        server.prompt(name=name)(ping)


@pytest.mark.parametrize("name", ["a", "A-b_c9", "x" * 64])
def test_a_good_name_is_taken(name):
    server = MCPServer("test")
    server.tool(name=name)(ping)
    assert server.find_tool(name) is not None


@pytest.mark.parametrize("name", ["admin.tools.list", "x" * 65])
def test_claude_and_openai_take_narrower_names_of_tools_than_the_protocol(name):
    """Their interfaces refuse all tools of a session in which one is called so."""
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match="as models take them"):
        server.tool(name=name)(ping)
    server.prompt(name=name)(ping)
    assert server.find_prompt(name) is not None


def test_a_lambda_needs_a_name():
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match="<lambda>"):
        server.tool(lambda: 1)
    server.tool(name="one")(lambda: 1)


def test_a_name_is_taken_once_for_each_kind():
    server = MCPServer("test")
    server.tool(ping)
    server.prompt(ping)
    server.resource("ping://")(ping)
    with pytest.raises(RegistrationError, match="already has a tool 'ping'"):
        server.tool(ping)
    with pytest.raises(RegistrationError, match="already has a prompt 'ping'"):
        server.prompt(ping)
    with pytest.raises(RegistrationError, match="already has a resource 'ping://'"):
        server.resource("ping://")(ping)


def test_names_are_case_sensitive():
    server = MCPServer("test")
    server.tool(ping)
    server.tool(name="Ping")(ping)
    assert [tool.key for tool in server.tools] == ["Ping", "ping"]


def test_a_timeout_is_in_seconds():
    server = MCPServer("test")
    for function, seconds in ((aping, 0), (ping, -1)):
        with pytest.raises(RegistrationError, match="ping: timeout= must be more than 0 seconds"):
            server.tool(timeout=seconds)(function)
    server.tool(timeout=0.5)(aping)
    server.tool(timeout=0.5)(ping)


@pytest.mark.parametrize("rate", ["10", "10/w", "0/m", "m", "10 / m", 10, 1.5], ids=repr)
def test_a_rate_limit_is_so_many_in_a_period(rate):
    server = MCPServer("test")
    with pytest.raises(RegistrationError, match="ping: rate_limit="):
        server.tool(rate_limit=rate)(ping)
    server.tool(rate_limit="10/m")(ping)
    server.tool(rate_limit="10/h per process")(aping)


async def amay(user: Any) -> bool:
    return False


@pytest.mark.parametrize(
    "permission",
    [
        pytest.param(amay, id="async"),
        5,
        "",
        ".",
        "view_order",
        "shop.",
        ".view_order",
        "shop..view_order",
        "shop.view order",
        " shop.view_order",
        "shop.view_order\n",
    ],
    ids=repr,
)
def test_a_permission_that_would_let_in_everybody_or_nobody_is_refused(permission):
    server = MCPServer("test")
    cure = 'ping: permission= takes a Django permission, written "app_label.codename"'
    with pytest.raises(RegistrationError, match=cure):
        server.tool(permission=permission)(ping)
    with pytest.raises(RegistrationError, match=cure):
        server.prompt(permission=permission)(ping)
    with pytest.raises(RegistrationError, match=cure):
        server.resource("x://y", permission=permission)(ping)
    assert [*server.tools, *server.prompts, *server.resources] == []


def test_what_a_permission_may_look_like():
    for permission in (None, "shop.view_order", "shop.order.view", "läden.view-order"):
        server = MCPServer("test")
        server.tool(permission=permission)(ping)
        assert server.tools[0].permission == permission


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_schema": {"type": "array"}}, 'input_schema= must have "type": "object"'),
        ({"input_schema": {}}, 'input_schema= must have "type": "object"'),
        ({"output_schema": {"type": "string"}}, "output_schema= needs a return annotation"),
        ({"title": 5}, "ping: title: "),
        ({"description": 5}, "ping: description: "),
        ({"meta": {"a": object()}}, "ping: its description is not JSON"),
        ({"icons": [{"sizes": ["1x1"]}]}, "ping: icons"),
    ],
)
def test_options_that_cannot_be_sent_are_refused(options, message):
    with pytest.raises(RegistrationError, match=message):
        MCPServer("test").tool(**options)(ping)


def test_an_explicit_schema_belongs_to_the_site():
    server = MCPServer("test")
    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }
    before = json.dumps(schema)

    def find(region: str) -> str:
        return region

    server.tool(input_schema=schema)(find)
    assert json.dumps(schema) == before


def test_options_of_a_tool_are_described():
    server = MCPServer("test")
    server.tool(
        title="A ping",
        description="Says pong",
        read_only=True,
        destructive=False,
        idempotent=True,
        open_world=False,
        icons=[Icon(src="https://example.com/i.png", mime_type="image/png", sizes=["48x48"])],
        meta={"example.com/key": {"a": None}},
    )(ping)
    assert server.find_tool("ping").description == {
        "name": "ping",
        "title": "A ping",
        "description": "Says pong",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
        "icons": [
            {"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}
        ],
        "_meta": {"example.com/key": {"a": None}},
    }


def test_options_not_given_are_not_described():
    server = MCPServer("test")
    server.tool(ping)
    assert server.find_tool("ping").description == {
        "name": "ping",
        "inputSchema": {"type": "object", "properties": {}},
    }


def test_only_the_hints_that_were_given_are_sent():
    server = MCPServer("test")
    server.tool(destructive=False)(ping)
    assert server.find_tool("ping").description["annotations"] == {"destructiveHint": False}


def test_stray_completions_are_found_by_the_check():
    server = MCPServer("test")

    @server.prompt
    def hello(name: str) -> str:
        return name

    @server.resource("y://{id}")
    def item(id: int) -> str:
        return ""

    for reference, argument in [
        ("hello", "nam"),
        ("nobody", "name"),
        ("x://{id}", "id"),
        ("y://{id}", "key"),
    ]:
        server.completion(reference, argument)(lambda value: [])
    server.completion("hello", "name")(lambda value: [])
    server.completion("y://{id}", "id")(lambda value: [])
    assert [line.split(": there")[0] for line in server.check()] == [
        "completion of 'nam' for 'hello'",
        "completion of 'name' for 'nobody'",
        "completion of 'id' for 'x://{id}'",
        "completion of 'key' for 'y://{id}'",
    ]


def test_the_server_describes_itself():
    server = MCPServer(
        "shop",
        version="1.2",
        title="The shop",
        description="Sells",
        website_url="https://example.com",
        icons=[Icon(src="https://example.com/i.png")],
    )
    assert server.implementation() == {
        "name": "shop",
        "version": "1.2",
        "title": "The shop",
        "description": "Sells",
        "websiteUrl": "https://example.com",
        "icons": [dump(Icon(src="https://example.com/i.png"))],
    }
    assert repr(server) == "<MCPServer 'shop'>"
