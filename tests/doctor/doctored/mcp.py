"""What is served."""

from __future__ import annotations

from django_mcp import mcp


@mcp.tool(read_only=True)
def look(what: str = "") -> str:
    """Look around."""
    return what
