"""What of a server can change, and how a client is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .errors import MCPError, invalid_params
from .messages import Notification


class TopicKind(StrEnum):
    """What changes: one of the three lists, or a resource."""

    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"
    RESOURCE = "resource"


LISTS = (TopicKind.TOOLS, TopicKind.PROMPTS, TopicKind.RESOURCES)


@dataclass(frozen=True, slots=True)
class Topic:
    """A list, or a resource by its URI."""

    kind: TopicKind
    uri: str = ""
    """As somebody spells it."""
    name: str = ""
    """The URI that its template makes, whichever way it is spelled."""

    def notification(self, meta: Mapping[str, Any] | None = None) -> Notification:
        """Return what tells a client that it has changed."""
        params: dict[str, Any] = {} if meta is None else {"_meta": dict(meta)}
        if self.kind is TopicKind.RESOURCE:
            return Notification("notifications/resources/updated", {**params, "uri": self.uri})
        return Notification(f"notifications/{self.kind}/list_changed", params)


def too_many_subscriptions(cap: int) -> MCPError:
    """Return the refusal of more resources than one may be told of."""
    return invalid_params(
        f"Too many subscriptions: {cap} resources at most. Give some up, or watch the list of "
        "resources instead."
    )
