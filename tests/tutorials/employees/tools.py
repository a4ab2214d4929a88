from __future__ import annotations

from django_mcp import MCPServer

from .api import api

server = MCPServer("employees")
server.ninja(api, tags=["employees"], permission=lambda user: user.is_authenticated)
