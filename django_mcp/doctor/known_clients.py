"""What is known of clients that others wrote: the only place that says so.

Makers change their clients without a word, so each fact has the day on which it was read, and
``seen`` says where: with the client itself, in its access log, or in its maker's documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

READ: Final = "2026-11-24"
"""The day on which what stands here was read last."""

# What clients take of a list of tools

NAME_CHARACTERS: Final = 56
"""Models take names of 64 characters, and clients write the server's name in front."""
DESCRIPTION_CHARACTERS: Final = 2_048
"""Claude Code cuts descriptions and instructions here, without a word."""
CURSOR_TOOLS: Final = 40
"""Cursor shows its model no more tools, of all servers together."""
VSCODE_TOOLS: Final = 128
"""VS Code refuses to send a request with more tools."""
LIST_TOKENS: Final = 20_000
"""A tenth of a context of 200,000, from where Claude Code searches tools instead of reading."""
CHARACTERS_IN_A_TOKEN: Final = 4
ROOT_KEYWORDS: Final = ("oneOf", "anyOf", "allOf", "not", "enum")
"""What the interfaces of models refuse at the root of a tool's arguments."""

# How clients log in


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownClient:
    """How a client comes to a client id, or to the token that a person gives it."""

    name: str
    seen: str
    """Where the facts are from."""
    connects_from: str = ""
    """Whose servers it connects from; empty where it runs on a person's own machine."""
    has_document: bool = True
    """Whether its client id can be the URL of a document (CIMD)."""
    document_needs_none: bool = False
    """Whether it uses that only where ``none`` is among the token endpoint's methods."""
    registers: bool = True
    """Whether it registers itself (RFC 7591) where it cannot use its document."""
    takes_client_id: str = ""
    """How a person gives it a client id that was registered by hand; empty where that is not
    possible."""
    takes_token: str = ""
    """How a person gives it a token instead of a login; empty where that is not possible."""
    is_in_browser: bool = False
    """Whether its requests may come from a page, for which CORS counts."""
    remark: str = ""
    """What else is to be known of its login."""


CLIENTS: Final = (
    KnownClient(
        name="Claude (web, Desktop, mobile)",
        seen="claude.com/docs/connectors/building/authentication",
        connects_from="Anthropic",
        document_needs_none=True,
        takes_client_id="in the advanced settings of the connector",
    ),
    KnownClient(
        name="Claude Code",
        seen="version 2.1, by its requests",
        takes_client_id="with --client-id",
        takes_token='with --header "Authorization: Bearer TOKEN"',
    ),
    KnownClient(
        name="ChatGPT",
        seen="developers.openai.com/apps-sdk/build/auth",
        connects_from="OpenAI",
        takes_client_id="in the settings of the app",
        remark="Its document asks for private_key_jwt and offers none: the server has to take one.",
    ),
    KnownClient(
        name="VS Code",
        seen="code.visualstudio.com/docs, and its requests for registration",
        takes_client_id="when it asks for one",
        takes_token='as "headers" in mcp.json',
    ),
    KnownClient(
        name="Codex",
        seen="version 0.169, by its requests",
        document_needs_none=True,
        takes_token="as bearer_token_env_var in config.toml",
    ),
    KnownClient(
        name="Gemini CLI",
        seen="version 0.61, by its requests, and geminicli.com/docs",
        has_document=False,
        takes_client_id='as "oauth" in settings.json',
        takes_token='as "headers" in settings.json',
        remark="It asks for every scope that the authorization server lists.",
    ),
    KnownClient(
        name="Inspector",
        seen="version 2.12, by its requests",
        has_document=False,
        takes_client_id="in its settings of OAuth",
        takes_token="as a header in its settings",
        is_in_browser=True,
    ),
)

CLIENT_DOCUMENT: Final = "https://claude.ai/oauth/claude-code-client-metadata"
"""Claude Code's client id, as a document that an authorization server has to fetch."""
INSPECTOR_ORIGIN: Final = "http://localhost:6274"
"""Where the Inspector's page is, which may connect without its own proxy."""
