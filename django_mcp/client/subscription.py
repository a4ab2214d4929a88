"""A subscription of the modern era, begun again where its stream ends.

2026-07-28, basic/patterns/subscriptions: what a stream would have said while there was none is
lost. So whoever listens is told that all of it may have changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ..protocol.messages import Message, Notification, Response
from .changes import Changes
from .errors import NotProcessed, OutcomeUnknown, UnsupportedServer
from .exchange import outcome
from .limits import Limits
from .streams import Take

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Subscription:
    """One ``subscriptions/listen``, as often as it takes."""

    def __init__(
        self,
        listen: Callable[[Changes, Take], Awaitable[None]],
        changes: Changes,
        limits: Limits,
    ) -> None:
        self.begun = asyncio.Event()
        """Set when the server has agreed, or cannot be brought to."""
        self._listen = listen
        self._changes = changes
        self._limits = limits
        self._failures = 0
        self._error: Exception | None = None
        self._agreed = False

    async def run(self) -> None:
        """Listen until the task is cancelled, or the server tells no more."""
        while self._failures <= self._limits.reconnects:
            try:
                await self._listen(self._changes, self._take)
                self._error = OutcomeUnknown("The server has closed the subscription's stream")
            except (NotProcessed, OutcomeUnknown) as error:
                self._error = error
            except Exception as error:
                self._error = error
                break
            self._failures += 1
            await asyncio.sleep(self._limits.pause(self._failures))
        self._changes.fail(self._error or OutcomeUnknown("The subscription has ended"))
        self.begun.set()

    def check(self) -> None:
        """Raise what kept the subscription from beginning."""
        if not self._agreed and self._error is not None:
            raise self._error

    async def _take(self, message: Message) -> Response | None:
        match message:
            case Notification(method=method) if method == ACKNOWLEDGED:
                self._acknowledged(message)
            case Notification():
                self._failures = 0
                self._changes.hear(message)
            case Response():
                # An error ends the listening, a result only this stream: the server goes away.
                outcome(message)
                return message
        return None

    def _acknowledged(self, message: Notification) -> None:
        if not message.params.get("notifications"):
            raise UnsupportedServer("The server tells of none of these changes")
        if self._agreed:
            self._changes.missed()
        self._agreed = True
        self.begun.set()
