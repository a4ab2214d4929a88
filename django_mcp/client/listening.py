"""The legacy session's own stream, and whoever listens there for changes.

2025-11-25, basic/transports, "Listening for Messages from the Server". It is read only where
somebody wants to hear something: a client without handlers and listeners asks for none.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from ..protocol.messages import Message, Notification, Response
from .changes import Changes
from .errors import (
    ClientError,
    NotProcessed,
    OutcomeUnknown,
    SessionGone,
    UnsupportedServer,
)
from .exchange import log
from .limits import Limits
from .session import Session
from .streams import Cursor, Take
from .tasks import Tasks


class Port(Protocol):
    """What this needs of the era."""

    async def session(self) -> Session:
        """Return the session, a new one if need be."""

    async def get(
        self, session: Session, take: Take, cursor: Cursor, opened: Callable[[], None]
    ) -> Response | None:
        """Read a stream by GET."""

    async def hear(self, session: Session, message: Message) -> None:
        """Take what is no answer."""

    async def is_alive(self, session: Session) -> bool:
        """Return whether the server still knows a session."""

    def lose(self, session: Session) -> None:
        """Note that the server has forgotten a session."""


class Listening:
    """Reads the stream of whichever session there is, and tells listeners of changes."""

    def __init__(self, port: Port, limits: Limits, tasks: Tasks) -> None:
        self._port = port
        self._limits = limits
        self._tasks = tasks
        self._listeners: set[Changes] = set()
        self._subscriptions: Counter[str] = Counter()
        self._losses = 0

    @property
    def anybody(self) -> bool:
        """Whether somebody listens for changes."""
        return bool(self._listeners)

    @property
    def uris(self) -> list[str]:
        """The resources to which somebody has subscribed."""
        return [uri for uri, count in self._subscriptions.items() if count > 0]

    async def add(self, changes: Changes) -> None:
        """Let somebody listen; returns when the stream is open, so that nothing is missed."""
        session = await self._open_stream()
        if session.lost:
            session = await self._open_stream()
        if session.stream is None or session.stream.done():
            raise UnsupportedServer("The server has no stream on which it would tell of changes")
        self._listeners.add(changes)

    async def _open_stream(self) -> Session:
        session = await self._port.session()
        self.start(session)
        await session.streaming.wait()
        return session

    def subscribed(self, uri: str) -> None:
        """Count a subscription, which every new session has to have as well."""
        self._subscriptions[uri] += 1

    def remove(self, changes: Changes) -> list[str]:
        """Let somebody go; return the resources in which nobody is interested any more."""
        if changes not in self._listeners:
            return []
        self._listeners.remove(changes)
        self._subscriptions.subtract(changes.wanted.uris)
        return [uri for uri in changes.wanted.uris if self._subscriptions[uri] <= 0]

    def hear(self, notification: Notification) -> None:
        """Tell everybody."""
        for changes in self._listeners:
            changes.hear(notification)

    def start(self, session: Session, *, gap: bool = False) -> None:
        """Read the session's own stream; with ``gap``, something may have been missed before."""
        if session.stream is None or session.stream.done():
            session.streaming.clear()
            session.stream = self._tasks.start(self._read(session, gap=gap))

    def revive(self, session: Session) -> None:
        """Ask for the stream again, after an outage that was longer than the attempts."""
        stream = session.stream
        if stream is not None and stream.done() and not session.streamless:
            self.start(session, gap=True)

    def lost(self) -> None:
        """Have a new session opened where somebody listens, though nobody calls."""
        if self._listeners:
            self._tasks.start(self._reopen())

    async def _reopen(self) -> None:
        self._losses += 1
        if self._losses > self._limits.reconnects:
            self._fail(OutcomeUnknown("The server keeps forgetting the session"))
            return
        if self._losses > 1:
            await asyncio.sleep(self._limits.pause(self._losses))
        try:
            await self._port.session()
        except Exception as error:
            self._fail(error)

    async def _read(self, session: Session, *, gap: bool) -> None:
        cursor = Cursor(self._limits)
        failure: Exception | None = None

        def opened() -> None:
            nonlocal gap
            session.streaming.set()
            if gap:
                self._missed()
            gap = False

        async def take(message: Message) -> Response | None:
            await self._take(session, message)
            return None

        try:
            while not cursor.exhausted and not session.lost:
                failure = await self._read_once(session, take, cursor, opened)
                if failure is not None and not isinstance(failure, NotProcessed | OutcomeUnknown):
                    if not cursor.last_event_id:
                        session.streamless = True
                        break
                    # It cannot be resumed there. What it held is lost; the next one is anew.
                    cursor.last_event_id = ""
                gap = gap or not cursor.last_event_id
                await asyncio.sleep(cursor.pause())
        finally:
            session.streaming.set()
        if not session.lost:
            self._fail(failure or OutcomeUnknown("The server keeps closing the stream"))

    async def _read_once(
        self, session: Session, take: Take, cursor: Cursor, opened: Callable[[], None]
    ) -> Exception | None:
        try:
            await self._port.get(session, take, cursor, opened)
        except SessionGone:
            if not session.streaming.is_set() and await self._port.is_alive(session):
                # Not every server that has no such stream says so by 405.
                return UnsupportedServer("The server has no stream of its own")
            self._port.lose(session)
        except ClientError as error:
            cursor.defer(error)
            return error
        except Exception as error:
            # Of the function that gives the token, for example. Whoever listens has to know.
            return error
        return None

    async def _take(self, session: Session, message: Message) -> None:
        self._losses = 0
        match message:
            case Response():
                session.deliver(message)
            case Notification(method="notifications/progress"):
                exchange = session.exchange_of(message.params.get("progressToken"))
                if exchange is not None:
                    await exchange.hear(message)
            case _:
                await self._port.hear(session, message)

    def _missed(self) -> None:
        for changes in self._listeners:
            changes.missed()

    def _fail(self, error: Exception) -> None:
        # A server need not have such a stream. That matters to those who listen, and is told them.
        log.info("The session's own stream has ended: %s", error)
        for changes in self._listeners:
            changes.fail(error)
