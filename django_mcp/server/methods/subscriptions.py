"""Hearing of changes: ``resources/subscribe`` in a session, ``subscriptions/listen`` without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from mcp_types import (
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)

from ...principal import Guard
from ...protocol.errors import invalid_params
from ...protocol.messages import Notification
from ...protocol.topics import Kind, Topic, too_many_subscriptions
from ...store.changes.subscription_rows import Subscriptions
from ..calling import Call, Outcome, Result
from ..capabilities import FEATURES
from ..exchange import Exchange
from .resources import Served, look_up, readable_topic

SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

_LISTS: Final = {
    Kind.TOOLS: "toolsListChanged",
    Kind.PROMPTS: "promptsListChanged",
    Kind.RESOURCES: "resourcesListChanged",
}
_RESOURCES: Final = "resourceSubscriptions"

MAX_URI_CHARACTERS: Final = 256 * 1024
"""Of the URIs that one request wants to hear of, together."""


def subscribe(exchange: Exchange, params: SubscribeRequestParams) -> Result:
    """Tell a session when a resource changes (2025-11-25, server/resources, "Subscriptions")."""
    topic = readable_topic(params.uri, exchange)
    if exchange.session is not None:
        Subscriptions(exchange.server.name).subscribe(exchange.session, topic)
    return Result({})


def unsubscribe(exchange: Exchange, params: UnsubscribeRequestParams) -> Result:
    """Tell a session no more; what it was not subscribed to needs no error."""
    if exchange.session is not None and len(params.uri) <= MAX_URI_CHARACTERS:
        topic = exchange.server.topic_of(params.uri)
        Subscriptions(exchange.server.name).unsubscribe(exchange.session, topic)
    return Result({})


def listen(exchange: Exchange, params: SubscriptionsListenRequestParams) -> Outcome:
    """Tell of changes for as long as the client stays (2026-07-28, basic/patterns/subscriptions).

    Where the connection cannot be kept open, the answer is that nothing will be told, and the end.
    """
    meta = {SUBSCRIPTION_ID: exchange.request.id}
    granted = _granted(params.notifications, exchange) if exchange.peer.stays else _Granted()
    opening = Notification(
        "notifications/subscriptions/acknowledged",
        {"_meta": meta, "notifications": granted.honoured()},
    )
    ending = Result({"_meta": meta})
    exchange.guard = _guard_of(granted.resources)
    if not exchange.peer.stays:
        exchange.peer.tell(opening.method, opening.params)
        return ending

    async def begin() -> None:
        await exchange.peer.listen(
            opening, {topic: topic.notification(meta) for topic in granted.topics()}, exchange.guard
        )

    return Call(
        function=begin,
        arguments={},
        peer=exchange.peer,
        is_async=True,
        finish=lambda nothing: ending,
        rescue=None,
        scope=nullcontext,
    )


@dataclass(frozen=True, slots=True)
class _Granted:
    """What of a client's wish will be told: what there is, and may be seen."""

    lists: Sequence[Kind] = ()
    resources: Sequence[Served] = ()

    def honoured(self) -> dict[str, Any]:
        """Return it as the client is told of it."""
        lists: dict[str, Any] = {_LISTS[kind]: True for kind in self.lists}
        uris = [each.topic.uri for each in self.resources]
        return {**lists, _RESOURCES: uris} if uris else lists

    def topics(self) -> list[Topic]:
        """Return what is heard of."""
        return [*map(Topic, self.lists), *(each.topic for each in self.resources)]


def _granted(wish: SubscriptionFilter, exchange: Exchange) -> _Granted:
    given = wish.model_dump(by_alias=True, exclude_none=True)
    lists = [
        kind for kind, name in _LISTS.items() if given.get(name) and FEATURES[kind](exchange.server)
    ]
    uris = dict.fromkeys(given.get(_RESOURCES, ()))
    if len(uris) > exchange.settings.max_subscriptions:
        raise too_many_subscriptions(exchange.settings.max_subscriptions)
    if sum(map(len, uris)) > MAX_URI_CHARACTERS:
        raise invalid_params(
            f"The URIs to hear of have more than {MAX_URI_CHARACTERS} characters together; send "
            "fewer in one request"
        )
    return _Granted(lists, list(_readable(uris, exchange)))


def _readable(uris: Iterable[str], exchange: Exchange) -> Iterator[Served]:
    # Each permission is asked for once in a request: it may take a statement.
    allows = cache(lambda each: each.allows(exchange.principal.user))
    for uri in uris:
        served = look_up(uri, exchange.server)
        if served is not None and any(allows(resource) for resource in served.ways):
            yield served


def _guard_of(resources: Sequence[Served]) -> Guard | None:
    """Return what says whether a user may go on listening to all of these resources.

    One that he may read no longer ends the whole: his client listens again to what is left.
    """
    ways = {each.ways for each in resources}
    guarded = [each for each in ways if all(resource.permission for resource in each)]
    if not guarded:
        return None
    return lambda user: all(any(each.allows(user) for each in way) for way in guarded)
