"""The modern era, 2026-07-28: each request says all, and a stream that ends is a call that ends."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, Final

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    ServerCapabilities,
)

from ..protocol import headers as names
from ..protocol.errors import MCPError
from ..protocol.messages import Message, Notification, Request, Response, encode
from ..protocol.versions import Revision
from .bounds import Deadline, Limits
from .catalog import ServerDescription
from .change_iterator import Changes
from .errors import (
    NotProcessed,
    OutcomeUnknown,
    TooManyQuestions,
    UnexpectedAnswer,
    UnsupportedServer,
)
from .handlers import Handlers
from .outgoing_request import (
    OutgoingRequest,
    only_response,
    result_of,
    send_until_answered,
    stream_messages,
    valid_messages,
)
from .remote_endpoint import JSON, RemoteEndpoint, RemoteResponse, check_status
from .user_functions import BackgroundTasks

log = logging.getLogger("django_mcp.client")

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

Messages = AsyncGenerator[Message]


class ModernEra:
    """Sends requests that stand alone."""

    def __init__(
        self,
        endpoint: RemoteEndpoint,
        handlers: Handlers,
        limits: Limits,
        *,
        revision: Revision,
        info: Mapping[str, Any],
    ) -> None:
        self.description = ServerDescription(revision, ServerCapabilities())
        self._endpoint = endpoint
        self._handlers = handlers
        self._limits = limits
        self._ids = itertools.count(1)
        self._tasks = BackgroundTasks()
        self._subscriptions: dict[Changes, asyncio.Task[None]] = {}
        self._meta: dict[str, Any] = {
            PROTOCOL_VERSION_META_KEY: revision.name,
            CLIENT_INFO_META_KEY: dict(info),
            CLIENT_CAPABILITIES_META_KEY: handlers.capabilities(),
        }

    # Requests

    async def request(self, request: OutgoingRequest) -> dict[str, Any]:
        """Send a request, answer the questions with which it comes back, and return its result.

        2026-07-28, basic/patterns/mrtr, "Client Requirements": each round is a request of its own,
        with the answers and with the state that the server gave, and with nothing else of earlier
        rounds.
        """
        first = request.params
        for _ in range(self._limits.rounds + 1):
            result = await send_until_answered(lambda: self._send(request), request, self._limits)
            kind = result.get("resultType", "complete")
            if kind == "complete":
                return result
            if kind != "input_required":
                raise UnexpectedAnswer(f"The server sent an unknown kind of result: {kind!r}")
            request.params = {**first, **await self._answers(request, result)}
        raise TooManyQuestions(f"The server has asked {self._limits.rounds} times, and asks again")

    async def _send(self, request: OutgoingRequest) -> dict[str, Any]:
        request.renew(self._ids)
        body = request.body(self._meta)
        headers = {**self._headers(request.method, request.params), **request.headers}
        async with self._endpoint.open("POST", headers, body) as http_response:
            await check_status(http_response)
            if http_response.media_type == JSON:
                return result_of(only_response(await http_response.message(), request))
            async with aclosing(stream_messages(http_response)) as messages:
                async for message in messages:
                    if isinstance(message, Response) and request.is_answered_by(message):
                        return result_of(message)
                    await self._receive(message, request)
        raise OutcomeUnknown("The stream ended before the answer; it cannot be resumed")

    async def _receive(self, message: Message, request: OutgoingRequest) -> None:
        match message:
            case Notification() if await request.handle_progress(message):
                pass
            case Notification(method="notifications/message"):
                with request.deadline.paused():
                    await self._handlers.handle_log(message.params)
            case Request():
                log.warning("Ignored %s: this revision has no requests of servers", message.method)

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """Return what 2026-07-28, basic/transports/streamable-http, "Request Metadata", asks."""
        given = {
            names.PROTOCOL_VERSION: self._meta[PROTOCOL_VERSION_META_KEY],
            names.METHOD: method,
        }
        source = names.NAME_SOURCES.get(method)
        return {**given, names.NAME: names.encode(params[source])} if source else given

    async def set_log_level(self, request: OutgoingRequest, level: str) -> None:
        """Ask for log messages with every request from now on."""
        self._meta[LOG_LEVEL_META_KEY] = level

    async def ping(self, request: OutgoingRequest) -> None:
        """See that the server answers; this era has no other request for that."""
        request.method = "server/discover"
        await self.request(request)

    # Questions

    async def _answers(self, request: OutgoingRequest, result: Mapping[str, Any]) -> dict[str, Any]:
        questions, state = result.get("inputRequests"), result.get("requestState")
        if not isinstance(questions or {}, dict) or not isinstance(state, str | None):
            raise UnexpectedAnswer("The server's questions have the wrong shape")
        given: dict[str, Any] = {}
        if questions:
            self._check_number(questions)
            with request.deadline.paused():
                answers = {key: await self._answer(each) for key, each in questions.items()}
            given["inputResponses"] = answers
        if state is not None:
            given["requestState"] = state
        return given

    def _check_number(self, questions: Mapping[str, Any]) -> None:
        if len(questions) > self._limits.questions:
            raise TooManyQuestions(
                f"The server asks {len(questions)} questions at once; the client takes"
                f" {self._limits.questions}"
            )

    async def _answer(self, question: Any) -> dict[str, Any]:
        method = question.get("method") if isinstance(question, dict) else None
        params = question.get("params") or {} if isinstance(question, dict) else None
        if not isinstance(method, str) or not isinstance(params, dict):
            raise UnexpectedAnswer("The server's question has the wrong shape")
        try:
            return await self._handlers.answer(method, params)
        except MCPError as error:
            # This era has no error response to a question. A failing function ends the call.
            raise UnexpectedAnswer(f"A question cannot be answered: {error.message}") from error

    # Changes

    async def listen(self, changes: Changes, deadline: Deadline) -> None:
        """Begin to listen; returns when the server has acknowledged it.

        Raises what kept it from that: :class:`UnsupportedServer`, for example.
        """
        subscription = ChangeSubscription(self._open_listen, changes, self._limits)
        self._subscriptions[changes] = self._tasks.start(subscription.run())
        try:
            await subscription.begun.wait()
        except BaseException:
            await self.stop_listening(changes, deadline)
            raise
        subscription.check()

    async def stop_listening(self, changes: Changes, deadline: Deadline) -> None:
        """Close the stream, which ends the subscription."""
        task = self._subscriptions.pop(changes, None)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    @asynccontextmanager
    async def _open_listen(self, changes: Changes) -> AsyncIterator[Messages]:
        method = "subscriptions/listen"
        params = {"notifications": changes.wanted.notifications(), "_meta": self._meta}
        envelope = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        headers = self._headers(method, params)
        async with self._endpoint.open("POST", headers, encode(envelope)) as http_response:
            await check_status(http_response)
            async with aclosing(_messages_of(http_response)) as messages:
                yield messages

    async def close(self) -> None:
        """End what runs in the background."""
        await self._tasks.cancel()


async def _messages_of(http_response: RemoteResponse) -> Messages:
    if http_response.media_type == JSON:
        for message in valid_messages(await http_response.message()):
            yield message
        return
    async with aclosing(stream_messages(http_response)) as messages:
        async for message in messages:
            yield message


class ChangeSubscription:
    """One ``subscriptions/listen``, sent again where its stream ends.

    2026-07-28, basic/patterns/subscriptions: what a stream would have said while there was none is
    lost. So whoever listens gets all of it as missed.
    """

    def __init__(
        self,
        open_stream: Callable[[Changes], AbstractAsyncContextManager[Messages]],
        changes: Changes,
        limits: Limits,
    ) -> None:
        self.begun = asyncio.Event()
        """Set when the server has acknowledged it, or will not."""
        self._open_stream = open_stream
        self._changes = changes
        self._limits = limits
        self._failures = 0
        self._error: Exception | None = None
        self._is_acknowledged = False

    async def run(self) -> None:
        """Listen until the task is cancelled, or the server has refused or failed too often."""
        while self._failures <= self._limits.reconnects:
            try:
                await self._read()
                self._error = OutcomeUnknown("The server has closed the subscription's stream")
            except (NotProcessed, OutcomeUnknown) as error:
                self._error = error
            except Exception as error:
                self._error = error
                break
            self._failures += 1
            await asyncio.sleep(self._limits.pause(self._failures))
        self._changes.fail(self._error or OutcomeUnknown("The subscription has ended"))
        self.begun.set()

    def check(self) -> None:
        """Raise what kept the subscription from beginning."""
        if not self._is_acknowledged and self._error is not None:
            raise self._error

    async def _read(self) -> None:
        async with self._open_stream(self._changes) as messages:
            async for message in messages:
                match message:
                    case Notification(method=method) if method == ACKNOWLEDGED:
                        self._on_acknowledged(message)
                    case Notification():
                        self._failures = 0
                        self._changes.add(message)
                    case Response():
                        # An error ends the subscription, a result only this stream: the server
                        # shuts down.
                        result_of(message)
                        return

    def _on_acknowledged(self, message: Notification) -> None:
        if not message.params.get("notifications"):
            raise UnsupportedServer("The server notifies of none of these changes")
        if self._is_acknowledged:
            self._changes.add_missed()
        self._is_acknowledged = True
        self.begun.set()
