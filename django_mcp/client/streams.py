"""Follows a stream of messages through broken connections, as far as the server lets it.

2025-11-25, basic/transports, "Resumability and Redelivery": a stream that ends before its response
is asked for by GET with the id of the last event, after the pause that the server wished.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from ..protocol import sse
from ..protocol.messages import Batch, Invalid, Message, Response
from .endpoint import Answer
from .errors import ClientError, ServerBusy, UnexpectedAnswer
from .limits import Limits

log = logging.getLogger("django_mcp.client")

Take = Callable[[Message], Awaitable[Response | None]]
"""What is done with each message; returns the response that ends the reading."""

REMEMBERED: Final = 1000
"""How many ids of events a stream remembers, to drop what it is sent twice."""


class Cursor:
    """Where the reading of one stream stands."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._seen: deque[str] = deque(maxlen=REMEMBERED)
        self._retry: float | None = None
        self._failures = 0
        self._hold = 0.0
        self.last_event_id = ""

    @property
    def exhausted(self) -> bool:
        """Whether the server has been asked often enough without a word from it."""
        return self._failures > self._limits.reconnects

    def note(self, event: sse.Event) -> bool:
        """Remember an event; return whether it is new."""
        self._failures = 0
        if event.retry_ms is not None:
            self._retry = event.retry_ms / 1000
        if event.id is None:
            return True
        self.last_event_id = event.id
        if event.id in self._seen:
            return False
        self._seen.append(event.id)
        return True

    def pause(self) -> float:
        """Count an end of the connection; return how long to wait before the next one."""
        self._failures += 1
        hold, self._hold = self._hold, 0.0
        if self._failures == 1 and self._retry is not None:
            return max(self._retry, hold)
        return max(self._limits.pause(self._failures), self._retry or 0.0, hold)

    def defer(self, error: ClientError) -> None:
        """Note why the last connection failed: the server may have said when to come back."""
        if isinstance(error, ServerBusy):
            self._hold = error.retry_after or 0.0

    @property
    def headers(self) -> dict[str, str]:
        """What asks for the rest of the stream."""
        return {"Last-Event-ID": self.last_event_id} if self.last_event_id else {}


async def follow(answer: Answer, take: Take, cursor: Cursor | None = None) -> Response | None:
    """Hand over the messages of one connection, each once, until ``take`` finds a response.

    Returns ``None`` where the connection ends without it.
    """
    if answer.media_type != sse.MEDIA_TYPE:
        what = answer.media_type or "nothing"
        raise UnexpectedAnswer(f"The server sent {what} instead of a stream", answer.status)

    async def take_event(event: sse.Event) -> Response | None:
        is_new = cursor is None or cursor.note(event)
        if not (is_new and event.data and event.kind == "message"):
            return None
        for message in one_by_one(answer.parsed(event.data)):
            if (response := await take(message)) is not None:
                return response
        return None

    return await answer.events(take_event)


def one_by_one(message: Message | Batch | Invalid) -> list[Message]:
    """Return the messages of a batch, or the one; what is not a message is logged and left out."""
    items = message.items if isinstance(message, Batch) else (message,)
    for each in items:
        if isinstance(each, Invalid):
            log.warning("The server sent what is not a message: %s", each.error.message)
    return [each for each in items if not isinstance(each, Invalid)]
