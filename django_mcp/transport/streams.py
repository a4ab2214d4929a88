"""What one connection shows of a stream, as Server-Sent Events."""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ..protocol import sse
from ..store.ledger import ledger
from ..store.posts import Message
from ..store.readers import Reader

KEEP_ALIVE_SECONDS: Final = 15.0
"""Proxies close connections on which nothing moves for a minute, some after half of one."""
RETRY_MS: Final = 1000
"""How long a client waits before it comes back to a stream that ended unfinished."""
HELD: Final = 500
"""Messages that wait in memory for a slow client; the rest stays in the database."""


@dataclass(frozen=True, slots=True)
class EventId:
    """A place on a stream, opaque to the client, which sends it back as ``Last-Event-ID``.

    ``epoch`` tells the ids of connections apart that are at the same place.
    """

    stream: uuid.UUID
    seq: int
    epoch: int | None = None

    def __str__(self) -> str:
        stream = base64.urlsafe_b64encode(self.stream.bytes).rstrip(b"=").decode()
        return f"{stream}.{self.seq}" + ("" if self.epoch is None else f".{self.epoch}")

    @classmethod
    def parse(cls, text: str) -> EventId | None:
        """Return the place that an id names; ``None`` for what is no id of ours."""
        name, _, place = text.partition(".")
        seq = place.partition(".")[0]
        try:
            stream = uuid.UUID(bytes=base64.b64decode(name + "==", b"-_", validate=True))
        except (binascii.Error, ValueError):
            return None
        if not (seq.isascii() and seq.isdigit() and len(seq) < 19):
            return None
        return cls(stream, int(seq))


class Mailbox:
    """What waits to be sent on one connection. Filled from any thread, emptied on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._messages: deque[Message] = deque()
        self._news = asyncio.Event()
        self.finished = False
        """Whether nothing more comes."""
        self.ending = b""
        """What is sent last, when it has finished."""

    def put(self, messages: Iterable[Message]) -> None:
        """Add messages. From any thread."""
        self._messages.extend(messages)
        self._tell()

    def finish(self, ending: bytes = b"") -> None:
        """Say that nothing more comes but ``ending``. From any thread."""
        if not self.finished:
            self.finished, self.ending = True, ending
            self._tell()

    def __len__(self) -> int:
        return len(self._messages)

    async def get(self, seconds: float) -> Message | None:
        """Return the next message; ``None`` if none came in time, or none will."""
        if not self._messages and not self.finished:
            self._news.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                return None
        return self._messages.popleft() if self._messages else None

    def _tell(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)


def reader_into(
    mailbox: Mailbox, *, stream: uuid.UUID, cursor: int, epoch: int, own: bool
) -> Reader:
    """Return a reader that fills ``mailbox`` while its client keeps up."""

    def deliver(messages: Sequence[Message]) -> None:
        mailbox.put(messages)
        reader.ready = len(mailbox) < HELD

    reader = Reader(
        stream=stream,
        cursor=cursor,
        epoch=epoch,
        own=own,
        deliver=deliver,
        finish=mailbox.finish,
    )
    return reader


def resume(reader: Reader) -> None:
    """Let a reader go on whose client has caught up."""
    if not reader.ready:
        reader.ready = True
        ledger().ring()


async def events(
    mailbox: Mailbox,
    *,
    opening: bytes = b"",
    label: Callable[[Message], str | None] = lambda message: None,
    ending: bytes = b"",
    max_age: float = float("inf"),
    drained: Callable[[], None] = lambda: None,
) -> AsyncGenerator[bytes]:
    """Yield what comes into ``mailbox`` as events, and comments while nothing comes.

    ``label`` gives a message its id. After ``max_age`` seconds the connection ends with
    ``ending``, so that the client comes back. ``drained`` is told when there is room again.
    """
    end = time.monotonic() + max_age
    if opening:
        yield opening
    while (left := end - time.monotonic()) > 0:
        message = await mailbox.get(min(left, KEEP_ALIVE_SECONDS))
        if message is not None:
            yield sse.event(message.body.encode(), label(message))
            if not mailbox:
                drained()
        elif mailbox.finished and not mailbox:
            if mailbox.ending:
                yield mailbox.ending
            return
        elif not mailbox:
            yield sse.KEEP_ALIVE
    yield ending
