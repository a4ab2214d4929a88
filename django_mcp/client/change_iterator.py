"""What a server says has changed, as an async iterator, whichever way its revision says it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, Self

from ..protocol.messages import Notification
from .errors import CallTimedOut

ChangeKind = Literal["tools", "prompts", "resources", "resource"]

CHANGE_METHODS: Final[Mapping[str, ChangeKind]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    "notifications/resources/updated": "resource",
}
UNREAD_CHANGES: Final = 1000
"""How many different changes are kept for whoever reads them, before they become one of a kind."""
LONGEST_URI_CHARACTERS: Final = 8192
"""The longest URI of a resource in a change; with a longer one the change names none."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something has changed: a list, or with ``uri`` a resource.

    With ``missed`` it may have: the stream was interrupted, and it is not known what it would have
    said.
    """

    kind: ChangeKind
    uri: str | None = None
    missed: bool = False


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Of which changes somebody wants to be notified."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    uris: tuple[str, ...] = ()

    def notifications(self) -> dict[str, Any]:
        """Return the ``notifications`` that ``subscriptions/listen`` asks for."""
        lists = {"tools": self.tools, "prompts": self.prompts, "resources": self.resources}
        flags = {f"{kind}ListChanged": True for kind, wanted in lists.items() if wanted}
        return {**flags, **({"resourceSubscriptions": list(self.uris)} if self.uris else {})}

    def includes(self, kind: ChangeKind) -> bool:
        """Return whether changes of a kind are wanted."""
        return bool(self.uris) if kind == "resource" else bool(getattr(self, kind))

    def missed(self) -> list[Change]:
        """Return all that may have changed while nothing was received."""
        lists: list[ChangeKind] = ["tools", "prompts", "resources"]
        whole = [Change(kind, missed=True) for kind in lists if self.includes(kind)]
        return [*whole, *(Change("resource", uri, missed=True) for uri in self.uris)]


def no_more_changes() -> EOFError:
    """Return the error for reading on after a subscription has ended, from either side."""
    return EOFError("The subscription has ended; there are no more changes")


class Changes:
    """The changes that one ``listen`` asked for: an async context manager and iterator.

    A change that has not been read yet is not kept twice.
    """

    def __init__(
        self,
        wanted: ChangeFilter,
        begin: Callable[[Changes], Awaitable[None]],
        end: Callable[[Changes], Awaitable[None]],
    ) -> None:
        self.wanted = wanted
        self._begin = begin
        self._end = end
        self._unread: dict[Change, None] = {}
        self._error: Exception | None = None
        self._is_finished = False
        self._arrived = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._begin(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.finish()
        await self._end(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        """Return the next change; raises the error that ended the subscription, if one did."""
        while not (self._unread or self._error or self._is_finished):
            self._arrived.clear()
            await self._arrived.wait()
        if (change := self.pop()) is None:
            raise StopAsyncIteration
        return change

    def pop(self) -> Change | None:
        """Return the next change if there is one; raises what ended the subscription."""
        if self._unread:
            change = next(iter(self._unread))
            del self._unread[change]
            return change
        if self._error is not None:
            raise self._error
        return None

    async def next(self, timeout: float | None = None) -> Change:
        """Return the next change.

        Raises :class:`CallTimedOut` after ``timeout`` seconds, ``EOFError`` when the subscription
        has ended, and the :class:`ClientError` that ended it, if one did.
        """
        try:
            async with asyncio.timeout(timeout):
                return await anext(self)
        except TimeoutError:
            raise CallTimedOut("listen", timeout or 0.0) from None
        except StopAsyncIteration:
            raise no_more_changes() from None

    def add(self, notification: Notification) -> None:
        """Add a change, if it is one that is wanted."""
        kind = CHANGE_METHODS.get(notification.method)
        if kind is None or not self.wanted.includes(kind):
            return
        uri = notification.params.get("uri") if kind == "resource" else None
        is_known = isinstance(uri, str) and len(uri) <= LONGEST_URI_CHARACTERS
        self._add(Change(kind, uri if is_known else None))

    def add_missed(self) -> None:
        """Add all that may have changed while nothing was received."""
        for change in self.wanted.missed():
            self._add(change)

    def fail(self, error: Exception) -> None:
        """End with an error, after the changes that are still unread."""
        self._error = self._error or error
        self._arrived.set()

    def finish(self) -> None:
        """End, after the changes that are still unread."""
        self._is_finished = True
        self._arrived.set()

    def _add(self, change: Change) -> None:
        if len(self._unread) >= UNREAD_CHANGES:
            change = Change(change.kind, missed=True)
        self._unread[change] = None
        self._arrived.set()


class ChangeListeners:
    """All that listen in sessions of the legacy era, whose one stream has the changes for all."""

    def __init__(self) -> None:
        self._listeners: set[Changes] = set()
        self._subscribers: Counter[str] = Counter()

    def __bool__(self) -> bool:
        return bool(self._listeners)

    @property
    def uris(self) -> list[str]:
        """The resources to which somebody has subscribed."""
        return [uri for uri, count in self._subscribers.items() if count > 0]

    def add(self, changes: Changes) -> None:
        """Add one."""
        self._listeners.add(changes)

    def subscribe(self, uri: str) -> None:
        """Count a subscription to a resource, which every new session has to have as well."""
        self._subscribers[uri] += 1

    def remove(self, changes: Changes) -> list[str]:
        """Remove one; return the resources to which nobody subscribes any more."""
        if changes not in self._listeners:
            return []
        self._listeners.remove(changes)
        self._subscribers.subtract(changes.wanted.uris)
        return [uri for uri in changes.wanted.uris if self._subscribers[uri] <= 0]

    def publish(self, notification: Notification) -> None:
        """Add a change to all that want it."""
        for changes in self._listeners:
            changes.add(notification)

    def publish_missed(self) -> None:
        """Add to all what they may have missed."""
        for changes in self._listeners:
            changes.add_missed()

    def fail(self, error: Exception) -> None:
        """End all with an error."""
        for changes in self._listeners:
            changes.fail(error)
