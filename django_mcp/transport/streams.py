"""What one connection shows of a stream, as Server-Sent Events."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import sys
import uuid
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

from ..conf import get_settings
from ..protocol import sse
from ..store.delivery.records import Message
from ..store.delivery.stream_readers import Reader
from ..store.ledger import ledger
from .threads import call_on

logger = logging.getLogger("django_mcp.request")

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


def _nothing() -> None:
    """Do nothing."""


class Mailbox:
    """What waits to be sent on one connection. Filled from any thread, emptied on the loop."""

    # There is one for each stream, and most of them wait for nothing: a list that is empty holds
    # next to nothing, unlike a deque.
    __slots__ = ("_closed", "_loop", "_messages", "ending", "finished", "wake")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._messages: list[Message] = []
        self._closed = False
        self.finished = False
        """Whether nothing more comes."""
        self.ending = b""
        """What is sent last, when it has finished."""
        self.wake: Callable[[], object] = _nothing
        """Called on the loop when there may be something to send."""

    def put(self, messages: Iterable[Message]) -> None:
        """Add messages. From any thread."""
        if not self._closed:
            self._messages.extend(messages)
            self._tell()

    def close(self) -> None:
        """Keep nothing any more: the connection has gone. From any thread."""
        self._closed = True
        self._messages.clear()

    def finish(self, ending: bytes = b"") -> None:
        """Say that nothing more comes but ``ending``. From any thread."""
        if not self.finished:
            self.finished, self.ending = True, ending
            self._tell()

    def __len__(self) -> int:
        return len(self._messages)

    def waiting(self) -> list[str]:
        """Return what waits."""
        return [each.body for each in list(self._messages)]

    def take(self) -> Message | None:
        """Return the next message, if there is one."""
        try:
            return self._messages.pop(0)
        except IndexError:
            return None

    def _tell(self) -> None:
        call_on(self._loop, self._wake)

    def _wake(self) -> None:
        self.wake()


def reader_into(
    mailbox: Mailbox,
    *,
    stream: uuid.UUID,
    cursor: int,
    epoch: int,
    own: bool = False,
    fed: bool = False,
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
        fed=fed,
        deliver=deliver,
        finish=mailbox.finish,
    )
    return reader


def resume(reader: Reader) -> None:
    """Let a reader go on whose client has caught up."""
    if not reader.ready:
        reader.ready = True
        ledger().ring()


class Shown:
    """The events that one connection shows of a mailbox, and comments while nothing comes.

    Whoever sends them takes one after the other until there is none, and comes back when the
    mailbox wakes him; or iterates, as Django does. While nothing comes there is a timer, and
    neither a task nor a coroutine.

    ``closed`` hears, once, that they are no longer shown, for whatever reason: also when nothing
    refers to them any more, as where the client went between the view and Django, which then does
    not close its response.

    If the next event is not asked for within ``WRITE_TIMEOUT_SECONDS``, the one before could not be
    sent, or nobody is there to begin: that ends it, too.
    """

    __slots__ = (
        "__weakref__",
        "_closed",
        "_drained",
        "_ending",
        "_is_over",
        "_label",
        "_loop",
        "_mailbox",
        "_opening",
        "_quiet_until",
        "_timer",
        "_until",
    )

    def __init__(
        self,
        mailbox: Mailbox,
        closed: Callable[[], object],
        *,
        lasts: bool = False,
        opening: bytes = b"",
        label: Callable[[Message], str | None] = lambda message: None,
        ending: bytes = b"",
        max_age: float = float("inf"),
        drained: Callable[[], object] = _nothing,
    ) -> None:
        """Show ``mailbox``, after ``opening``. ``label`` gives a message its id.

        After ``max_age`` seconds it ends with ``ending``, so that the client comes back.
        ``drained`` is told when there is room again. ``lasts`` says that no call of this process
        ends it.
        """
        self._loop = asyncio.get_running_loop()
        self._mailbox = mailbox
        self._closed = closed
        self._opening = opening
        self._label = label
        self._ending = ending
        self._drained = drained
        self._is_over = False
        self._until = self._loop.time() + max_age
        self._quiet_until = self._loop.time() + KEEP_ALIVE_SECONDS
        self._timer = self._give_up_later(None)
        showing[mailbox] = lasts

    def show_to(self, wake: Callable[[], object]) -> None:
        """Call ``wake`` on the loop when there may be something to take."""
        if not self.is_over:
            self._mailbox.wake = wake

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self._is_over or self._mailbox not in showing

    def take(self) -> bytes | None:
        """Return what is to be sent now, if there is something. To be called on the loop."""
        self._timer.cancel()
        if self.is_over:
            return None
        chunk = self._next(self._loop.time())
        if chunk is not None:
            self._timer = self._give_up_later(asyncio.current_task())
        elif not self._is_over:
            moment = min(self._quiet_until, self._until)
            self._timer = self._loop.call_at(moment, _wake, weakref.ref(self))
        return chunk

    def _next(self, now: float) -> bytes | None:
        if self._opening:
            chunk, self._opening = self._opening, b""
            return chunk
        if not self._mailbox:
            self._drained()
        if now >= self._until:
            return self._last(self._ending)
        message = self._mailbox.take()
        if message is not None:
            self._quiet_until = now + KEEP_ALIVE_SECONDS
            return sse.event(message.body.encode(), self._label(message))
        if self._mailbox.finished:
            return self._last(self._mailbox.ending)
        if now >= self._quiet_until:
            self._quiet_until = now + KEEP_ALIVE_SECONDS
            return sse.KEEP_ALIVE
        return None

    def _last(self, chunk: bytes) -> bytes | None:
        self._is_over = True
        return chunk or None

    def close(self) -> None:
        """Show no more. From any thread, and more than once."""
        if showing.pop(self._mailbox, None) is not None:
            self._mailbox.wake = _nothing
            self._closed()

    def __del__(self) -> None:
        if sys.is_finalizing() or showing.pop(self._mailbox, None) is None:
            return
        # By the collector, in whatever thread, which may hold the very lock that is wanted now.
        self._mailbox.wake = _nothing
        call_on(self._loop, self._closed)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while (chunk := self.take()) is None:
            if self.is_over:
                raise StopAsyncIteration
            news = self._loop.create_future()
            self.show_to(partial(settle, news))
            await news
        return chunk

    def _give_up_later(self, task: asyncio.Task[Any] | None) -> asyncio.TimerHandle:
        # Whoever has taken an event sends it, and comes for the next one once that is done: not
        # before the client has read, where the server holds back.
        seconds = get_settings().write_timeout_seconds
        return self._loop.call_later(seconds, _give_up, weakref.ref(self), task)


def _wake(shown: weakref.ref[Shown]) -> None:
    found = shown()
    if found is not None:
        found._mailbox.wake()


def _give_up(shown: weakref.ref[Shown], task: asyncio.Task[Any] | None) -> None:
    """End a connection whose client reads nothing, and with it the task that sends."""
    found = shown()
    if found is None or found.is_over:
        return
    found.close()
    if task is not None:
        logger.warning("A client has not read for too long; its connection is closed")
        task.cancel()


def settle(future: asyncio.Future[None]) -> None:
    """Let whoever awaits ``future`` go on. On the loop, and more than once."""
    if not future.done():
        future.set_result(None)


showing: dict[Mailbox, bool] = {}
"""What this process shows, and whether it lasts."""
