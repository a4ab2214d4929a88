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


def login_lines(endpoint: str) -> list[ClientLine]:
    """One for each client that logs in by OAuth."""
    return [
        ClientLine(
            "Claude Code",
            "in a shell, and then /mcp",
            f"claude mcp add --transport http {NAME}-login {endpoint}",
        ),
        ClientLine(
            "Inspector",
            "in a shell, and then Connect",
            f"npx @modelcontextprotocol/inspector {endpoint}",
        ),
        ClientLine(
            "Claude, ChatGPT",
            "as a custom connector, once the site is on the Internet with DJANGO_SITE=https://...",
            "https://.../login/mcp",
        ),
    ]


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
