"""A client for other MCP servers over Streamable HTTP, of any revision.

Sites import it; in this package nothing does. It needs httpx and ``django_mcp.protocol``, and no
Django. Begin with ``client``: it opens a connection (``negotiation``), in the era that the server
speaks (``legacy``, ``modern``), over HTTP (``remote_endpoint``). ``sync`` is the same for threads.
Every call ends: with its result, or with one of ``errors``.
"""

from __future__ import annotations

try:
    import httpx as _httpx  # noqa: F401
except ImportError as error:
    raise ImportError(
        "django_mcp.client needs httpx. Install it: pip install 'django-mcp-endpoints[client]'"
    ) from error

from .auth import BearerAuth
from .bounds import Limits
from .change_iterator import Change, Changes
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
from .login_storage import LoginStorage
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
    "LoginStorage",
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
