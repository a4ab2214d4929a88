"""From when on models are better offered by tools for all of them than by tools for each."""

from __future__ import annotations

from typing import Final

MANY_MODELS: Final = 12
"""Of more with tools of their own, it is said what tools for all of them would take."""
GENERIC_CHARACTERS: Final = 3_000
"""Of the list of the five tools that ``mcp.admin_site`` makes for any number of models."""
