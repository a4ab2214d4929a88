"""The legacy era, 2025-03-26 to 2025-11-25: requests of a session, which may need another one.

What happens when a server has forgotten the session, in the order in which it happens:

1. A request is answered 404: it was refused, and nothing of it has run.
2. The session counts as lost. Whoever waits in it has a moment to get what its stream still holds,
   then learns that the outcome is unknown, and is repeated if that is safe.
3. Whoever needs a session waits for the same ``initialize``; there is one, however many wait.
4. What was refused is sent again in the new session, once.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from ..protocol import versions
from ..protocol.messages import (
    Message,
    Notification,
    Request,
    Response,
    encode,
    notification,
)
from .changes import METHODS, Changes
from .endpoint import JSON, Answer, Endpoint, check
from .errors import (
    ClientError,
    NotProcessed,
    OutcomeUnknown,
    RemoteError,
    SessionGone,
    SessionLost,
    UnexpectedAnswer,
)
from .exchange import Exchange, log, only_response, outcome, until_answered
from .handlers import Handlers
from .handshake import initialize
from .limits import Limits
from .listening import Listening
from .questions import Questions
from .server import Server
from .session import Session
from .streams import Cursor, Take, follow
from .tasks import Tasks
from .waiting import Deadline, Scope


class Legacy:
    """Sends requests in a session, and opens another one when the server has forgotten it."""

    def __init__(
        self,
        endpoint: Endpoint,
        handlers: Handlers,
        limits: Limits,
        *,
        revision: versions.Revision,
        info: Mapping[str, Any],
        timeout: float,
    ) -> None:
        self._endpoint = endpoint
        self._handlers = handlers
        self._limits = limits
        self._timeout = timeout
        self._offer = {
            "protocolVersion": revision.name,
            "capabilities": handlers.capabilities(),
            "clientInfo": dict(info),
        }
        self._ids = itertools.count(1)
        self._tasks = Tasks()
        self._questions = Questions(handlers, limits, self._tasks, self._post)
        self._listening = Listening(self, limits, self._tasks)
        self._session: Session | None = None
        self._opening: asyncio.Task[None] | None = None
        self._log_level: str | None = None
        self._closed = False

    @property
    def server(self) -> Server:
        """What the server has said of itself, the last time."""
        assert self._session is not None
        return self._session.server

    # Requests

    async def request(self, exchange: Exchange) -> dict[str, Any]:
        """Send a request and return its result, through the loss of a session if need be."""
        return await until_answered(lambda: self._send(exchange), exchange, self._limits)

    async def _send(self, exchange: Exchange) -> dict[str, Any]:
        return await self._send_in(await self.session(), exchange)

    async def _send_in(self, session: Session, exchange: Exchange) -> dict[str, Any]:
        exchange.renew(self._ids)
        try:
            return outcome(await self._converse(session, exchange))
        except SessionGone:
            self.lose(session)
            raise
        except asyncio.CancelledError:
            self._call_off(session, exchange)
            raise
        finally:
            for question in exchange.questions:
                question.cancel()
            exchange.questions.clear()

    async def _converse(self, session: Session, exchange: Exchange) -> Response:
        cursor = Cursor(self._limits)

        async def take(message: Message) -> Response | None:
            return await self._take(session, message, exchange)

        async with Scope() as scope:
            with session.waiting(exchange, scope) as elsewhere:
                try:
                    response = await self._post_request(session, exchange, take, cursor, elsewhere)
                except OutcomeUnknown:
                    if not cursor.last_event_id:
                        raise
                    response = None
                return response or await self._resume(session, take, cursor)

    async def _post_request(
        self,
        session: Session,
        exchange: Exchange,
        take: Take,
        cursor: Cursor,
        elsewhere: asyncio.Future[Response],
    ) -> Response | None:
        async with self._endpoint.open("POST", session.headers, exchange.body({})) as answer:
            await self._check(session, answer)
            if answer.media_type == JSON:
                return only_response(await answer.message(), exchange)
            if answer.status != 202:
                return await follow(answer, take, cursor)
        # No revision allows this. Yet there are servers that do it, and answer on the session's
        # own stream.
        self._listening.start(session)
        return await elsewhere

    async def _resume(self, session: Session, take: Take, cursor: Cursor) -> Response:
        while cursor.last_event_id and not cursor.exhausted and not session.lost:
            await asyncio.sleep(cursor.pause())
            try:
                response = await self.get(session, take, cursor)
            except SessionGone:
                self.lose(session)
            except (UnexpectedAnswer, RemoteError) as error:
                raise OutcomeUnknown(f"The stream cannot be resumed: {error}") from error
            except (NotProcessed, OutcomeUnknown) as error:
                cursor.defer(error)
            else:
                if response is not None:
                    return response
        raise OutcomeUnknown("The stream ended before the answer, and cannot be resumed")

    async def get(
        self,
        session: Session,
        take: Take,
        cursor: Cursor,
        opened: Callable[[], None] = lambda: None,
    ) -> Response | None:
        """Read a stream by GET: the session's own, or the rest of another one."""
        headers = {**session.headers, **cursor.headers}
        async with self._endpoint.open("GET", headers) as answer:
            await self._check(session, answer)
            opened()
            return await follow(answer, take, cursor)

    async def _check(self, session: Session, answer: Answer) -> None:
        if answer.status == 404 and session.id is not None:
            raise SessionGone
        await check(answer)

    async def _take(
        self, session: Session, message: Message, exchange: Exchange
    ) -> Response | None:
        match message:
            case Response():
                return message if exchange.owns(message) else None
            case Notification() if await exchange.hear(message):
                pass
            case _:
                await self.hear(session, message, exchange)
        return None

    async def hear(
        self, session: Session, message: Message, exchange: Exchange | None = None
    ) -> None:
        """Take what is no answer: a question, a log message, a change."""
        match message:
            case Request():
                await self._questions.take(session, message, exchange)
            case Notification(method="notifications/cancelled"):
                self._questions.call_off(session, message)
            case Notification(method="notifications/message"):
                await self._handlers.hear_log(message.params)
            case Notification(method=method) if method in METHODS:
                self._listening.hear(message)

    def _call_off(self, session: Session, exchange: Exchange) -> None:
        """Tell the server that nobody waits any more.

        2025-11-25, basic/utilities/cancellation: a closed connection does not say so.
        """
        if session.lost or self._closed:
            return
        params = {"requestId": exchange.id, "reason": "Nobody waits for the answer any more"}
        self._tasks.start(self._try_to_notify(session, "notifications/cancelled", params))

    async def _try_to_notify(self, session: Session, method: str, params: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(self._limits.close_timeout):
                await self._post(session, notification(Notification(method, params)))
        except (ClientError, SessionGone, TimeoutError) as error:
            log.info("%s did not reach the server: %s", method, error)

    async def _post(self, session: Session, message: dict[str, Any]) -> None:
        """Send what has no answer."""
        async with self._endpoint.open("POST", session.headers, encode(message)) as answer:
            try:
                await self._check(session, answer)
            except SessionGone:
                self.lose(session)
                raise

    # Sessions

    async def session(self) -> Session:
        """Return the session; whoever finds none, or a lost one, waits for the same new one."""
        session = self._session
        if session is not None and not session.lost:
            self._listening.revive(session)
            return session
        if self._opening is None or self._opening.done():
            self._opening = self._tasks.start(self._open())
        try:
            await asyncio.shield(self._opening)
        except ClientError as error:
            if session is None:
                raise
            raise SessionLost(f"The session was lost, and there is no new one: {error}") from error
        assert self._session is not None
        return self._session

    def lose(self, session: Session) -> None:
        """Note that the server has forgotten a session."""
        if not session.lost:
            log.info("The server has forgotten the session; opening a new one")
            session.lose(self._limits.drain)
            self._listening.lost()

    async def is_alive(self, session: Session) -> bool:
        """Return whether the server still knows a session."""
        try:
            async with Deadline("ping", self._timeout, self._timeout) as deadline:
                await self._send_in(session, Exchange("ping", {}, deadline))
        except SessionGone:
            return False
        except ClientError as error:
            log.debug("The ping was not answered", exc_info=error)
        return True

    async def _open(self) -> None:
        deadline = Deadline("initialize", self._timeout, self._limits.max_timeout)
        async with deadline:
            # Repeating it is safe: what it leaves behind is a session that nobody uses.
            exchange = Exchange("initialize", self._offer, deadline, safe=True)
            session = await until_answered(
                lambda: initialize(self._endpoint, exchange, self._ids), exchange, self._limits
            )
            try:
                await self._post(session, notification(Notification("notifications/initialized")))
                await self._restore(session, deadline)
            except SessionGone:
                raise SessionLost("The server forgot the session at once") from None
            self._session = session

    async def _restore(self, session: Session, deadline: Deadline) -> None:
        """Ask the new session for what the old one was asked for."""
        wanted: list[tuple[str, dict[str, Any]]] = []
        if self._log_level is not None:
            wanted.append(("logging/setLevel", {"level": self._log_level}))
        wanted += [("resources/subscribe", {"uri": uri}) for uri in self._listening.uris]
        for method, params in wanted:
            try:
                await self._send_in(session, Exchange(method, params, deadline))
            except RemoteError as error:
                log.warning("The new session refused %s: %s", method, error)
        if self._handlers.any or self._listening.anybody:
            self._listening.start(session, gap=self._listening.anybody)

    # What the era does in its own way

    async def set_log_level(self, exchange: Exchange, level: str) -> None:
        """Tell the server from which level on to send log messages."""
        await self.request(exchange)
        self._log_level = level

    async def ping(self, exchange: Exchange) -> None:
        """See that the server answers."""
        await self.request(exchange)

    async def listen(self, changes: Changes, deadline: Deadline) -> None:
        """Begin to listen, on the session's own stream."""
        await self._listening.add(changes)
        for uri in changes.wanted.uris:
            method = "resources/subscribe"
            await self.request(Exchange(method, {"uri": uri}, deadline, safe=True))
            self._listening.subscribed(uri)

    async def unlisten(self, changes: Changes, deadline: Deadline) -> None:
        """End that, and the subscriptions that nobody else has."""
        for uri in self._listening.remove(changes):
            method = "resources/unsubscribe"
            await self.request(Exchange(method, {"uri": uri}, deadline, safe=True))

    async def close(self) -> None:
        """End the session at the server, and what runs in the background."""
        self._closed = True
        session = self._session
        if session is not None and session.stream is not None:
            session.stream.cancel()
        await self._tasks.settle(self._limits.close_timeout / 2)
        if session is None or session.lost or session.id is None:
            return
        try:
            async with asyncio.timeout(self._limits.close_timeout / 2):
                async with self._endpoint.open("DELETE", session.headers):
                    pass
        except (ClientError, TimeoutError) as error:
            log.info("The end of the session did not reach the server: %s", error)
