"""The protocol's surface: every method that a client may call, and who answers it."""

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
from ..calling import Outcome
from ..capabilities import FEATURES
from ..exchange import Exchange
from ..registry import MCPServer
from . import completion, lifecycle, logging, prompts, resources, subscriptions, tools


@dataclass(frozen=True, slots=True)
class Method:
    """One method: its handler, what its parameters must be, and where it exists."""

    handler: Callable[[Exchange, Any], Outcome]
    params: Validator[Any]
    revisions: tuple[Revision, ...] = REVISIONS
    feature: str | None = None
    """The capability without which the method does not exist."""
    touches_database: bool = False
    speaks: bool = False
    """Whether the function behind it may tell or ask the client something before it returns."""
    streams: bool = False
    """Whether the answer is always a stream."""

    def serves(self, server: MCPServer, revision: Revision) -> bool:
        """Return whether ``server`` answers the method in ``revision``."""
        if revision not in self.revisions:
            return False
        return self.feature is None or FEATURES[self.feature](server)


def _of(params: type[BaseModel]) -> Validator[Any]:
    return Validator(params, max_items=MAX_ITEMS)


METHODS: Final = {
    "completion/complete": Method(
        completion.complete, _of(mcp_types.CompleteRequestParams), feature="completions"
    ),
    "initialize": Method(
        lifecycle.initialize,
        _of(mcp_types.InitializeRequestParams),
        LEGACY,
        touches_database=True,
    ),
    "logging/setLevel": Method(
        logging.set_level, _of(mcp_types.SetLevelRequestParams), LEGACY, touches_database=True
    ),
    "ping": Method(lifecycle.ping, _of(mcp_types.RequestParams), LEGACY),
    "prompts/get": Method(
        prompts.get, _of(mcp_types.GetPromptRequestParams), feature="prompts", speaks=True
    ),
    "prompts/list": Method(
        prompts.list_prompts, _of(mcp_types.PaginatedRequestParams), feature="prompts"
    ),
    "resources/list": Method(
        resources.list_resources, _of(mcp_types.PaginatedRequestParams), feature="resources"
    ),
    "resources/read": Method(
        resources.read, _of(mcp_types.ReadResourceRequestParams), feature="resources", speaks=True
    ),
    "resources/subscribe": Method(
        subscriptions.subscribe,
        _of(mcp_types.SubscribeRequestParams),
        LEGACY,
        feature="resources",
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
    "server/discover": Method(lifecycle.discover, _of(mcp_types.RequestParams), MODERN),
    "subscriptions/listen": Method(
        subscriptions.listen,
        _of(mcp_types.SubscriptionsListenRequestParams),
        MODERN,
        touches_database=True,
        speaks=True,
        streams=True,
    ),
    "tools/call": Method(
        tools.call, _of(mcp_types.CallToolRequestParams), feature="tools", speaks=True
    ),
    "tools/list": Method(tools.list_tools, _of(mcp_types.PaginatedRequestParams), feature="tools"),
}

NOTIFICATIONS: Final[dict[str, Callable[[Notification, SessionInfo, str], None]]] = {
    "notifications/cancelled": lifecycle.cancel,
    "notifications/initialized": lifecycle.initialized,
}
