"""MCP Apps, the extension ``io.modelcontextprotocol/ui``, as tools, lists and capabilities have it.

It is cited by the date of its specification, 2026-01-26. The pages themselves are made by
:mod:`~django_mcp.server.mcp_apps`, which is imported where a site has one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from ..protocol.versions import Revision, knows
from .errors import RegistrationError

EXTENSION: Final = "io.modelcontextprotocol/ui"
MIME_TYPE: Final = "text/html;profile=mcp-app"
"""What a page is; the only type that the extension has so far."""
SCHEME: Final = "ui://"
"""How the URI of a page begins (2026-01-26, "UI Resource Format")."""

SETTINGS: Final[Mapping[str, Any]] = {"mimeTypes": [MIME_TYPE]}
"""What a server with apps declares of the extension; clients declare the same."""

_AUDIENCES: Final = ("model", "app")


def shows_apps(capabilities: Mapping[str, Any], revision: Revision) -> bool:
    """Return whether a client that has declared ``capabilities`` shows apps.

    2026-01-26, "Client<>Server Capability Negotiation". A revision whose tools have no ``_meta``
    has no place to say which app is theirs.
    """
    declared = (capabilities.get("extensions") or {}).get(EXTENSION)
    if not declared or not knows(revision, "Tool", "_meta"):
        return False
    types = declared.get("mimeTypes")
    return isinstance(types, list) and MIME_TYPE in types


def checked_uri(uri: str, label: str) -> str:
    """Return the URI of an app, if it can be one's."""
    if not uri.startswith(SCHEME) or uri == SCHEME or set("{}").intersection(uri):
        raise RegistrationError(
            f"{label}: {uri!r} is no URI of an app. It begins with {SCHEME} and has no variables, "
            f'as in "{SCHEME}tickets/board".'
        )
    return uri


def ui_of_tool(
    app: str | None, visibility: Collection[str], meta: Mapping[str, Any] | None, label: str
) -> dict[str, Any] | None:
    """Return ``_meta.ui`` of a tool (2026-01-26, "Resource Discovery"); ``None`` without any."""
    if isinstance(visibility, str) or not set(visibility).issubset(_AUDIENCES):
        raise RegistrationError(
            f'{label}: visibility= takes "model", "app" or both, as in ["app"]; not {visibility!r}.'
        )
    ui: dict[str, Any] = {}
    if app is not None:
        ui["resourceUri"] = checked_uri(app, f"{label}: app=")
    if visibility:
        ui["visibility"] = [each for each in _AUDIENCES if each in visibility]
    if ui and "ui" in (meta or {}):
        raise RegistrationError(
            f'{label}: meta= has "ui", which app= and visibility= write. Leave it out of meta=.'
        )
    return ui or None
