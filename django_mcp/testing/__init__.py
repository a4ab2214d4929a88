"""``MCPClient``: call your tools in tests, in process and in either era.

Everything runs inline, in the test's thread and on its database connection, so it works in a plain
``TestCase``: what a test creates its tools see, and what they create is rolled back::

    client = MCPClient().as_user(user)
    client.tool("find_orders", status="open").assert_ok().assert_contains("Order 7")

A scripted user answers what tools ask::

    MCPClient(answers=[True]).tool("refund", order_id=7).assert_ok()
"""

from __future__ import annotations

from ..store.changes.publisher import announcements
from .answer import Answer, MCPFailure
from .client import MCPClient
from .user import CANCEL, DECLINE, Asked

__all__ = ["CANCEL", "DECLINE", "Answer", "Asked", "MCPClient", "MCPFailure", "announcements"]
