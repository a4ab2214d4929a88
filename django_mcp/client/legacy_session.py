"""A session of the legacy era: the requests in it, its own stream, and how it ends.

2025-11-25, basic/transports, "Session Management": a server may forget a session at any time, and
answers 404 from then on. What was refused so has not run. Whoever waits in the session has a moment
to get what its streams still hold, and then learns that the outcome is unknown.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from ..protocol import headers as names
from ..protocol.messages import Message, Notification, Request, Response, encode, notification
from .bounds import CancelScope, Deadline, Limits
from .catalog import ServerDescription
from .change_iterator import CHANGE_METHODS, ChangeListeners
from .errors import (
    ClientError,
    NotProcessed,
    OutcomeUnknown,
    SessionGone,
    UnexpectedAnswer,
    UnsupportedServer,
)
from .handlers import Handlers, ServerRequests
from .outgoing_request import (
    OutgoingRequest,
    StreamPosition,
    only_response,
    result_of,
    stream_messages,
)
from .remote_endpoint import JSON, RemoteEndpoint, RemoteResponse, check_status
from .user_functions import BackgroundTasks

log = logging.getLogger("django_mcp.client")

# 2025-11-25, basic/transports, "Session Management": visible ASCII.
_SESSION_ID: Final = re.compile(r"[\x21-\x7e]{1,1024}")


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What outlasts a session: the next one of the same client has it too."""

    endpoint: RemoteEndpoint
    handlers: Handlers
    limits: Limits
    tasks: BackgroundTasks
    listeners: ChangeListeners
    ids: itertools.count[int]
    slots: asyncio.Semaphore
    """For requests of the server that are answered at once."""
    timeout: float
    """Seconds for a request that the client sends for itself."""
    on_lost: Callable[[LegacySession], None]
    """Called once when the server has forgotten a session."""


class LegacySession:
    """One session, from ``initialize`` on. Nothing of it is ever carried over into the next."""

    def __init__(
        self,
        session_id: str | None,
        description: ServerDescription,
        context: SessionContext,
    ) -> None:
        if session_id is not None and not _SESSION_ID.fullmatch(session_id):
            raise UnexpectedAnswer("The server's session id has characters that none may have")
        self.id = session_id
        self.description = description
        self.is_lost = False
        self.stream = SessionStream(self, context)
        self._endpoint = context.endpoint
        self._handlers = context.handlers
        self._limits = context.limits
        self._tasks = context.tasks
        self._listeners = context.listeners
        self._ids = context.ids
        self._timeout = context.timeout
        self._on_lost = context.on_lost
        self._scopes: set[CancelScope] = set()
        self._pending: dict[int, tuple[OutgoingRequest, asyncio.Future[Response]]] = {}
        self._server_requests = ServerRequests(
            self._handlers, self._limits, self._tasks, context.slots, self.post
        )

    @property
    def headers(self) -> dict[str, str]:
        """What every HTTP request of the session carries."""
        version = {names.PROTOCOL_VERSION: self.description.revision.name}
        return version if self.id is None else {**version, names.SESSION_ID: self.id}

    # Requests

    async def send(self, request: OutgoingRequest) -> dict[str, Any]:
        """Send a request once, follow its stream through broken connections, return its result.

        Raises :class:`SessionGone` if the session is lost and the request has not run.
        """
        request.renew(self._ids)
        try:
            return result_of(await self._response(request))
        except SessionGone:
            self.mark_lost()
            raise
        except asyncio.CancelledError:
            self._notify_cancelled(request)
            raise
        finally:
            for task in request.server_requests:
                task.cancel()
            request.server_requests.clear()

    async def _response(self, request: OutgoingRequest) -> Response:
        position = StreamPosition(self._limits)
        async with CancelScope() as scope:
            with self._waiting(request, scope) as on_session_stream:
                try:
                    response = await self._post_request(request, position, on_session_stream)
                except OutcomeUnknown:
                    if not position.last_event_id:
                        raise
                    response = None
                return response or await self._resume(request, position)

    async def _post_request(
        self,
        request: OutgoingRequest,
        position: StreamPosition,
        on_session_stream: asyncio.Future[Response],
    ) -> Response | None:
        async with self._endpoint.open("POST", self.headers, request.body({})) as response:
            await self._check(response)
            if response.media_type == JSON:
                return only_response(await response.message(), request)
            if response.status != 202:
                async with aclosing(stream_messages(response, position)) as messages:
                    return await self._response_among(messages, request)
        # No revision allows this. Yet there are servers that do it, and answer on the session's
        # own stream.
        self.stream.start()
        return await on_session_stream

    async def _resume(self, request: OutgoingRequest, position: StreamPosition) -> Response:
        last: ClientError | None = None
        while position.last_event_id and not position.exhausted and not self.is_lost:
            await asyncio.sleep(position.pause())
            try:
                async with self.open_stream(position) as messages:
                    response = await self._response_among(messages, request)
            except SessionGone:
                self.mark_lost()
            except (NotProcessed, OutcomeUnknown) as error:
                position.note_failure(error)
                last = error
            except Exception as error:
                # Also what a login raises: without it the call would seem not to have run.
                raise OutcomeUnknown(f"The stream cannot be resumed: {error}") from error
            else:
                if response is not None:
                    return response
        raise OutcomeUnknown("The stream ended before the answer, and cannot be resumed") from last

    async def _response_among(
        self, messages: AsyncGenerator[Message], request: OutgoingRequest
    ) -> Response | None:
        """Read messages until the response to ``request``; ``None`` if they end before."""
        async for message in messages:
            match message:
                case Response():
                    if request.is_answered_by(message):
                        return message
                case Notification() if await request.handle_progress(message):
                    pass
                case _:
                    await self._receive(message, request)
        return None

    def _notify_cancelled(self, request: OutgoingRequest) -> None:
        """Send ``notifications/cancelled``: nobody waits for the response any more.

        2025-11-25, basic/utilities/cancellation: a closed connection does not say so.
        """
        if self.is_lost or self._tasks.is_closing:
            return
        params = {"requestId": request.id, "reason": "Nobody waits for the answer any more"}
        self._tasks.start(self._try_to_notify("notifications/cancelled", params))

    async def _try_to_notify(self, method: str, params: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(self._limits.close_timeout):
                await self.notify(method, params)
        except (ClientError, SessionGone, TimeoutError) as error:
            log.info("%s did not reach the server: %s", method, error)

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        await self.post(notification(Notification(method, params or {})))

    async def post(self, message: Mapping[str, Any]) -> None:
        """Send what has no response; raises :class:`SessionGone` if the session is lost."""
        if self.is_lost:
            raise SessionGone
        async with self._endpoint.open("POST", self.headers, encode(message)) as response:
            try:
                await self._check(response)
            except SessionGone:
                self.mark_lost()
                raise

    @asynccontextmanager
    async def open_stream(self, position: StreamPosition) -> AsyncIterator[AsyncGenerator[Message]]:
        """Open a stream by GET, and give its messages: the session's own, or the rest of another.

        Raises :class:`SessionGone` if the server no longer has what was asked for.
        """
        headers = {**self.headers, **position.headers}
        async with self._endpoint.open("GET", headers) as response:
            await self._check(response)
            async with aclosing(stream_messages(response, position)) as messages:
                yield messages

    async def _check(self, response: RemoteResponse) -> None:
        if response.status == 404 and self.id is not None:
            raise SessionGone
        await check_status(response)

    # What comes from the server

    async def receive(self, message: Message) -> None:
        """Handle a message of the session's own stream."""
        match message:
            case Response():
                self._deliver(message)
            case Notification(method="notifications/progress"):
                request = self._request_of(message.params.get("progressToken"))
                if request is not None:
                    await request.handle_progress(message)
            case _:
                await self._receive(message, None)

    async def _receive(self, message: Message, within: OutgoingRequest | None) -> None:
        match message:
            case Request():
                await self._server_requests.start(message, within)
            case Notification(method="notifications/cancelled"):
                self._server_requests.cancel(message)
            case Notification(method="notifications/message"):
                await self._handlers.handle_log(message.params)
            case Notification(method=method) if method in CHANGE_METHODS:
                self._listeners.publish(message)

    def _deliver(self, response: Response) -> None:
        known = None if isinstance(response.id, str) else self._pending.get(response.id)
        if known is None or known[1].done():
            log.warning("Dropped a response to %r, for which nobody waits", response.id)
            return
        known[1].set_result(response)

    def _request_of(self, token: object) -> OutgoingRequest | None:
        known = self._pending.get(token) if isinstance(token, int) else None
        return known[0] if known else None

    # Its end

    @contextmanager
    def _waiting(
        self, request: OutgoingRequest, scope: CancelScope
    ) -> Iterator[asyncio.Future[Response]]:
        """Count a request among those that wait; gives its response on the session's stream."""
        response: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._scopes.add(scope)
        self._pending[request.id] = request, response
        try:
            yield response
        finally:
            self._scopes.discard(scope)
            del self._pending[request.id]

    def mark_lost(self) -> None:
        """Note that the server has forgotten the session.

        A stream that is open may hold what somebody waits for, and so it is not cut off: but nobody
        waits for ever for a server that has forgotten them.
        """
        if self.is_lost:
            return
        log.info("The server has forgotten the session")
        self.is_lost = True
        self._end_waiting(self._limits.drain)
        self._on_lost(self)

    def _end_waiting(self, seconds: float) -> None:
        """End what waits in the session, in so many seconds."""
        asyncio.get_running_loop().call_later(seconds, self.stream.cancel)
        for scope in self._scopes:
            scope.end(OutcomeUnknown("The session ended while the request ran"), after=seconds)

    async def answers_ping(self) -> bool:
        """Return whether the server still knows the session."""
        try:
            async with Deadline("ping", self._timeout, self._timeout) as deadline:
                await self.send(OutgoingRequest("ping", {}, deadline))
        except SessionGone:
            return False
        except ClientError as error:
            log.debug("The ping was not answered", exc_info=error)
        return True

    async def delete(self) -> None:
        """End the session at the server, if it has one."""
        if self.is_lost or self.id is None:
            return
        async with self._endpoint.open("DELETE", self.headers):
            pass


class SessionStream:
    """The session's own stream.

    2025-11-25, basic/transports, "Listening for Messages from the Server". It is read only where
    somebody needs it: a client without handlers and listeners asks for none.
    """

    def __init__(self, session: LegacySession, context: SessionContext) -> None:
        self.opened = asyncio.Event()
        """Set while the stream is open, or when it is clear that it never will be."""
        self.has_received = False
        """Whether a message has come."""
        self._session = session
        self._limits = context.limits
        self._tasks = context.tasks
        self._listeners = context.listeners
        self._task: asyncio.Task[None] | None = None
        self._is_missing = False
        self._has_gap = False

    @property
    def is_running(self) -> bool:
        """Whether the stream is being read, or asked for."""
        return self._task is not None and not self._task.done()

    def start(self, *, gap: bool = False) -> None:
        """Read the stream; with ``gap``, something may have been missed before."""
        if not self.is_running:
            self.opened.clear()
            self._has_gap = gap
            self._task = self._tasks.start(self._read())

    def restart(self) -> None:
        """Ask for the stream again, after an outage that was longer than the attempts."""
        if self._task is not None and self._task.done() and not self._is_missing:
            self.start(gap=True)

    def cancel(self) -> None:
        """Read no further."""
        if self._task is not None:
            self._task.cancel()

    async def _read(self) -> None:
        position = StreamPosition(self._limits)
        failure: Exception | None = None
        try:
            while not position.exhausted and not self._session.is_lost:
                failure = await self._read_once(position)
                if failure is not None and not isinstance(failure, NotProcessed | OutcomeUnknown):
                    if not position.last_event_id:
                        self._is_missing = True
                        break
                    # It cannot be resumed there. What it held is lost; the next one is anew.
                    position.last_event_id = ""
                self._has_gap = self._has_gap or not position.last_event_id
                await asyncio.sleep(position.pause())
        finally:
            self.opened.set()
        if not self._session.is_lost:
            # A server need not have such a stream. That matters to those who listen.
            reason = failure or OutcomeUnknown("The server keeps closing the stream")
            log.info("The session's own stream has ended: %s", reason)
            self._listeners.fail(reason)

    async def _read_once(self, position: StreamPosition) -> Exception | None:
        try:
            async with self._session.open_stream(position) as messages:
                self._on_open()
                async for message in messages:
                    self.has_received = True
                    await self._session.receive(message)
        except SessionGone:
            if not self.opened.is_set() and await self._session.answers_ping():
                # Not every server that has no such stream says so by 405.
                return UnsupportedServer("The server has no stream of its own")
            self._session.mark_lost()
        except ClientError as error:
            position.note_failure(error)
            return error
        except Exception as error:
            # Of the function that gives the token, for example. Whoever listens has to know.
            return error
        return None

    def _on_open(self) -> None:
        self.opened.set()
        if self._has_gap:
            self._listeners.publish_missed()
        self._has_gap = False
