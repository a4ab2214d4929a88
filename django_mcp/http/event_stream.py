"""What one connection shows of a stream, as Server-Sent Events."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import sys
import uuid
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

from ..conf import get_settings
from ..protocol import sse
from ..running.send_queue import SendQueue, do_nothing, open_streams, settle
from ..running.threads import call_on
from ..store.delivery.records import MessageKind, StoredMessage
from ..store.delivery.stream_readers import StreamReader
from ..store.ledger import ledger

logger = logging.getLogger("django_mcp.request")

RETRY_MS: Final = 1000
"""How long a client waits before it comes back to a stream that ended unfinished."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a stream is silent, and how long it lasts, by what holds it open."""

    keep_alive_seconds: float
    """Seconds between two comments while nothing else comes."""
    max_age_seconds: float
    """Seconds after which a stream ends to which its client can come back, unless the site's
    ``STREAM_MAX_AGE_SECONDS`` says otherwise."""
    question_seconds: float
    """Seconds after which it ends when it has asked the client something."""
    ages_while_listening: bool = False
    """Whether ``subscriptions/listen`` ends after a while, too: its client listens again."""
    begins_late: bool = False
    """Whether a stream begins for every modern call that lasts: it shows when its client goes."""

    @property
    def age(self) -> float:
        """How many seconds a stream lasts to which its client can come back."""
        return get_settings().stream_max_age_seconds or self.max_age_seconds


#: Proxies close connections on which nothing moves for a minute, some after half of one.
ON_LOOP: Final = Pace(15.0, 600.0, float("inf"))
#: Each holds one of a few threads, which should not wait for a person; and only from writing does
#: the server learn that a client has gone.
ON_THREAD: Final = Pace(5.0, 60.0, 3.0, ages_while_listening=True, begins_late=True)


@dataclass(frozen=True, slots=True)
class EventId:
    """A place on a stream, opaque to the client, which sends it back as ``Last-Event-ID``.

    ``epoch`` is the number of the connection among those that have shown the stream. It tells the
    ids apart of several that begin at the same place; :meth:`parse` leaves it out.
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


def note_room(reader: StreamReader) -> None:
    """Let a reader go on whose client has caught up."""
    if not reader.ready:
        reader.ready = True
        ledger().look_now(reader.partition)


class EventStream:
    """The events that one connection shows of a queue, and comments while nothing comes.

    Whoever sends them takes one after the other until there is none, and comes back when the
    queue wakes him; or iterates, as Django does. While nothing comes there is a timer, and
    neither a task nor a coroutine.

    ``on_close`` is called once when they are no longer shown, for whatever reason: also when
    nothing refers to them any more, as where the client went between the view and Django, which
    then does not close its response.

    If the next event is not asked for within ``WRITE_TIMEOUT_SECONDS``, the one before could not be
    sent, or nobody is there to begin: that ends it, too.
    """

    __slots__ = (
        "__weakref__",
        "_ending",
        "_ends_at",
        "_event_id_of",
        "_is_over",
        "_keep_alive_at",
        "_loop",
        "_on_close",
        "_on_drained",
        "_opening",
        "_pace",
        "_queue",
        "_timer",
    )

    def __init__(
        self,
        queue: SendQueue,
        on_close: Callable[[], object],
        *,
        ends_first: bool = False,
        opening: bytes = b"",
        event_id_of: Callable[[StoredMessage], str | None] = lambda message: None,
        ending: bytes = b"",
        pace: Pace = ON_LOOP,
        is_resumable: bool = False,
        on_drained: Callable[[], object] = do_nothing,
    ) -> None:
        """Show ``queue``, after ``opening``. ``event_id_of`` gives a message its id.

        ``is_resumable`` says that its client can come back to it, so that it ends after a while, as
        ``pace`` has it, with ``ending``.
        ``on_drained`` is called when there is room again. ``ends_first`` says that it waits for
        news: a process that is asked to stop ends it while calls may go on.
        """
        self._loop = asyncio.get_running_loop()
        self._queue = queue
        self._on_close = on_close
        self._opening = opening
        self._event_id_of = event_id_of
        self._ending = ending
        self._on_drained = on_drained
        self._is_over = False
        self._pace = pace
        self._ends_at = self._loop.time() + (pace.age if is_resumable else float("inf"))
        self._keep_alive_at = self._loop.time() + pace.keep_alive_seconds
        self._timer = self._give_up_later(None)
        open_streams[queue] = ends_first

    def on_ready(self, wake: Callable[[], object]) -> None:
        """Call ``wake`` on the loop when there may be something to take."""
        if not self.is_over:
            self._queue.wake = wake

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self._is_over or self._queue not in open_streams

    def take(self) -> bytes | None:
        """Return what is to be sent now, if there is something. To be called on the loop."""
        self._timer.cancel()
        if self.is_over:
            return None
        chunk = self._next(self._loop.time())
        if chunk is not None:
            self._timer = self._give_up_later(asyncio.current_task())
        elif not self._is_over:
            moment = min(self._keep_alive_at, self._ends_at)
            self._timer = self._loop.call_at(moment, _wake, weakref.ref(self))
        return chunk

    def _next(self, now: float) -> bytes | None:
        if self._opening:
            chunk, self._opening = self._opening, b""
            return chunk
        if not self._queue:
            self._on_drained()
        if now >= self._ends_at:
            return self._finish_with(self._ending)
        message = self._queue.take()
        if message is not None:
            self._keep_alive_at = now + self._pace.keep_alive_seconds
            if message.kind == MessageKind.REQUEST and self._ends_at != float("inf"):
                self._ends_at = min(self._ends_at, now + self._pace.question_seconds)
            return sse.event(message.body.encode(), self._event_id_of(message))
        if self._queue.finished:
            return self._finish_with(self._queue.ending)
        if now >= self._keep_alive_at:
            self._keep_alive_at = now + self._pace.keep_alive_seconds
            return sse.KEEP_ALIVE
        return None

    def _finish_with(self, chunk: bytes) -> bytes | None:
        self._is_over = True
        return chunk or None

    def close(self) -> None:
        """Show no more. From any thread, and more than once."""
        if open_streams.pop(self._queue, None) is not None:
            self._queue.wake = do_nothing
            self._on_close()

    def __del__(self) -> None:
        if sys.is_finalizing() or open_streams.pop(self._queue, None) is None:
            return
        # By the collector, in whatever thread, which may hold the very lock that is wanted now.
        self._queue.wake = do_nothing
        call_on(self._loop, self._on_close)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while (chunk := self.take()) is None:
            if self.is_over:
                raise StopAsyncIteration
            news = self._loop.create_future()
            self.on_ready(partial(settle, news))
            await news
        return chunk

    def _give_up_later(self, task: asyncio.Task[Any] | None) -> asyncio.TimerHandle:
        # Whoever has taken an event sends it, and comes for the next one once that is done: not
        # before the client has read, where the server holds back.
        seconds = get_settings().write_timeout_seconds
        return self._loop.call_later(seconds, _give_up, weakref.ref(self), task)


def _wake(shown: weakref.ref[EventStream]) -> None:
    found = shown()
    if found is not None:
        found._queue.wake()


def _give_up(shown: weakref.ref[EventStream], task: asyncio.Task[Any] | None) -> None:
    """End a connection whose client reads nothing, and with it the task that sends."""
    found = shown()
    if found is None or found.is_over:
        return
    found.close()
    if task is not None:
        logger.warning("A client has not read for too long; its connection is closed")
        task.cancel()
