"""Checks of the list of tools, by what clients and models are known to take."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from ..client import Client, ClientError, Limits
from .findings import Finding, broken, good, in_words, shown, warning
from .known_clients import (
    CHARACTERS_IN_A_TOKEN,
    CURSOR_TOOLS,
    DESCRIPTION_CHARACTERS,
    LIST_TOKENS,
    NAME_CHARACTERS,
    ROOT_KEYWORDS,
    VSCODE_TOOLS,
)
from .many_models import GENERIC_CHARACTERS, MANY_MODELS
from .visit import Visit

LIMITS: Final = Limits(list_bytes=8 * 1024 * 1024, retries=0, reconnects=0, pages=200)
MOST_NAMED: Final = 5
FEWER: Final = (
    "Models choose better among few: serve some by another server, at a URL of its own, or hide "
    "them from who may not use them."
)


ROW_ARGUMENTS: Final = frozenset(("limit", "next", "count"))
"""What a tool takes that ``mcp.model`` or ``mcp.admin`` has made, to find rows of one model."""
GENERIC: Final = (
    "Offer most of them by mcp.admin_site(), whose five tools take about "
    f"{GENERIC_CHARACTERS // CHARACTERS_IN_A_TOKEN} tokens for any number of models, as the check "
    "django_mcp.W055 has it."
)


async def check_tools(visit: Visit) -> AsyncIterator[Finding]:
    """Connect as a client does, list the tools, and check what clients would make of them."""
    if not visit.revisions:
        return
    seconds = visit.options.timeout
    client = Client(visit.address, auth=visit.options.token, timeout=seconds, limits=LIMITS)
    try:
        async with client:
            tools = await client.list_tools()
    except ClientError as error:
        yield broken(
            "tools",
            f"The tools cannot be listed: {shown(error)}.",
            "See the server's log; with a token, whether its scopes allow it.",
        )
        return
    listed = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]
    for finding in _of_list(listed):
        yield finding


def _of_list(tools: Sequence[dict[str, Any]]) -> list[Finding]:
    characters = sum(_length(tool) for tool in tools)
    tokens = characters // CHARACTERS_IN_A_TOKEN
    words = f"Tools that are listed: {len(tools)}, of about {tokens:,} tokens."
    findings = [good("tools", words) if tools else warning("no-tools", "No tool is listed.", NONE)]
    if len(tools) > CURSOR_TOOLS:
        most = f"Cursor shows its model {CURSOR_TOOLS} at most"
        most += f", and VS Code sends {VSCODE_TOOLS}" if len(tools) > VSCODE_TOOLS else ""
        text = f"There are {len(tools)} tools. {most}, of all servers together."
        findings.append(warning("many-tools", text, FEWER))
    if tokens > LIST_TOKENS:
        text = f"The list of tools has about {tokens:,} tokens, all of which models read first."
        findings.append(warning("large-list", text, "Shorten descriptions and arguments."))
    of_models = [str(tool["name"]) for tool in tools if finds_rows(tool)]
    if len(of_models) > MANY_MODELS:
        text = f"There are {len(of_models)} tools that find rows of one model each: "
        findings.append(warning("many-models", f"{text}{_named(of_models)}.", GENERIC))
    for name, is_meant, text, cure in FAULTS:
        meant = [str(tool["name"]) for tool in tools if is_meant(tool)]
        if meant:
            findings.append(warning(name, f"{text}: {_named(meant)}.", cure))
    return findings


NONE: Final = (
    "Register tools; if there are some, see whether the user of this token may use any of them."
)


def _length(tool: dict[str, Any]) -> int:
    return len(json.dumps(tool, ensure_ascii=False, separators=(",", ":")))


def _named(names: list[str]) -> str:
    most = [shown(name) for name in names[:MOST_NAMED]]
    more = len(names) - MOST_NAMED
    return in_words([*most, f"{more} more"] if more > 0 else most)


def finds_rows(tool: dict[str, Any]) -> bool:
    """Return whether a tool finds rows of one model, as ``mcp.model`` and ``mcp.admin`` have it."""
    taken = tool["inputSchema"].get("properties", {})
    return str(tool["name"]).startswith("find_") and {*taken} >= ROW_ARGUMENTS


def _has_long_name(tool: dict[str, Any]) -> bool:
    return len(tool["name"]) > NAME_CHARACTERS


def _has_long_description(tool: dict[str, Any]) -> bool:
    return len(tool.get("description", "")) > DESCRIPTION_CHARACTERS


def _has_root_keyword(tool: dict[str, Any]) -> bool:
    return any(name in tool["inputSchema"] for name in ROOT_KEYWORDS)


def _has_reference(tool: dict[str, Any]) -> bool:
    return '"$ref":' in json.dumps(tool["inputSchema"], separators=(",", ":"))


FAULTS: Final = (
    (
        "long-names",
        _has_long_name,
        f"Names of more than {NAME_CHARACTERS} characters, to which clients add the server's",
        "Shorten them: models take 64 characters in all.",
    ),
    (
        "long-descriptions",
        _has_long_description,
        f"Descriptions of more than {DESCRIPTION_CHARACTERS:,} characters, which Claude Code cuts",
        "Say first what matters, and shorten the rest.",
    ),
    (
        "root-keywords",
        _has_root_keyword,
        "Arguments with oneOf, anyOf, allOf, not or enum at the root, for which the interfaces of "
        "Claude and OpenAI refuse all tools of a session",
        "Describe plain properties, and check the rest in the tool.",
    ),
    (
        "references",
        _has_reference,
        "Arguments with $ref, which Gemini CLI and Cursor cannot follow",
        "Write definitions out where they are used.",
    ),
)
