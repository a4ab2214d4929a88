"""What a server declares: the features for which the site has registered something.

Capabilities follow from the registry alone, not from the door or the worker that answers, so that
every worker of a deployment says the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ..protocol.versions import Revision

if TYPE_CHECKING:
    from .registry import MCPServer

FEATURES: Final[dict[str, Callable[[MCPServer], bool]]] = {
    "completions": lambda server: server.has_completions,
    "prompts": lambda server: bool(server.prompts),
    "resources": lambda server: bool(server.resources),
    "tools": lambda server: bool(server.tools),
}
"""Capability to the question whether a server has it."""

_CHANGES: Final = {
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "tools": {"listChanged": True},
}
"""What clients can be told of; the same members in all revisions."""


def capabilities(server: MCPServer, revision: Revision) -> dict[str, Any]:
    """Return ``ServerCapabilities``."""
    declared: dict[str, Any] = {
        name: dict(_CHANGES.get(name, {})) for name, has in FEATURES.items() if has(server)
    }
    if not revision.modern:
        # The session keeps the level that logging/setLevel asks for. In the modern era the level
        # comes with each request.
        declared["logging"] = {}
    return declared
