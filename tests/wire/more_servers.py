"""More servers: one with nothing, one that hides things, one with many pages."""

from __future__ import annotations

from typing import Literal

from django_mcp import MCPServer

from . import site

bare = MCPServer("bare", version="1")
guarded = MCPServer("guarded", version="1")
paged = MCPServer("paged", version="1")


@guarded.tool
def open_tool() -> str:
    """Everybody's."""
    return "open"


@guarded.tool(permission="auth.view_user")
def closed_tool() -> str:
    """Only for some."""
    site.calls.append("closed_tool")
    return "closed"


@guarded.resource("locker://page", permission="auth.view_user")
def closed_page() -> str:
    """Only for some."""
    return "closed"


@guarded.resource("locker://{key}", permission="auth.view_user")
def closed_pages(key: str) -> str:
    """Only for some."""
    return "closed"


@guarded.prompt(permission="auth.view_user")
def closed_prompt(word: Literal["xyzzy"]) -> str:
    """Only for some."""
    return word


@guarded.completion("locker://{key}", "key")
def closed_keys(value: str) -> list[str]:
    """Only for some."""
    return ["xyzzy"]


for each in range(7):
    paged.tool(name=f"t{each}")(site.add)
    paged.resource(f"p://{each}", name=f"p{each}")(site.front)
    paged.resource(f"p://{each}/{{key}}", name=f"pt{each}")(closed_pages)
    paged.prompt(name=f"q{each}")(site.show)
