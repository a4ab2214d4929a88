"""Endpoints in URLconfs: how they get there, and how they are found again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, re_path

from .default import mcp
from .server.registry import MCPServer
from .transport.http import Endpoint
from .transport.views import MCPView


def endpoint(
    route: str,
    *,
    server: MCPServer = mcp,
    auth: str | Callable[..., Any] | None = None,
    name: str | None = None,
) -> URLPattern:
    """Return the URL pattern that serves ``server`` at ``route``, with and without a slash.

    Both are answered, for some clients do not follow redirects. ``auth`` overrides the server's
    own and ``DJANGO_MCP["AUTH"]``. ``name`` is the pattern's name, for ``reverse()``.
    """
    view = MCPView.as_view(server=server, auth=auth)
    return re_path(rf"^{re.escape(route.strip('/'))}/?$", view, name=name)


def find_endpoints(
    resolver: URLResolver, above: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], Endpoint]]:
    """Yield every endpoint below ``resolver`` with the chain of patterns that leads to it."""
    chain = (*above, resolver.pattern)
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            yield from find_endpoints(entry, chain)
        elif hasattr(entry.callback, "mcp_endpoint"):
            yield (*chain, entry.pattern), entry.callback.mcp_endpoint[1]
