"""``endpoint()``: one line of a URLconf for one server."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.urls import URLPattern, re_path

from .default import mcp
from .server.registry import MCPServer
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
