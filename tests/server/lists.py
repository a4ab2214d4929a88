"""Servers with something of each kind, and walks along their lists."""

from __future__ import annotations

from typing import Any

from django_mcp import MCPServer

METHODS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
KEYS = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}


def add(server: MCPServer, name: str, *, only: str = "") -> None:
    def plain() -> str:
        return name

    def template(key: str) -> str:
        return name

    if only in ("", "tools"):
        server.tool(name=name)(plain)
    if only in ("", "prompts"):
        server.prompt(name=name)(plain)
    if only in ("", "resources"):
        server.resource(f"x://{name}", name=name)(plain)
    if only in ("", "resourceTemplates"):
        server.resource(f"y://{name}/{{key}}", name=name)(template)


def full(*names: str) -> MCPServer:
    server = MCPServer("test")
    for name in names:
        add(server, name)
    return server


def pages(client: Any, method: str) -> list[list[str]]:
    """Walk a list; the names on each page."""
    walked: list[list[str]] = []
    params: dict[str, Any] = {}
    while len(walked) < 50:
        result = client.request(method, **params).result
        member = METHODS[method]
        walked.append([item[KEYS[member]] for item in result[member]])
        if "nextCursor" not in result:
            return walked
        params = {"cursor": result["nextCursor"]}
    raise AssertionError("The list has no end")


def names(walked: list[list[str]]) -> list[str]:
    found = [name for page in walked for name in page]
    return [name.removeprefix("x://").removeprefix("y://").removesuffix("/{key}") for name in found]
