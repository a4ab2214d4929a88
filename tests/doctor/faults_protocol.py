"""Faults of revisions, sessions, streams and tools."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

from .plants import (
    ACK,
    BROKEN,
    END,
    NOTE,
    WARNING,
    Fault,
    both,
    changing,
    forgetful_workers,
    keeps_sessions,
    revisions,
    stream,
    tools,
    without,
)
from .site import EVENTS, HELD, REVISIONS, as_json, error, events, tool


def _protocol() -> Iterator[Fault]:
    yield Fault(
        "legacy-only",
        False,
        revisions(*REVISIONS[:-1]),
        NOTE,
        "legacy-only",
        "does not speak 2026-07-28",
    )
    yield Fault(
        "modern-only",
        False,
        revisions(REVISIONS[-1]),
        WARNING,
        "modern-only",
        "speaks 2026-07-28 alone",
    )
    yield Fault(
        "no-revision",
        False,
        changing(
            lambda asked, answer: (
                as_json({"jsonrpc": "2.0", "id": 1, "result": {}})
                if asked.method == "POST"
                else answer
            )
        ),
        BROKEN,
        "no-revision",
        "No revision of MCP is agreed on",
    )
    yield Fault(
        "token-expired",
        True,
        changing(
            lambda asked, answer: error(401, "It has expired") if asked.method == "POST" else answer
        ),
        BROKEN,
        "token-refused",
        'The token is refused (401): "It has expired"',
    )
    yield Fault(
        "session-header",
        False,
        without("Mcp_Session_Id"),
        BROKEN,
        "session-header",
        'answers nothing without one: "Mcp-Session-Id is missing" (400)',
    )
    yield Fault(
        "workers",
        False,
        forgetful_workers,
        BROKEN,
        "session-workers",
        "4 of 8 requests came to a worker that does not know the session (404)",
    )
    yield Fault(
        "lost",
        False,
        changing(
            lambda asked, answer: error(404, "Session not found") if asked.rpc == "ping" else answer
        ),
        BROKEN,
        "session-lost",
        "No request finds the session that was just opened again (404)",
    )
    yield Fault(
        "immortal",
        False,
        keeps_sessions,
        WARNING,
        "session-end",
        "A session that was ended is answered with 200",
    )


def _streams() -> Iterator[Fault]:
    yield Fault(
        "buffered",
        False,
        stream(HELD),
        BROKEN,
        "buffered",
        "no event came in 0.3 s, and the first is due at once",
    )
    yield Fault(
        "squeezed-stream",
        False,
        stream(gzip.compress(ACK), HELD, Content_Encoding="gzip"),
        BROKEN,
        "stream-compressed",
        "The stream is compressed (gzip)",
    )
    yield Fault(
        "cached-stream",
        False,
        stream(ACK, HELD, Cache_Control="max-age=30"),
        BROKEN,
        "cached",
        "An answer to POST may be kept",
    )
    yield Fault("cut", False, stream(ACK), WARNING, "stream-cut", "the stream was cut off after")
    yield Fault(
        "short",
        False,
        stream(ACK, END),
        NOTE,
        "stream-short",
        "and with it the end: the server keeps no stream open",
    )
    yield Fault(
        "no-stream",
        False,
        changing(
            lambda asked, answer: (
                error(404, "Method not found", -32601)
                if asked.rpc == "subscriptions/listen"
                else answer
            )
        ),
        NOTE,
        "no-stream",
        "shows no stream for subscriptions/listen (404, application/json)",
    )
    yield Fault(
        "silent-session",
        False,
        both(
            revisions(*REVISIONS[:-1]),
            changing(
                lambda asked, answer: (
                    events(HELD) if answer.headers.get("Content-Type") == EVENTS else answer
                )
            ),
        ),
        NOTE,
        "stream-silent",
        "the stream of the session has said nothing",
    )


def finding(name: str) -> dict[str, Any]:
    """A tool that finds rows of a model."""
    properties = {each: {} for each in ("status", "limit", "next", "count")}
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def _tools() -> Iterator[Fault]:
    yield Fault("no-tools", False, tools(), WARNING, "no-tools", "No tool is listed")
    yield Fault(
        "many-tools",
        False,
        tools(*(tool(f"tool{n}") for n in range(41))),
        WARNING,
        "many-tools",
        "There are 41 tools. Cursor shows its model 40 at most, of all",
    )
    yield Fault(
        "too-many-tools",
        False,
        tools(*(tool(f"tool{n}") for n in range(129))),
        WARNING,
        "many-tools",
        "and VS Code sends 128, of all servers together",
    )
    yield Fault(
        "many-models",
        False,
        tools(*(finding(f"find_rows{n}") for n in range(13))),
        WARNING,
        "many-models",
        "There are 13 tools that find rows of one model each: find_rows0, ",
    )
    yield Fault(
        "large-list",
        False,
        tools(*(tool(f"tool{n}", description="word " * 400) for n in range(41))),
        WARNING,
        "large-list",
        "tokens, all of which models read first",
    )
    yield Fault(
        "long-name",
        False,
        tools(tool("x" * 57)),
        WARNING,
        "long-names",
        f"Names of more than 56 characters, to which clients add the server's: {'x' * 57}",
    )
    yield Fault(
        "long-description",
        False,
        tools(tool("look", description="x" * 2049)),
        WARNING,
        "long-descriptions",
        "more than 2,048 characters, which Claude Code cuts: look",
    )
    yield Fault(
        "union",
        False,
        tools({"name": "look", "inputSchema": {"type": "object", "anyOf": []}}),
        WARNING,
        "root-keywords",
        "at the root, for which the interfaces of Claude and OpenAI refuse",
    )
    yield Fault(
        "reference",
        False,
        tools(
            {
                "name": "look",
                "inputSchema": {
                    "type": "object",
                    "properties": {"a": {"$ref": "#/$defs/A"}},
                    "$defs": {"A": {}},
                },
            }
        ),
        WARNING,
        "references",
        "which Gemini CLI and Cursor cannot follow: look",
    )
    yield Fault(
        "garbled-list",
        False,
        changing(
            lambda asked, answer: (
                as_json({"jsonrpc": "2.0", "id": asked.message["id"], "result": {"tools": [{}]}})
                if asked.rpc == "tools/list"
                else answer
            )
        ),
        BROKEN,
        "tools",
        "The tools cannot be listed",
    )


FAULTS = [*_protocol(), *_streams(), *_tools()]
