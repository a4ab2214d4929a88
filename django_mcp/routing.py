"""Endpoints in URLconfs: how they get there, and how they are found again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from django.urls import URLPattern, URLResolver
from django.urls.resolvers import RegexPattern

from .http.request import WANTED_TOOLS, Endpoint
from .http.views import MCPView
from .server.default_server import mcp
from .server.file_links import FILE
from .server.file_links import PATH as FILE_PATH
from .server.registry import MCPServer
from .server.tool_selection import PATH

Chain = tuple[Any, ...]
"""Patterns, from the root's on, each of which matches what the one before it leaves of a path."""
Place = tuple[Chain, URLPattern]


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
    return URLPattern(EndpointPattern(route.strip("/"), name), view, name=name)


class EndpointPattern(RegexPattern):
    """Matches the path of an endpoint, with and without a slash, and what may come after it.

    That says which :mod:`tools <django_mcp.server.tool_selection>` a client wants to have, or
    which :mod:`file <django_mcp.server.file_links>` it fetches.
    """

    def __init__(self, route: str, name: str | None) -> None:
        path = re.escape(route)
        behind = rf"(?P<{WANTED_TOOLS}>{PATH})?(?P<{FILE}>{FILE_PATH})?"
        super().__init__(rf"^{path}{behind}/?$", name, is_endpoint=True)
        self._shown = f"^{path}/?$"

    def __str__(self) -> str:
        return self._shown


def find_endpoints(resolver: URLResolver) -> Iterator[tuple[Chain, Endpoint]]:
    """Yield every endpoint below ``resolver`` with the chain of patterns that leads to it."""
    for chain, entry in leaves(resolver):
        if hasattr(entry.callback, "mcp_endpoint"):
            yield chain, entry.callback.mcp_endpoint[1]


def leaves(resolver: URLResolver, above: Chain = ()) -> Iterator[Place]:
    """Yield every URL pattern below ``resolver`` with the chain of patterns that leads to it."""
    chain = (*above, resolver.pattern)
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            yield from leaves(entry, chain)
        else:
            yield (*chain, entry.pattern), entry


def path_of(chain: Chain) -> str:
    """Return a chain of patterns as people write paths; endpoints have regular expressions."""
    parts = (str(each).removeprefix("^").removesuffix("/?$").replace("\\", "") for each in chain)
    return "".join(parts).removeprefix("/")


def rest_of(path: str, chain: Chain) -> str | None:
    """Return what a chain of patterns leaves of a path, or ``None`` where one does not match."""
    for pattern in chain:
        match = pattern.match(path)
        if not match:
            return None
        path = match[0]
    return path
