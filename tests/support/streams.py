"""Answers that are read as they come, wherever from."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from django_mcp.protocol.sse import Event, EventReader

BOUND = 20
"""Seconds after which what has not come is a failure."""
MAX_EVENT_BYTES = 64 * 1024 * 1024


def event_reader() -> EventReader:
    """Return what turns bytes into events."""
    return EventReader(MAX_EVENT_BYTES)


class StreamedAnswer(ABC):
    """A response: its messages are read one by one, whether they come as JSON or as events."""

    status: int
    headers: Mapping[str, str]
    bound: float = BOUND
    """Seconds that the next event may take."""
    last_id: str | None = None
    """The id of the last event that was read and had one."""

    def __init__(self) -> None:
        self._reader = event_reader()
        self._events: deque[Event] = deque()
        self._read = bytearray()

    @abstractmethod
    async def _piece(self) -> bytes | None:
        """Return what comes next of the body; ``None`` at its end."""

    @property
    def is_stream(self) -> bool:
        """Whether the response is a stream of events."""
        return self.headers.get("content-type", "").startswith("text/event-stream")

    @property
    def text(self) -> str:
        """All that has been read of the body, with comments."""
        return self._read.decode()

    async def read(self) -> bytes:
        """Return the body, once it has ended."""
        while await self._more():
            pass
        return bytes(self._read)

    async def json(self) -> Any:
        """Return the body of a response that is no stream."""
        return json.loads(await self.read())

    async def event(self) -> Event | None:
        """Return the next event, comments and mere pauses left out; ``None`` at the end."""
        # Bounded as a whole: comments alone would keep the wait alive, too.
        async with asyncio.timeout(self.bound):
            while True:
                while self._events:
                    event = self._events.popleft()
                    self.last_id = event.id or self.last_id
                    if event.data or event.id is not None:
                        return event
                if not await self._more():
                    return None

    async def message(self) -> Any:
        """Return the next message; ``None`` at the end."""
        if not self.is_stream:
            # There is one at most: a body is read once.
            body = b"" if self._read else await self.read()
            return json.loads(body) if body else None
        while (event := await self.event()) is not None:
            if event.data:
                return json.loads(event.data)
        return None

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.message()) is not None:
            yield message

    async def messages(self) -> list[Any]:
        """Return all further messages, until the answer ends."""
        return [message async for message in self]

    async def is_silent(self, seconds: float = 0.3) -> bool:
        """Return whether nothing comes for a while."""
        try:
            async with asyncio.timeout(seconds):
                await self.event()
        except TimeoutError:
            return True
        return False

    async def _more(self) -> bool:
        piece = await self._piece()
        if piece is None:
            return False
        self._read += piece
        if self.is_stream:
            self._events += self._reader.feed(piece)
        return True
