"""What of a server can change, how a client is told of it, and who passes it on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from ..protocol.errors import MCPError, invalid_params
from ..protocol.messages import Notification

if TYPE_CHECKING:
    from .primitives import Resource
    from .registry import MCPServer


class Kind(StrEnum):
    """What changes: one of the three lists, or a resource."""

    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"
    RESOURCE = "resource"


LISTS = (Kind.TOOLS, Kind.PROMPTS, Kind.RESOURCES)


@dataclass(frozen=True, slots=True)
class Topic:
    """A list, or a resource by its URI."""

    kind: Kind
    uri: str = ""
    """As somebody spells it."""
    name: str = ""
    """The URI that its template makes, whichever way it is spelled."""

    def notification(self, meta: Mapping[str, Any] | None = None) -> Notification:
        """Return what tells a client that it has changed."""
        params: dict[str, Any] = {} if meta is None else {"_meta": dict(meta)}
        if self.kind is Kind.RESOURCE:
            return Notification("notifications/resources/updated", {**params, "uri": self.uri})
        return Notification(f"notifications/{self.kind}/list_changed", params)


class Announcer(Protocol):
    """Tells the clients of all processes. Implemented where there are transactions and signals."""

    def announce(self, server: MCPServer, topic: Topic, *, using: str | None) -> None:
        """Tell that ``topic`` has changed, once what is open in the database is committed.

        ``using`` is the alias whose transaction it is; ``None`` stands for all that are open.
        """

    def watch(self, server: MCPServer, resource: Resource) -> None:
        """Announce changes of ``resource.model`` from now on.

        Raises :class:`~django_mcp.server.errors.RegistrationError` if its URIs cannot be told from
        an instance.
        """


def too_many_subscriptions(cap: int) -> MCPError:
    """Return the refusal of more resources than one may be told of."""
    return invalid_params(
        f"Too many subscriptions: {cap} resources at most. Give some up, or watch the list of "
        "resources instead."
    )


def install(announcer: Announcer) -> None:
    """Let ``announcer`` do it, also for what has been registered already."""
    global _announcer
    _announcer = announcer
    waiting, _waiting[:] = _waiting[:], []
    for server, resource in waiting:
        announcer.watch(server, resource)


@contextmanager
def announcements() -> Iterator[list[str]]:
    """Collect what is announced within the block: the kinds of lists, and the URIs of resources.

    For tests: whether or not anybody wants to hear of it, and before it is committed.
    """
    global _announcer
    found: list[str] = []
    before, _announcer = _announcer, _Recording(_announcer, found)
    try:
        yield found
    finally:
        _announcer = before


@dataclass(frozen=True, slots=True)
class _Recording:
    announcer: Announcer | None
    found: list[str]

    def announce(self, server: MCPServer, topic: Topic, *, using: str | None) -> None:
        self.found.append(topic.uri or str(topic.kind))
        if self.announcer is not None:
            self.announcer.announce(server, topic, using=using)

    def watch(self, server: MCPServer, resource: Resource) -> None:
        if self.announcer is not None:
            self.announcer.watch(server, resource)


def announce(server: MCPServer, topic: Topic, *, using: str | None = None) -> None:
    """Tell the clients of ``server`` that ``topic`` has changed."""
    if _announcer is None:
        raise RuntimeError(
            'Changes can be announced once Django is set up, with "django_mcp" in INSTALLED_APPS.'
        )
    _announcer.announce(server, topic, using=using)


def watch(server: MCPServer, resource: Resource) -> None:
    """Announce changes of the model that ``resource`` shows, once there is an announcer."""
    if _announcer is None:
        _waiting.append((server, resource))
    else:
        _announcer.watch(server, resource)


_announcer: Announcer | None = None
_waiting: list[tuple[MCPServer, Resource]] = []
