"""Notifications of changes: ``resources/subscribe`` in a session, else ``subscriptions/listen``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from mcp_types import (
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)

from ...auth import Guard
from ...protocol.errors import invalid_params
from ...protocol.messages import Notification
from ...protocol.topics import Topic, TopicKind, too_many_subscriptions
from ...store.changes import subscription_rows
from ..exchange import Exchange
from ..function_call import FunctionCall, HandlerOutcome
from ..primitives import Resource
from ..registry import MCPServer
from ..results import Result
from ..scopes import check_scopes
from .resources import ResourceAtURI, readable_topic, resource_at

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

_LISTS: Final = {
    TopicKind.TOOLS: "toolsListChanged",
    TopicKind.PROMPTS: "promptsListChanged",
    TopicKind.RESOURCES: "resourcesListChanged",
}
_RESOURCES: Final = "resourceSubscriptions"

MAX_URI_CHARACTERS: Final = 256 * 1024
"""Of the URIs that one request subscribes to, together."""


def subscribe(server: MCPServer, exchange: Exchange, params: SubscribeRequestParams) -> Result:
    """Notify a session when a resource changes (2025-11-25, server/resources, "Subscriptions")."""
    topic = readable_topic(params.uri, server, exchange)
    if exchange.session is not None:
        subscription_rows.subscribe(exchange.server_name, exchange.session, topic)
    return Result({})


def unsubscribe(server: MCPServer, exchange: Exchange, params: UnsubscribeRequestParams) -> Result:
    """End a subscription; that there was none is no error."""
    if exchange.session is not None and len(params.uri) <= MAX_URI_CHARACTERS:
        topic = server.topic_of(params.uri)
        subscription_rows.unsubscribe(exchange.session, topic)
    return Result({})


def listen(
    server: MCPServer, exchange: Exchange, params: SubscriptionsListenRequestParams
) -> HandlerOutcome:
    """Notify of changes while the connection is open (2026-07-28, basic/patterns/subscriptions).

    Where it cannot be kept open, an empty filter is acknowledged, and the request is answered.
    """
    meta = {SUBSCRIPTION_ID: exchange.request.id}
    can_listen = exchange.can_listen
    if exchange.caller.checks_scopes and not can_listen:
        check_scopes(server, exchange.caller)
    granted = _granted(params.notifications, server, exchange) if can_listen else _Granted()
    opening = Notification(
        "notifications/subscriptions/acknowledged",
        {"_meta": meta, "notifications": granted.as_filter()},
    )
    ending = Result({"_meta": meta})
    exchange.guard = _guard_of(granted.resources)

    def acknowledge() -> None:
        exchange.peer.notify(opening.method, opening.params)

    async def begin() -> None:
        await exchange.peer.listen(
            opening, {topic: topic.notification(meta) for topic in granted.topics()}
        )

    return FunctionCall(
        function=begin if can_listen else acknowledge,
        arguments={},
        server=server,
        exchange=exchange,
        is_async=can_listen,
        sends_messages=can_listen,
        finish=lambda nothing: ending,
        fail=None,
    )


@dataclass(frozen=True, slots=True)
class _Granted:
    """The part of a client's filter that is granted: what there is, and the caller may see."""

    lists: Sequence[TopicKind] = ()
    resources: Sequence[ResourceAtURI] = ()

    def as_filter(self) -> dict[str, Any]:
        """Return it as the filter that is acknowledged."""
        lists: dict[str, Any] = {_LISTS[kind]: True for kind in self.lists}
        uris = [each.topic.uri for each in self.resources]
        return {**lists, _RESOURCES: uris} if uris else lists

    def topics(self) -> list[Topic]:
        """Return what the client is notified of."""
        return [*map(Topic, self.lists), *(each.topic for each in self.resources)]


def _granted(requested: SubscriptionFilter, server: MCPServer, exchange: Exchange) -> _Granted:
    given = requested.model_dump(by_alias=True, exclude_none=True)
    lists = [kind for kind, name in _LISTS.items() if given.get(name) and kind in server.features]
    uris = dict.fromkeys(given.get(_RESOURCES, ()))
    if len(uris) > exchange.settings.max_subscriptions:
        raise too_many_subscriptions(exchange.settings.max_subscriptions)
    if sum(map(len, uris)) > MAX_URI_CHARACTERS:
        raise invalid_params(
            f"The URIs to subscribe to have more than {MAX_URI_CHARACTERS} characters together; "
            "send fewer in one request"
        )
    return _Granted(lists, list(_readable(uris, server, exchange)))


def _readable(
    uris: Iterable[str], server: MCPServer, exchange: Exchange
) -> Iterator[ResourceAtURI]:
    # Each permission is asked for once in a request: it may take a statement.
    allows = cache(lambda each: each.allows(exchange.principal.user))
    readable: list[Resource] = []
    for uri in uris:
        served = resource_at(uri, server)
        allowed = [] if served is None else [each for each in served.candidates if allows(each)]
        if served is not None and allowed:
            readable += allowed
            yield served
    if exchange.caller.checks_scopes:
        check_scopes(server, exchange.caller, *dict.fromkeys(readable))


def _guard_of(resources: Sequence[ResourceAtURI]) -> Guard | None:
    """Return what says whether a user may go on listening to all of these resources.

    One that he may read no longer ends the whole: his client listens again to what is left.
    """
    candidates = {each.candidates for each in resources}
    guarded = [each for each in candidates if all(resource.permission for resource in each)]
    if not guarded:
        return None
    return lambda user: all(any(one.allows(user) for one in each) for each in guarded)
