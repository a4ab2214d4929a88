"""The legacy era, 2025-03-26 to 2025-11-25: requests of a session, which may need another one.

What happens when a server has forgotten the session, in the order in which it happens:

1. A request is answered 404: it was refused, and nothing of it has run.
2. The session is marked as lost. Requests that still run in it get what their streams hold, or end
   with their outcome unknown, and are repeated if that is safe.
3. Whoever needs a session waits for the same ``initialize``; there is one, however many wait.
4. What was refused is sent again in the new session, once.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from mcp_types import InitializeResult

from ..protocol import headers as names
from ..protocol import versions
from ..protocol.messages import Response
from .bounds import Deadline, Limits
from .catalog import ServerDescription, validated
from .change_iterator import ChangeListeners, Changes
from .errors import (
    ClientError,
    OutcomeUnknown,
    RemoteError,
    SessionGone,
    SessionLost,
    UnsupportedServer,
)
from .handlers import Handlers
from .legacy_session import LegacySession, SessionContext
from .outgoing_request import (
    OutgoingRequest,
    only_response,
    result_of,
    send_until_answered,
    stream_messages,
)
from .remote_endpoint import JSON, RemoteEndpoint, RemoteResponse, check_status
from .user_functions import BackgroundTasks

log = logging.getLogger("django_mcp.client")


class LegacyEra:
    """Sends requests in a session, and opens another one when the server has forgotten it."""

    def __init__(
        self,
        endpoint: RemoteEndpoint,
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
        self._initialize_params = {
            "protocolVersion": revision.name,
            "capabilities": handlers.capabilities(),
            "clientInfo": dict(info),
        }
        self._ids = itertools.count(1)
        self._tasks = BackgroundTasks()
        self._listeners = ChangeListeners()
        self._session_context = SessionContext(
            endpoint,
            handlers,
            limits,
            self._tasks,
            self._listeners,
            self._ids,
            asyncio.Semaphore(limits.questions),
            timeout,
            on_lost=self._on_lost,
        )
        self._session: LegacySession | None = None
        self._opening: asyncio.Task[None] | None = None
        self._losses = 0
        """Sessions lost in a row without a message on their own streams."""
        self._log_level: str | None = None

    @property
    def description(self) -> ServerDescription:
        """What the server has said of itself, the last time."""
        assert self._session is not None
        return self._session.description

    # Requests

    async def request(self, request: OutgoingRequest) -> dict[str, Any]:
        """Send a request and return its result, through the loss of a session if need be."""
        return await send_until_answered(lambda: self._send(request), request, self._limits)

    async def _send(self, request: OutgoingRequest) -> dict[str, Any]:
        session = await self.session()
        return await session.send(request)

    async def set_log_level(self, request: OutgoingRequest, level: str) -> None:
        """Ask for log messages from ``level`` on."""
        await self.request(request)
        self._log_level = level

    async def ping(self, request: OutgoingRequest) -> None:
        """See that the server answers."""
        await self.request(request)

    # Sessions

    async def session(self) -> LegacySession:
        """Return the session; whoever finds none, or a lost one, waits for the same new one.

        Raises :class:`SessionLost` if there was one and no other can be opened.
        """
        session = self._session
        if session is not None and not session.is_lost:
            session.stream.restart()
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

    async def _open(self) -> None:
        deadline = Deadline("initialize", self._timeout, self._limits.max_timeout)
        async with deadline:
            # Repeating it is safe: what it leaves behind is a session that nobody uses.
            request = OutgoingRequest(
                "initialize", self._initialize_params, deadline, is_repeatable=True
            )
            session = await send_until_answered(
                lambda: self._initialize(request), request, self._limits
            )
            try:
                await session.notify("notifications/initialized")
                await self._restore(session, deadline)
            except SessionGone:
                raise SessionLost("The server forgot the session at once") from None
            self._session = session

    async def _initialize(self, request: OutgoingRequest) -> LegacySession:
        """Send ``initialize``, and return the session that the server has opened.

        2025-11-25, basic/lifecycle, "Initialization", and basic/transports, "Session Management".
        """
        request.renew(self._ids)
        async with self._endpoint.open("POST", {}, request.body({})) as http_response:
            await check_status(http_response)
            response = await _response_to(request, http_response)
            session_id = http_response.header(names.SESSION_ID)
        description = _description(validated(InitializeResult, result_of(response)))
        return LegacySession(session_id, description, self._session_context)

    async def _restore(self, session: LegacySession, deadline: Deadline) -> None:
        """Ask the new session for what the old one was asked for."""
        wanted: list[tuple[str, dict[str, Any]]] = []
        if self._log_level is not None:
            wanted.append(("logging/setLevel", {"level": self._log_level}))
        wanted += [("resources/subscribe", {"uri": uri}) for uri in self._listeners.uris]
        for method, params in wanted:
            try:
                await session.send(OutgoingRequest(method, params, deadline))
            except RemoteError as error:
                log.warning("The new session refused %s: %s", method, error)
        if self._handlers.any or self._listeners:
            session.stream.start(gap=bool(self._listeners))

    def _on_lost(self, session: LegacySession) -> None:
        if session.stream.has_received:
            self._losses = 0
        if self._listeners:
            self._tasks.start(self._reopen())

    async def _reopen(self) -> None:
        """Open a new session where somebody listens, though nobody calls."""
        self._losses += 1
        if self._losses > self._limits.reconnects:
            self._listeners.fail(OutcomeUnknown("The server keeps forgetting the session"))
            return
        if self._losses > 1:
            await asyncio.sleep(self._limits.pause(self._losses))
        try:
            await self.session()
        except Exception as error:
            self._listeners.fail(error)

    # Changes

    async def listen(self, changes: Changes, deadline: Deadline) -> None:
        """Begin to listen; returns when the stream is open, so that nothing is missed.

        Raises :class:`UnsupportedServer` if the server has no stream for that.
        """
        session = await self._open_stream()
        if session.is_lost:
            session = await self._open_stream()
        if not session.stream.is_running:
            raise UnsupportedServer("The server has no stream for notifications of changes")
        self._listeners.add(changes)
        for uri in changes.wanted.uris:
            method = "resources/subscribe"
            await self.request(OutgoingRequest(method, {"uri": uri}, deadline, is_repeatable=True))
            self._listeners.subscribe(uri)

    async def _open_stream(self) -> LegacySession:
        session = await self.session()
        session.stream.start()
        await session.stream.opened.wait()
        return session

    async def stop_listening(self, changes: Changes, deadline: Deadline) -> None:
        """End that, and the subscriptions that nobody else has."""
        for uri in self._listeners.remove(changes):
            method = "resources/unsubscribe"
            await self.request(OutgoingRequest(method, {"uri": uri}, deadline, is_repeatable=True))

    # The end

    async def close(self) -> None:
        """End the session at the server, and what runs in the background."""
        if self._session is not None:
            self._session.stream.cancel()
        await self._tasks.finish(self._limits.close_timeout / 2)
        if self._session is None:
            return
        try:
            async with asyncio.timeout(self._limits.close_timeout / 2):
                await self._session.delete()
        except (ClientError, TimeoutError) as error:
            log.info("The end of the session did not reach the server: %s", error)


async def _response_to(request: OutgoingRequest, http_response: RemoteResponse) -> Response:
    if http_response.media_type == JSON:
        return only_response(await http_response.message(), request)
    async with aclosing(stream_messages(http_response)) as messages:
        async for message in messages:
            if isinstance(message, Response) and request.is_answered_by(message):
                return message
    raise OutcomeUnknown("The stream ended before the answer to initialize")


def _description(result: InitializeResult) -> ServerDescription:
    revision = versions.BY_NAME.get(result.protocol_version)
    if revision is None or revision.modern:
        raise UnsupportedServer(
            f"The server wants revision {result.protocol_version[:40]!r}, which this client does"
            " not speak with sessions"
        )
    return ServerDescription(revision, result.capabilities, result.server_info, result.instructions)
