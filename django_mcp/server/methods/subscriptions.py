"""Hearing of changes: ``resources/subscribe`` in a session, ``subscriptions/listen`` without."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Final

from mcp_types import (
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)

from ...protocol.messages import Notification
from ..calling import Call, Outcome, Result
from ..capabilities import FEATURES
from ..changes import Kind, Topic, too_many_subscriptions
from ..exchange import Exchange
from .resources import check_readable, is_readable

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

_LISTS: Final = {
    Kind.TOOLS: "toolsListChanged",
    Kind.PROMPTS: "promptsListChanged",
    Kind.RESOURCES: "resourcesListChanged",
}
_RESOURCES: Final = "resourceSubscriptions"


def subscribe(exchange: Exchange, params: SubscribeRequestParams) -> Result:
    """Tell a session when a resource changes (2025-11-25, server/resources, "Subscriptions")."""
    check_readable(params.uri, exchange)
    if exchange.session is not None:
        topic = exchange.server.topic_of(params.uri)
        exchange.ports.subscriptions.subscribe(exchange.session, topic)
    return Result({})


def unsubscribe(exchange: Exchange, params: UnsubscribeRequestParams) -> Result:
    """Tell a session no more; what it was not subscribed to needs no error."""
    if exchange.session is not None:
        topic = exchange.server.topic_of(params.uri)
        exchange.ports.subscriptions.unsubscribe(exchange.session, topic)
    return Result({})


def listen(exchange: Exchange, params: SubscriptionsListenRequestParams) -> Outcome:
    """Tell of changes for as long as the client stays (2026-07-28, basic/patterns/subscriptions).

    Where the connection cannot be kept open, the answer is that nothing will be told, and the end.
    """
    meta = {SUBSCRIPTION_ID: exchange.request.id}
    honoured = _honoured(params.notifications, exchange) if exchange.peer.stays else {}
    opening = Notification(
        "notifications/subscriptions/acknowledged", {"_meta": meta, "notifications": honoured}
    )
    ending = Result({"_meta": meta})
    if not exchange.peer.stays:
        exchange.peer.tell(opening.method, opening.params)
        return ending

    async def begin() -> None:
        await exchange.peer.listen(
            opening, {topic: topic.notification(meta) for topic in _topics(honoured, exchange)}
        )

    return Call(
        function=begin,
        arguments={},
        peer=exchange.peer,
        is_async=True,
        finish=lambda nothing: ending,
        rescue=_rescue,
        scope=nullcontext,
    )


def _honoured(wish: SubscriptionFilter, exchange: Exchange) -> dict[str, Any]:
    """Return what of a client's wish will be told: what there is, and may be seen."""
    given = wish.model_dump(by_alias=True, exclude_none=True)
    honoured: dict[str, Any] = {
        name: True
        for kind, name in _LISTS.items()
        if given.get(name) and FEATURES[kind](exchange.server)
    }
    uris = list(dict.fromkeys(given.get(_RESOURCES, ())))
    if len(uris) > exchange.policy.max_subscriptions:
        raise too_many_subscriptions(exchange.policy.max_subscriptions)
    readable = [uri for uri in uris if is_readable(uri, exchange)]
    return {**honoured, _RESOURCES: readable} if readable else honoured


def _topics(honoured: dict[str, Any], exchange: Exchange) -> list[Topic]:
    lists = [Topic(kind) for kind, name in _LISTS.items() if name in honoured]
    return lists + [exchange.server.topic_of(uri) for uri in honoured.get(_RESOURCES, ())]


def _rescue(error: Exception) -> Result:
    raise error
