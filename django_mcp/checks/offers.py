"""System checks of what servers offer, by what clients and models are known to take."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.core.checks import CheckMessage
from django.core.checks import Warning as CheckWarning

from ..doctor.known_clients import (
    CHARACTERS_IN_A_TOKEN,
    CURSOR_TOOLS,
    DESCRIPTION_CHARACTERS,
    LIST_TOKENS,
    NAME_CHARACTERS,
    ROOT_KEYWORDS,
    VSCODE_TOOLS,
)
from ..doctor.many_models import GENERIC_CHARACTERS, MANY_MODELS
from ..server.json_schema import grows_too_large
from ..server.primitives import Tool
from ..server.registry import MCPServer

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
MODELS_HINT: Final = (
    "Offer them by mcp.admin_site(admin.site, models=[...]), which makes five tools that do for "
    "all models what these do for one each, and keep tools of their own for the few that are used "
    'most. If models are to see all of them, add "django_mcp.W055" to SILENCED_SYSTEM_CHECKS.'
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
        yield from _check_models(server)


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


def _check_models(server: MCPServer) -> Iterator[CheckMessage]:
    of_one = [each for each in server.models if each.tool_names]
    models = {each.model for each in of_one}
    tools = [server.find_tool(name) for each in of_one for name in each.tool_names]
    characters = sum(_length(tool.description) for tool in tools if tool is not None)
    if len(models) > MANY_MODELS and characters > GENERIC_CHARACTERS:
        message = (
            f"The server {server.name!r} has {len(tools)} tools for {len(models)} models, which "
            f"take {characters:,} characters of its list ({characters // CHARACTERS_IN_A_TOKEN:,} "
            f"tokens). Five tools for any number of models would take {GENERIC_CHARACTERS:,} "
            f"({GENERIC_CHARACTERS // CHARACTERS_IN_A_TOKEN:,})."
        )
        yield CheckWarning(message, hint=MODELS_HINT, id="django_mcp.W055")


def _length(description: dict[str, Any]) -> int:
    # As it is sent: letters beyond ASCII are not written as escapes.
    return len(json.dumps(description, ensure_ascii=False, separators=(",", ":")))


def _keeps_definitions(tool: Tool) -> bool:
    signatures = [tool.signature, tool.signature.without_asking] if tool.follows_signature else []
    derived = [each.schema for each in signatures if each is not None]
    if tool.output is not None and tool.description.get("outputSchema") == tool.output.schema:
        derived.append(tool.output.schema)
    return any(grows_too_large(schema) for schema in derived)
