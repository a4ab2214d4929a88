"""Bodies that are still coming in: how long they may take, and what they hold together.

A client that sends the beginning of a body and then nothing, or a byte now and then, would
otherwise keep it in memory for ever. Those that have come and wait for a thread that reads them
count as well: many may come in the time that one takes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from ..conf import get_settings
from ..protocol.errors import ErrorCode
from .replies import Refused, refusal
from .request import BodyTooLarge

T = TypeVar("T")

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]

RETRY_AFTER_SECONDS: Final = 5


class Begun(Generic[T]):
    """An awaitable that has been begun: perhaps it has a value already, and nobody has to wait."""

    __slots__ = ("_steps", "_yielded", "is_done", "value")

    value: T

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self._steps = _steps_of(awaitable)
        self.is_done = False
        try:
            self._yielded = next(self._steps)
        except StopIteration as done:
            self.is_done, self.value = True, done.value

    def __await__(self) -> Generator[Any, Any, T]:
        while not self.is_done:
            try:
                try:
                    sent = yield self._yielded
                except BaseException as error:
                    self._yielded = self._steps.throw(error)
                else:
                    self._yielded = self._steps.send(sent)
            except StopIteration as done:
                self.is_done, self.value = True, done.value
        return self.value


def _steps_of(awaitable: Awaitable[T]) -> Generator[Any, Any, T]:
    # A server's own awaitables may know no more than next(), which `yield from` makes do with.
    return (yield from awaitable.__await__())


class RequestBodies:
    """Those that the requests of one event loop wait for."""

    def __init__(self) -> None:
        self.held = 0
        """Bytes that have come of them, and wait."""
        self._open: dict[_Body, None] = {}
        self._held_by: Counter[str] = Counter()

    async def rest(
        self, first: Awaitable[Event], receive: Receive, limit: int, caller: str
    ) -> bytes:
        """Return a body that was not there at once; raises :class:`Refused`."""
        body = _Body(caller)
        self._open[body] = None
        try:
            async with asyncio.timeout(None) as body.clock:
                await self._collect(body, first, receive, limit)
                return bytes(body.data)
        except TimeoutError:
            raise body.refusal() from None
        finally:
            self._forget(body)

    @asynccontextmanager
    async def keeping(self, size: int, caller: str) -> AsyncIterator[None]:
        """Count a body that has come as long as it waits; may raise :class:`Refused` meanwhile."""
        body = _Body(caller, is_complete=True)
        self._open[body] = None
        try:
            async with asyncio.timeout(None) as body.clock:
                self._hold(body, size)
                yield
        except TimeoutError:
            if not body.is_given_up:
                raise
            raise body.refusal() from None
        finally:
            self._forget(body)

    async def _collect(
        self, body: _Body, awaited: Awaitable[Event], receive: Receive, limit: int
    ) -> None:
        while True:
            body.wait()
            event = await awaited
            if body.is_given_up:
                raise body.refusal()
            if event["type"] == "http.disconnect":
                raise refusal(400, "The body ended early", code=ErrorCode.PARSE_ERROR)
            chunk: bytes = event.get("body", b"")
            if len(body.data) + len(chunk) > limit:
                raise BodyTooLarge
            body.data += chunk
            if not event.get("more_body", False):
                return
            self._hold(body, len(chunk))
            awaited = receive()

    def _hold(self, body: _Body, size: int) -> None:
        """Count more bytes of a body; where it is too much, others are given up, or it is itself.

        Whoever has most gives way, with what came last of what is not complete, or else of what
        waits: so nobody can keep others from sending anything.
        """
        self._count(body, size)
        settings = get_settings()
        while self.held > max(settings.max_receiving_bytes, settings.max_body_bytes):
            caller, _ = self._held_by.most_common(1)[0]
            theirs = [each for each in reversed(self._open) if each.caller == caller]
            last = min(theirs, key=lambda each: each.is_complete)
            self._forget(last)
            last.give_up()
            if last is body:
                raise body.refusal()

    def _count(self, body: _Body, size: int) -> None:
        body.held += size
        self.held += size
        self._held_by[body.caller] += size

    def _forget(self, body: _Body) -> None:
        if body in self._open:
            del self._open[body]
            self._count(body, -body.held)
            if not self._held_by[body.caller]:
                del self._held_by[body.caller]


class _Body:
    """A body that is waited for, or waits."""

    __slots__ = ("_end", "_pause", "caller", "clock", "data", "held", "is_complete", "is_given_up")

    clock: asyncio.Timeout

    def __init__(self, caller: str, *, is_complete: bool = False) -> None:
        settings = get_settings()
        self.caller = caller
        self.data = bytearray()
        self.held = 0
        self._pause = settings.body_pause_seconds
        self._end = asyncio.get_running_loop().time() + settings.body_seconds
        self.is_complete = is_complete
        self.is_given_up = False

    def wait(self) -> None:
        """Wait no longer than one may for the next piece."""
        if not self.is_given_up:
            now = asyncio.get_running_loop().time()
            self.clock.reschedule(min(now + self._pause, self._end))

    def give_up(self) -> None:
        """Wait for it no more, and hold nothing of it."""
        self.is_given_up = True
        self.data = bytearray()
        self.clock.reschedule(0)

    def refusal(self) -> Refused:
        """Return what the client is told whose body is given up."""
        if self.is_given_up:
            return refusal(
                503,
                "Too much is being sent at the same time; try again later",
                code=ErrorCode.INTERNAL_ERROR,
                Retry_After=str(RETRY_AFTER_SECONDS),
            )
        settings = get_settings()
        if asyncio.get_running_loop().time() >= self._end:
            return refusal(408, f"The body did not come within {_seconds(settings.body_seconds)}")
        return refusal(408, f"Nothing more came for {_seconds(self._pause)}")


def _seconds(number: float) -> str:
    return f"{number:g} second{'' if number == 1 else 's'}"


def request_bodies() -> RequestBodies:
    """Return those of the present loop."""
    return _by_loop.setdefault(asyncio.get_running_loop(), RequestBodies())


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, RequestBodies] = WeakKeyDictionary()
