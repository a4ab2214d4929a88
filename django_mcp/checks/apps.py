"""System checks of apps: pages that cannot be made or cannot load, and tools without theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.core.checks import CheckMessage, Error

from ..server.registry import MCPServer


def check_apps(servers: Sequence[MCPServer]) -> Iterator[CheckMessage]:
    """Yield what is wrong with the apps of ``servers``, and with the tools that name one."""
    for server in servers:
        for app in server.apps:
            yield from app.check()
        if server.has_app_tools:
            yield from _check_links(server)


def _check_links(server: MCPServer) -> Iterator[CheckMessage]:
    known = {app.uri for app in server.apps}
    for tool in server.tools:
        uri = (tool.ui or {}).get("resourceUri")
        if uri is not None and uri not in known:
            names = ", ".join(map(repr, sorted(known))) or "none"
            yield Error(
                f"app= of the tool {tool.key!r} of the server {server.name!r} names {uri!r}; the "
                f"apps of the server: {names}.",
                hint="Correct the URI, or offer the page by mcp.app(...).",
                id="django_mcp.E071",
            )
