"""One tool, prompt or resource on a server of its own, and a client of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from jsonschema import Draft202012Validator
from pydantic import Field

from django_mcp import MCPServer
from django_mcp.testing import Answer, MCPClient

MODERN = "2026-07-28"
LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
REVISIONS = (*LEGACY, MODERN)


def client_of(server: MCPServer, revision: str = MODERN) -> MCPClient:
    return MCPClient(server, revision=revision)


def serve_tool(function: Callable[..., Any], **options: Any) -> MCPServer:
    server = MCPServer("test")
    server.tool(name="it", **options)(function)
    return server


def describe_tool(
    function: Callable[..., Any], *, revision: str = MODERN, **options: Any
) -> dict[str, Any]:
    (described,) = client_of(serve_tool(function, **options), revision).list_tools()
    return described


def input_schema(function: Callable[..., Any], **options: Any) -> dict[str, Any]:
    schema = describe_tool(function, **options)["inputSchema"]
    assert_valid_schema(schema)
    return schema


def call(function: Callable[..., Any], /, **arguments: Any) -> Answer:
    return client_of(serve_tool(function)).tool("it", **arguments)


def assert_valid_schema(schema: dict[str, Any]) -> None:
    """It is JSON Schema 2020-12, it is JSON, and its references lead somewhere inside of it."""
    Draft202012Validator.check_schema(schema)
    json.dumps(schema, allow_nan=False)
    for reference in references(schema):
        target: Any = schema
        assert reference.startswith("#/")
        for step in reference[2:].split("/"):
            target = target[step.replace("~1", "/").replace("~0", "~")]


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def accepts(schema: dict[str, Any], value: Any) -> bool:
    return bool(Draft202012Validator(schema).is_valid(value))


def returning(annotation: Any, value: Any) -> Any:
    """A function so annotated that returns ``value``, or what it makes; ``...``: no annotation."""

    def give():
        return value() if callable(value) else value

    give.__annotations__ = {} if annotation is ... else {"return": annotation}
    return give


def reading(uri: str, function: Any, *, template: str = "", **options: Any) -> Any:
    server = MCPServer("test")
    server.resource(template or uri, name="it", **options)(function)
    return client_of(server).read(uri)


def mirrored(name: Any, **more: Any) -> Any:
    """The annotation of a parameter that clients mirror into the header ``Mcp-Param-<name>``."""
    return Field(json_schema_extra={"x-mcp-header": name}, **more)
