"""Text as structured output, too, for servers that say so."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils.functional import lazystr
from django.utils.safestring import SafeString, mark_safe
from jsonschema import validate
from mcp_types import TextContent
from pydantic import Field

from django_mcp import MCPServer, mcp
from django_mcp.testing import MCPClient
from tests.server.support import MODERN, REVISIONS, client_of, returning

pytestmark = pytest.mark.django_db

TEXT = {"type": "string"}
STRUCTURED = {"type": "object", "properties": {"result": TEXT}, "required": ["result"]}


def serving(annotation: Any, value: Any, **options: Any) -> MCPServer:
    server = MCPServer("texts", structured_text=True)
    server.tool(name="it", **options)(returning(annotation, value))
    return server


@pytest.mark.parametrize("revision", REVISIONS)
def test_fastmcp_finds_the_text_in_the_structured_content(revision):
    """FastMCP's ``result.data`` is None without it; the official SDK wraps text so."""
    client = client_of(serving(str, "hello"), revision)
    answer = client.tool("it")
    assert answer.result["content"] == [{"type": "text", "text": "hello"}]
    (described,) = client.list_tools()
    if revision == "2025-03-26":
        assert "structuredContent" not in answer.result
        assert "outputSchema" not in described
    else:
        assert answer.structured == {"result": "hello"}
        assert described["outputSchema"] == STRUCTURED


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (str, "", ""),
        (str, lambda: lazystr("later"), "later"),
        (SafeString, mark_safe("<b>"), "<b>"),
        (SafeString | str | None, mark_safe("<b>"), "<b>"),
        (str | None, None, None),
        (str | None, "a", "a"),
        (Annotated[str, Field(description="A word")], "a", "a"),
    ],
    ids=range(7),
)
def test_text_of_every_kind(annotation, value, expected):
    client = client_of(serving(annotation, value))
    assert client.tool("it").assert_ok().structured == {"result": expected}
    (described,) = client.list_tools()
    validate({"result": expected}, described["outputSchema"])


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(Any, "a"), (..., "a"), (None, None), (str | TextContent, "a"), (list[TextContent], [])],
    ids=range(5),
)
def test_what_may_be_something_else_stays_as_it_is(annotation, value):
    client = client_of(serving(annotation, value))
    assert client.tool("it").assert_ok().structured is None
    assert "outputSchema" not in client.list_tools()[0]


def test_what_is_structured_already_stays_as_it_is():
    client = client_of(serving(list[str], ["a"]))
    client.tool("it").assert_structured(["a"])
    assert client.list_tools()[0]["outputSchema"] == {"type": "array", "items": TEXT}


def test_a_tool_may_stay_unstructured():
    client = client_of(serving(str, "a", output_schema=False))
    assert client.tool("it").structured is None
    assert "outputSchema" not in client.list_tools()[0]


def test_what_is_not_as_annotated_is_not_sent():
    message = client_of(serving(str, 5.25)).tool("it").message
    assert "error" in message or message["result"]["isError"]
    assert "5.25" not in str(message.get("result"))


def test_it_is_off_by_default():
    server = MCPServer("texts")
    server.tool(name="it")(returning(str, "a"))
    assert client_of(server).tool("it").structured is None
    assert "outputSchema" not in client_of(server).list_tools()[0]


def test_a_setting_says_it_for_the_default_server():
    name = "structured_or_not"
    mcp.tool(name=name)(returning(str, "a"))
    try:
        client = MCPClient(revision=MODERN)
        assert client.tool(name).structured is None
        with override_settings(DJANGO_MCP={**settings.DJANGO_MCP, "STRUCTURED_TEXT": True}):
            assert client.tool(name).structured == {"result": "a"}
            shown = {each["name"]: each for each in client.list_tools()}
            assert shown[name]["outputSchema"] == STRUCTURED
        shown = {each["name"]: each for each in client.list_tools()}
        assert "outputSchema" not in shown[name]
    finally:
        del mcp._tools[name]
