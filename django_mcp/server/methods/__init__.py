"""The protocol's surface: every method that a client may call, and the handler that answers it.

A handler is given the server, the exchange and the parameters, and returns a result, or the call
of a function of the site from which one comes. Only ``dispatch`` and what needs to know the methods
imports this; begin with ``METHODS``, and from there with :mod:`.tools`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import mcp_types
from pydantic import BaseModel

from ...protocol.bounded import MAX_ITEMS, Validator
from ...protocol.lifecycle import SessionInfo
from ...protocol.messages import Notification
from ...protocol.versions import LEGACY, MODERN, REVISIONS, Revision
from ..exchange import Exchange
from ..function_call import HandlerOutcome
from ..registry import MCPServer
from . import base_protocol, completion, prompts, resources, subscriptions, tools


@dataclass(frozen=True, slots=True)
class Method:
    """One method: its handler, what its parameters must be, and where it exists."""

    handler: Callable[[MCPServer, Exchange, Any], HandlerOutcome]
    params: Validator[Any]
    revisions: tuple[Revision, ...] = REVISIONS
    feature: str | None = None
    """The capability without which the method does not exist."""
    touches_database: bool = False
    depends_on_target: bool = False
    """Whether its handler looks which scopes are needed: they are those of what is asked for."""
    sends_messages: bool = False
    """Whether the client may get notifications or requests before the answer."""
    stays_open: bool = False
    """Whether its connection stays open for what happens later, so that the answer is a stream."""


def _of(params: type[BaseModel]) -> Validator[Any]:
    return Validator(params, max_items=MAX_ITEMS)


METHODS: Final = {
    "completion/complete": Method(
        completion.complete,
        _of(mcp_types.CompleteRequestParams),
        feature="completions",
        depends_on_target=True,
    ),
    "initialize": Method(
        base_protocol.initialize,
        _of(mcp_types.InitializeRequestParams),
        LEGACY,
        touches_database=True,
    ),
    "logging/setLevel": Method(
        base_protocol.set_level, _of(mcp_types.SetLevelRequestParams), LEGACY, touches_database=True
    ),
    "ping": Method(base_protocol.ping, _of(mcp_types.RequestParams), LEGACY),
    "prompts/get": Method(
        prompts.get,
        _of(mcp_types.GetPromptRequestParams),
        feature="prompts",
        sends_messages=True,
        depends_on_target=True,
    ),
    "prompts/list": Method(
        prompts.list_prompts, _of(mcp_types.PaginatedRequestParams), feature="prompts"
    ),
    "resources/list": Method(
        resources.list_resources, _of(mcp_types.PaginatedRequestParams), feature="resources"
    ),
    "resources/read": Method(
        resources.read,
        _of(mcp_types.ReadResourceRequestParams),
        feature="resources",
        depends_on_target=True,
        sends_messages=True,
    ),
    "resources/subscribe": Method(
        subscriptions.subscribe,
        _of(mcp_types.SubscribeRequestParams),
        LEGACY,
        feature="resources",
        depends_on_target=True,
        touches_database=True,
    ),
    "resources/templates/list": Method(
        resources.list_templates, _of(mcp_types.PaginatedRequestParams), feature="resources"
    ),
    "resources/unsubscribe": Method(
        subscriptions.unsubscribe,
        _of(mcp_types.UnsubscribeRequestParams),
        LEGACY,
        feature="resources",
        touches_database=True,
    ),
    "server/discover": Method(base_protocol.discover, _of(mcp_types.RequestParams), MODERN),
    "subscriptions/listen": Method(
        subscriptions.listen,
        _of(mcp_types.SubscriptionsListenRequestParams),
        MODERN,
        depends_on_target=True,
        touches_database=True,
        sends_messages=True,
        stays_open=True,
    ),
    "tools/call": Method(
        tools.call,
        _of(mcp_types.CallToolRequestParams),
        feature="tools",
        sends_messages=True,
        depends_on_target=True,
    ),
    "tools/list": Method(tools.list_tools, _of(mcp_types.PaginatedRequestParams), feature="tools"),
}

NOTIFICATIONS: Final[dict[str, Callable[[Notification, SessionInfo, str], None]]] = {
    "notifications/cancelled": base_protocol.cancel,
    "notifications/initialized": base_protocol.initialized,
}
