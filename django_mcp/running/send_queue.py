"""What waits to be sent on one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from ..store.delivery.records import StoredMessage
from .threads import call_on

HELD_MESSAGES: Final = 500
"""Messages that wait in memory for a slow client; the rest stays in the database."""


def do_nothing() -> None:
    """Do nothing."""


class SendQueue:
    """What waits to be sent on one connection. Filled from any thread, emptied on the loop."""

    # There is one for each stream, and most of them wait for nothing: a list that is empty holds
    # next to nothing, unlike a deque.
    __slots__ = ("_closed", "_loop", "_messages", "ending", "finished", "wake")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._messages: list[StoredMessage] = []
        self._closed = False
        self.finished = False
        """Whether nothing more comes."""
        self.ending = b""
        """What is sent last, when it has finished."""
        self.wake: Callable[[], object] = do_nothing
        """Called on the loop when there may be something to send."""

    def put(self, messages: Iterable[StoredMessage]) -> bool:
        """Add messages; return whether no more should come for now. From any thread."""
        if not self._closed:
            self._messages.extend(messages)
            self._wake_on_loop()
        return self.is_full

    def close(self) -> None:
        """Keep nothing any more: the connection has gone. From any thread."""
        self._closed = True
        self._messages.clear()
        self.wake = do_nothing

    def finish(self, ending: bytes = b"") -> None:
        """Say that nothing more comes but ``ending``. From any thread."""
        if not self.finished:
            self.finished, self.ending = True, ending
            self._wake_on_loop()

    @property
    def is_full(self) -> bool:
        """Whether no more should come until some has been sent."""
        return len(self._messages) >= HELD_MESSAGES

    def __len__(self) -> int:
        return len(self._messages)

    def waiting(self) -> list[str]:
        """Return what waits."""
        return [each.body for each in list(self._messages)]

    def take(self) -> StoredMessage | None:
        """Return the next message, if there is one."""
        try:
            return self._messages.pop(0)
        except IndexError:
            return None

    def _wake_on_loop(self) -> None:
        call_on(self._loop, self._wake)

    def _wake(self) -> None:
        self.wake()


def settle(future: asyncio.Future[None]) -> None:
    """Let whoever awaits ``future`` go on. On the loop, and more than once."""
    if not future.done():
        future.set_result(None)


open_streams: dict[SendQueue, bool] = {}
"""The queues of event streams that are open, and whether each waits for later news.

An event stream whose queue has gone from here is over.
"""
