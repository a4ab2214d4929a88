"""The one line that connects each of the usual clients to the endpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

NAME = "support"


@dataclass(frozen=True, slots=True)
class ClientLine:
    """What to paste, and where."""

    client: str
    place: str
    line: str


def client_lines(endpoint: str) -> list[ClientLine]:
    """One for each client."""
    cursor = {"mcpServers": {NAME: {"url": endpoint}}}
    code = {"name": NAME, "type": "http", "url": endpoint}
    return [
        ClientLine(
            "Claude Code", "in a shell", f"claude mcp add --transport http {NAME} {endpoint}"
        ),
        ClientLine("Cursor", "as .cursor/mcp.json", _compact(cursor)),
        ClientLine("VS Code", "in a shell", f"code --add-mcp '{_compact(code)}'"),
    ]


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
