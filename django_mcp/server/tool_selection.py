"""Which tools of a server a client wants: those that its URL or its headers name.

What they say only ever takes away: of the tools that the caller may use, some are left out. So a
person has a model see less, and no right depends on it. The names of the headers, and what they
mean, are those of GitHub's server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .exchange import WantedTools
from .primitives import Tool

TOOLSETS_HEADER: Final = "X-MCP-Toolsets"
TOOLS_HEADER: Final = "X-MCP-Tools"
READ_ONLY_HEADER: Final = "X-MCP-Readonly"

PATH: Final = r"/x/[A-Za-z0-9_-]{1,64}(?:/readonly)?|/readonly"
"""A regular expression of what may come after an endpoint's path: a toolset, reading alone."""

_NO: Final = frozenset(("", "false", "f", "no", "n", "0", "off"))


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """What a client wants to see."""

    toolset: str
    """The toolset or the tag that the URL names; all of them if it is empty."""
    toolsets: frozenset[str] | None
    """Those that a header names. What is named by either header is there."""
    tools: frozenset[str] | None
    read_only: bool

    @property
    def lists_names(self) -> bool:
        """Whether a header names what is wanted."""
        return self.toolsets is not None or self.tools is not None

    def includes(self, tool: Tool) -> bool:
        """Return whether a tool is among what is wanted."""
        if self.read_only and not tool.reads_only:
            return False
        if self.toolset and self.toolset not in tool.toolsets:
            return False
        if not self.lists_names:
            return True
        is_named = self.tools is not None and tool.key in self.tools
        return is_named or not tool.toolsets.isdisjoint(self.toolsets or ())


def selection_of(wanted: WantedTools) -> ToolSelection:
    """Return what a request says; an empty header says nothing."""
    path, toolsets, tools, read_only = wanted
    toolset = toolset_in(path)
    rest = path.removeprefix(f"/x/{toolset}") if toolset else path
    return ToolSelection(
        toolset=toolset,
        toolsets=_names(toolsets),
        tools=_names(tools),
        read_only=bool(rest) or (read_only or "").strip().lower() not in _NO,
    )


def toolset_in(path: str) -> str:
    """Return the toolset or the tag that the end of a URL names, if any."""
    _, _, name = path.partition("/x/")
    return name.partition("/")[0]


def _names(header: str | None) -> frozenset[str] | None:
    names = frozenset(filter(None, map(str.strip, (header or "").split(","))))
    return names or None
