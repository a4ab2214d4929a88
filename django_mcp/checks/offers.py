"""System checks of what servers offer, by what clients and models are known to take."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.core.checks import CheckMessage
from django.core.checks import Warning as CheckWarning

from ..server.json_schema import grows_too_large
from ..server.primitives import Tool
from ..server.registry import MCPServer

#: Models take names of 64 characters, and clients write the server's name in front.
NAME_CHARACTERS: Final = 56
#: Claude Code cuts descriptions and instructions here, without a word.
DESCRIPTION_CHARACTERS: Final = 2_048
#: Cursor shows its model no more tools, of all servers together.
CURSOR_TOOLS: Final = 40
#: VS Code refuses to send a request with more tools.
VSCODE_TOOLS: Final = 128
#: A tenth of a context of 200,000, from where Claude Code searches tools instead of reading them.
LIST_TOKENS: Final = 20_000
CHARACTERS_IN_A_TOKEN: Final = 4
#: What the interfaces of models refuse at the root of a tool's arguments.
ROOT_KEYWORDS: Final = ("oneOf", "anyOf", "allOf", "not", "enum")

NAME_HINT: Final = (
    "Give it a shorter name=: clients write the server's name in front, and models take 64 "
    "characters in all."
)
DESCRIPTION_HINT: Final = (
    "Say first what matters, and shorten the rest: Claude Code cuts it at 2,048 characters, and "
    "tells nobody."
)
TOOLS_HINT: Final = (
    "Models choose better among few: serve some of the tools by another server, at a URL of its "
    "own, or hide them by permissions. {client} If that does not matter to you, add "
    '"{id}" to SILENCED_SYSTEM_CHECKS.'
)
TOKENS_HINT: Final = (
    "Models read all of it before they do anything. Shorten descriptions, take simpler arguments, "
    "or serve some of the tools by another server, at a URL of its own."
)
ROOT_HINT: Final = (
    "The interfaces of Claude and OpenAI refuse every tool of a session in which one has it. "
    "Describe plain properties, check the rest in the function, and tell the model what is wrong "
    "by ToolError."
)
DEFINITIONS_HINT: Final = (
    "Written out in full it would have more than four times its size, and several clients cannot "
    "follow references. Take less deeply nested models, or ids of what is nested."
)


def check_offers(servers: Sequence[MCPServer]) -> Iterator[CheckMessage]:
    """Yield what some client will not take of what ``servers`` offer."""
    for server in servers:
        for tool in server.tools:
            yield from _check_tool(tool, f"the tool {tool.key!r} of the server {server.name!r}")
        about = f"The instructions of the server {server.name!r} have"
        yield from _check_length(server.instructions, about)
        yield from _check_number(server)
        yield from _check_tokens(server)


def _check_tool(tool: Tool, label: str) -> Iterator[CheckMessage]:
    if len(tool.key) > NAME_CHARACTERS:
        message = f"The name of {label} has {len(tool.key)} characters."
        yield CheckWarning(message, hint=NAME_HINT, id="django_mcp.W010")
    about = f"The description of {label} has"
    yield from _check_length(tool.description.get("description"), about)
    at_root = [name for name in ROOT_KEYWORDS if name in tool.description["inputSchema"]]
    if at_root:
        message = f"The input_schema= of {label} has {' and '.join(at_root)} at its root."
        yield CheckWarning(message, hint=ROOT_HINT, id="django_mcp.W015")
    if _keeps_definitions(tool):
        message = f"A schema of {label} keeps its references."
        yield CheckWarning(message, hint=DEFINITIONS_HINT, id="django_mcp.W016")


def _check_length(text: str | None, about: str) -> Iterator[CheckMessage]:
    if text is not None and len(text) > DESCRIPTION_CHARACTERS:
        message = f"{about} {len(text):,} characters."
        yield CheckWarning(message, hint=DESCRIPTION_HINT, id="django_mcp.W011")


def _check_number(server: MCPServer) -> Iterator[CheckMessage]:
    number = len(server.tools)
    message = f"The server {server.name!r} has {number} tools."
    if number > CURSOR_TOOLS:
        client = f"Cursor shows its model {CURSOR_TOOLS} at most, of all servers together."
        hint = TOOLS_HINT.format(client=client, id="django_mcp.W012")
        yield CheckWarning(message, hint=hint, id="django_mcp.W012")
    if number > VSCODE_TOOLS:
        client = f"VS Code sends {VSCODE_TOOLS} at most, of all servers together."
        hint = TOOLS_HINT.format(client=client, id="django_mcp.W013")
        yield CheckWarning(message, hint=hint, id="django_mcp.W013")


def _check_tokens(server: MCPServer) -> Iterator[CheckMessage]:
    characters = sum(_length(tool.description) for tool in server.tools)
    tokens = characters // CHARACTERS_IN_A_TOKEN
    if tokens > LIST_TOKENS:
        message = (
            f"The list of tools of the server {server.name!r} has about {tokens:,} tokens "
            f"({characters:,} characters)."
        )
        yield CheckWarning(message, hint=TOKENS_HINT, id="django_mcp.W014")


def _length(description: dict[str, Any]) -> int:
    # As it is sent: letters beyond ASCII are not written as escapes.
    return len(json.dumps(description, ensure_ascii=False, separators=(",", ":")))


def _keeps_definitions(tool: Tool) -> bool:
    signatures = [tool.signature, tool.signature.without_asking] if tool.follows_signature else []
    derived = [each.schema for each in signatures if each is not None]
    if tool.output is not None and tool.description.get("outputSchema") == tool.output.schema:
        derived.append(tool.output.schema)
    return any(grows_too_large(schema) for schema in derived)
