"""The modern era, 2026-07-28: each request says all, and a stream that ends is a call that ends."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping
from typing import Any

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
from .changes import Changes
from .endpoint import JSON, Endpoint, check
from .errors import OutcomeUnknown, TooManyQuestions, UnexpectedAnswer
from .exchange import Exchange, only_response, outcome, until_answered
from .handlers import Handlers
from .limits import Limits
from .server import Server
from .streams import Take, follow, one_by_one
from .subscription import Subscription
from .tasks import Tasks
from .waiting import Deadline

log = logging.getLogger("django_mcp.client")


class Modern:
    """Sends requests that stand alone."""

    def __init__(
        self,
        endpoint: Endpoint,
        handlers: Handlers,
        limits: Limits,
        *,
        revision: Revision,
        info: Mapping[str, Any],
    ) -> None:
        self.server = Server(revision, ServerCapabilities())
        self._endpoint = endpoint
        self._handlers = handlers
        self._limits = limits
        self._ids = itertools.count(1)
        self._tasks = Tasks()
        self._listening: dict[Changes, asyncio.Task[None]] = {}
        self._meta: dict[str, Any] = {
            PROTOCOL_VERSION_META_KEY: revision.name,
            CLIENT_INFO_META_KEY: dict(info),
            CLIENT_CAPABILITIES_META_KEY: handlers.capabilities(),
        }

    async def request(self, exchange: Exchange) -> dict[str, Any]:
        """Send a request, answer the questions with which it comes back, and return its result.

        2026-07-28, basic/patterns/mrtr, "Client Requirements": each round is a request of its own,
        with the answers and with the state that the server gave, and with nothing else of earlier
        rounds.
        """
        first = exchange.params
        for _ in range(self._limits.rounds + 1):
            result = await until_answered(lambda: self._send(exchange), exchange, self._limits)
            kind = result.get("resultType", "complete")
            if kind == "complete":
                return result
            if kind != "input_required":
                raise UnexpectedAnswer(f"The server sent an unknown kind of result: {kind!r}")
            exchange.params = {**first, **await self._answers(exchange, result)}
        raise TooManyQuestions(f"The server has asked {self._limits.rounds} times, and asks again")

    async def _answers(self, exchange: Exchange, result: Mapping[str, Any]) -> dict[str, Any]:
        questions, state = result.get("inputRequests"), result.get("requestState")
        if not isinstance(questions or {}, dict) or not isinstance(state, str | None):
            raise UnexpectedAnswer("The server's questions have the wrong shape")
        given: dict[str, Any] = {}
        if questions:
            self._check_number(questions)
            with exchange.deadline.paused():
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
            # This era has no way to tell the server. A failing function ends the call as it is.
            raise UnexpectedAnswer(f"A question cannot be answered: {error.message}") from error

    async def _send(self, exchange: Exchange) -> dict[str, Any]:
        exchange.renew(self._ids)
        body = exchange.body(self._meta)
        headers = {**self.headers(exchange.method, exchange.params), **exchange.headers}
        async with self._endpoint.open("POST", headers, body) as answer:
            await check(answer)
            if answer.media_type == JSON:
                return outcome(only_response(await answer.message(), exchange))

            async def take(message: Message) -> Response | None:
                return await self._take(message, exchange)

            response = await follow(answer, take)
        if response is None:
            raise OutcomeUnknown("The stream ended before the answer; it cannot be resumed")
        return outcome(response)

    def headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """Return what 2026-07-28, basic/transports/streamable-http, "Request Metadata", asks."""
        given = {
            names.PROTOCOL_VERSION: self._meta[PROTOCOL_VERSION_META_KEY],
            names.METHOD: method,
        }
        source = names.NAME_SOURCES.get(method)
        return {**given, names.NAME: names.encode(params[source])} if source else given

    async def _take(self, message: Message, exchange: Exchange) -> Response | None:
        match message:
            case Response() if exchange.owns(message):
                return message
            case Notification() if await exchange.hear(message):
                pass
            case Notification(method="notifications/message"):
                with exchange.deadline.paused():
                    await self._handlers.hear_log(message.params)
            case Request():
                log.warning("Ignored %s: this revision has no requests of servers", message.method)
        return None

    async def set_log_level(self, exchange: Exchange, level: str) -> None:
        """Ask for log messages with every request from now on."""
        self._meta[LOG_LEVEL_META_KEY] = level

    async def ping(self, exchange: Exchange) -> None:
        """See that the server answers; this era has no other request for that."""
        exchange.method = "server/discover"
        await self.request(exchange)

    async def listen(self, changes: Changes, deadline: Deadline) -> None:
        """Begin to listen; returns when the server has said that it will tell."""
        subscription = Subscription(self._open_subscription, changes, self._limits)
        self._listening[changes] = self._tasks.start(subscription.run())
        try:
            await subscription.begun.wait()
        except BaseException:
            await self.unlisten(changes, deadline)
            raise
        subscription.check()

    async def unlisten(self, changes: Changes, deadline: Deadline) -> None:
        """Close the stream, which ends the subscription."""
        task = self._listening.pop(changes, None)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _open_subscription(self, changes: Changes, take: Take) -> None:
        method, params = "subscriptions/listen", {"notifications": changes.wanted.filter()}
        envelope = {"jsonrpc": "2.0", "id": next(self._ids), "method": method}
        body = encode({**envelope, "params": {**params, "_meta": self._meta}})
        async with self._endpoint.open("POST", self.headers(method, params), body) as answer:
            await check(answer)
            if answer.media_type == JSON:
                for message in one_by_one(await answer.message()):
                    await take(message)
                return
            await follow(answer, take)

    async def close(self) -> None:
        """End what runs in the background."""
        await self._tasks.cancel()
