"""What a server says has changed, as an async iterator, whichever way its revision says it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, Self

from ..protocol.messages import Notification
from .errors import CallTimedOut

Kind = Literal["tools", "prompts", "resources", "resource"]

METHODS: Final[Mapping[str, Kind]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
    "notifications/resources/updated": "resource",
}
HELD: Final = 1000
"""How many different changes wait for whoever reads them, before they are told as one."""
LONGEST_URI: Final = 8192
"""Characters of a resource's URI in a change; with a longer one the change names none."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something has changed: a list, or with ``uri`` a resource.

    With ``missed`` it may have: the stream was interrupted, and nobody knows what it would have
    said.
    """

    kind: Kind
    uri: str | None = None
    missed: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody listens for."""

    tools: bool = False
    prompts: bool = False
    resources: bool = False
    uris: tuple[str, ...] = ()

    def filter(self) -> dict[str, Any]:
        """Return the filter of ``subscriptions/listen``."""
        lists = {"tools": self.tools, "prompts": self.prompts, "resources": self.resources}
        flags = {f"{kind}ListChanged": True for kind, wanted in lists.items() if wanted}
        return {**flags, **({"resourceSubscriptions": list(self.uris)} if self.uris else {})}

    def includes(self, kind: Kind) -> bool:
        """Return whether changes of a kind are wanted."""
        return bool(self.uris) if kind == "resource" else bool(getattr(self, kind))

    def all(self) -> list[Change]:
        """Return all that may have been missed."""
        lists: list[Kind] = ["tools", "prompts", "resources"]
        whole = [Change(kind, missed=True) for kind in lists if self.includes(kind)]
        return [*whole, *(Change("resource", uri, missed=True) for uri in self.uris)]


def no_more() -> EOFError:
    """Return what says that a subscription has ended, from either side."""
    return EOFError("The subscription has ended; there are no more changes")


class Changes:
    """The changes that one ``listen`` asked for: an async context manager and iterator.

    A change that nobody has read yet is not told twice.
    """

    def __init__(
        self,
        wanted: Wanted,
        begin: Callable[[Changes], Awaitable[None]],
        end: Callable[[Changes], Awaitable[None]],
    ) -> None:
        self.wanted = wanted
        self._begin = begin
        self._end = end
        self._waiting: dict[Change, None] = {}
        self._error: Exception | None = None
        self._over = False
        self._news = asyncio.Event()

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
        """Return the next change; raises what ended the listening, if it was an error."""
        while not (self._waiting or self._error or self._over):
            self._news.clear()
            await self._news.wait()
        if (change := self.take()) is None:
            raise StopAsyncIteration
        return change

    def take(self) -> Change | None:
        """Return the next change if there is one; raises what ended the listening."""
        if self._waiting:
            change = next(iter(self._waiting))
            del self._waiting[change]
            return change
        if self._error is not None:
            raise self._error
        return None

    async def next(self, timeout: float | None = None) -> Change:
        """Return the next change; raises :class:`CallTimedOut` after ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                return await anext(self)
        except TimeoutError:
            raise CallTimedOut("listen", timeout or 0.0) from None
        except StopAsyncIteration:
            raise no_more() from None

    def hear(self, notification: Notification) -> None:
        """Note a change, if it is one that is wanted."""
        kind = METHODS.get(notification.method)
        if kind is None or not self.wanted.includes(kind):
            return
        uri = notification.params.get("uri") if kind == "resource" else None
        is_known = isinstance(uri, str) and len(uri) <= LONGEST_URI
        self._note(Change(kind, uri if is_known else None))

    def missed(self) -> None:
        """Note that something may have changed meanwhile."""
        for change in self.wanted.all():
            self._note(change)

    def fail(self, error: Exception) -> None:
        """End with an error, after what waits has been read."""
        self._error = self._error or error
        self._news.set()

    def finish(self) -> None:
        """End, after what waits has been read."""
        self._over = True
        self._news.set()

    def _note(self, change: Change) -> None:
        if len(self._waiting) >= HELD:
            change = Change(change.kind, missed=True)
        self._waiting[change] = None
        self._news.set()
