from __future__ import annotations

from django_mcp import MCPServer

from .api import SnippetViewSet, UserViewSet

server = MCPServer("snippets")
server.viewset(UserViewSet, actions=["list", "retrieve"])
server.viewset(
    SnippetViewSet, actions=["list", "retrieve", "create", "update", "destroy", "highlight"]
)
