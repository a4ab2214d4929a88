"""The default server, ``mcp``: its identity comes from the settings."""

from __future__ import annotations

from .conf import get_settings
from .server.registry import MCPServer
from .site_version import site_version


class DefaultServer(MCPServer):
    """A server whose identity is a matter of settings, read live."""

    @property
    def name(self) -> str:
        """``DJANGO_MCP["SERVER_NAME"]``."""
        return get_settings().server_name

    @property
    def version(self) -> str:
        """``DJANGO_MCP["SERVER_VERSION"]``; without it, that of the site."""
        return get_settings().server_version or site_version()

    @property
    def instructions(self) -> str | None:
        """``DJANGO_MCP["INSTRUCTIONS"]``."""
        return get_settings().instructions or None

    @property
    def structured_text(self) -> bool:
        """``DJANGO_MCP["STRUCTURED_TEXT"]``."""
        return get_settings().structured_text


mcp = DefaultServer("")
