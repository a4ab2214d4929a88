"""One server that needs no scopes, and the page for tokens of one's own."""

from __future__ import annotations

from django_mcp import MCPServer, endpoint

from .shop import PAGE

urlpatterns = [endpoint("mcp", server=MCPServer("plain")), PAGE]
