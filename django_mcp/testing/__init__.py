"""``MCPClient``: calls an endpoint in tests, in process and in either era.

Tests of a site import it; in this package nothing does. It stands above ``http``, whose view it
calls in the test's thread and on its database connection: what a test creates its tools see, and
what they create is rolled back. Begin with ``client``; ``answer`` is what a request returns, and
``scripted_user`` answers what a server asks.
"""

from __future__ import annotations

from ..store.publisher import announcements
from .answer import Answer, MCPFailure
from .mcp_client import MCPClient
from .scripted_user import CANCEL, DECLINE, Asked

__all__ = ["CANCEL", "DECLINE", "Answer", "Asked", "MCPClient", "MCPFailure", "announcements"]
