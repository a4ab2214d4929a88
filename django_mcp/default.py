"""The default server, ``mcp``: its identity comes from the settings."""

from __future__ import annotations

from . import __version__
from .conf import get_settings
from .server.registry import MCPServer


class DefaultServer(MCPServer):
    """A server whose name, version and instructions are settings, read live."""

    @property
    def name(self) -> str:
        """``DJANGO_MCP["SERVER_NAME"]``."""
        return get_settings().server_name

    @property
    def version(self) -> str:
        """``DJANGO_MCP["SERVER_VERSION"]``; without it, that of this package."""
        return get_settings().server_version or __version__

    @property
    def instructions(self) -> str | None:
        """``DJANGO_MCP["INSTRUCTIONS"]``."""
        return get_settings().instructions or None


mcp = DefaultServer("")
