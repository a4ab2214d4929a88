"""What the desk offers over MCP; importing the package registers all of it.

Every function asks the querysets what its caller may see (`visible_to`), so that a customer's
assistant and an agent's use the same tools on different rows. `permission=` decides which of
the tools they have at all.
"""

from __future__ import annotations

from example_project.support.mcp import (
    actions,
    articles,
    board,
    bulk,
    comments,
    completions,
    customers,
    drafts,
    prompts,
    queries,
    refunds,
    resources,
)

__all__ = [
    "actions", "articles", "board", "bulk", "comments", "completions", "customers", "drafts",
    "prompts", "queries", "refunds", "resources",
]  # fmt: skip
