"""A client for other MCP servers over Streamable HTTP, of any revision.

In async code::

    async with Client("https://orders.example/mcp", auth=settings.ORDERS_TOKEN) as orders:
        result = await orders.call_tool("find_orders", {"status": "open"})
        result.structured_content

And with :class:`SyncClient`, which has the same methods, in ordinary views, tasks and commands::

    with SyncClient("https://orders.example/mcp", auth=settings.ORDERS_TOKEN) as orders:
        result = orders.call_tool("find_orders", {"status": "open"})

Every call ends: with its result, or with one of the errors below. It needs no Django.
"""

from __future__ import annotations

try:
    import httpx as _httpx  # noqa: F401
except ImportError as error:
    raise ImportError(
        "django_mcp.client needs httpx. Install it: pip install 'django-mcp-endpoints[client]'"
    ) from error

from .auth import BearerAuth
from .changes import Change, Changes
from .client import Client
from .errors import (
    AuthenticationFailed,
    CallTimedOut,
    ClientClosed,
    ClientError,
    ConnectionFailed,
    MessageTooLarge,
    NotProcessed,
    OutcomeUnknown,
    RemoteError,
    ServerBusy,
    SessionLost,
    TooManyQuestions,
    UnexpectedAnswer,
    UnsupportedServer,
)
from .limits import Limits
from .sync import SyncChanges, SyncClient

__all__ = [
    "AuthenticationFailed",
    "BearerAuth",
    "CallTimedOut",
    "Change",
    "Changes",
    "Client",
    "ClientClosed",
    "ClientError",
    "ConnectionFailed",
    "Limits",
    "MessageTooLarge",
    "NotProcessed",
    "OutcomeUnknown",
    "RemoteError",
    "ServerBusy",
    "SessionLost",
    "SyncChanges",
    "SyncClient",
    "TooManyQuestions",
    "UnexpectedAnswer",
    "UnsupportedServer",
]
