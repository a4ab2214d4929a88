"""The tools, found by django-mcp-server by the name of this module."""

from __future__ import annotations

from mcp_server import MCPToolset, mcp_server
from shelf.models import Item


class Tools(MCPToolset):
    """Its methods are tools."""

    def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def look_up(self, key: int) -> int:
        """Return what a key stands for."""
        return Item.objects.get(pk=key).value


def note(title: str, text: str, urgent: bool = False) -> str:
    """Take a note."""
    return f"{title}: {text}"


for number in range(48):
    mcp_server.add_tool(note, name=f"note_{number:02}")
