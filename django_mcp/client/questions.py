"""Answers what a server of the legacy era asks, while everything else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

from ..protocol.errors import MCPError
from ..protocol.messages import Notification, Request, error_response, result_response
from .errors import ConnectionFailed, OutcomeUnknown, ServerBusy
from .exchange import Exchange, log
from .handlers import Handlers, answered
from .limits import Limits
from .session import Session
from .tasks import Tasks

Post = Callable[[Session, dict[str, Any]], Awaitable[None]]


class Questions:
    """The questions of a session that are being worked on."""

    def __init__(self, handlers: Handlers, limits: Limits, tasks: Tasks, post: Post) -> None:
        self._handlers = handlers
        self._limits = limits
        self._tasks = tasks
        self._post = post
        self._slots = asyncio.Semaphore(limits.questions)
        self._running: dict[tuple[Session, Any], asyncio.Task[None]] = {}

    async def take(self, session: Session, question: Request, exchange: Exchange | None) -> None:
        """Begin to answer. Waits while too many are being answered: the server has to wait too."""
        await self._slots.acquire()
        within = exchange is not None
        task = self._tasks.start(self._answer(session, question, exchange), within_call=within)
        key = session, _key(question.id)
        self._running[key] = task
        task.add_done_callback(lambda _: self._forget(key, task))
        if exchange is not None:
            exchange.questions.add(task)

    def call_off(self, session: Session, notification: Notification) -> None:
        """Stop working on a question that the server has withdrawn."""
        task = self._running.get((session, _key(notification.params.get("requestId"))))
        if task is not None:
            task.cancel()

    def _forget(self, key: tuple[Session, Any], task: asyncio.Task[None]) -> None:
        self._slots.release()
        if self._running.get(key) is task:
            del self._running[key]

    async def _answer(self, session: Session, question: Request, exchange: Exchange | None) -> None:
        with exchange.deadline.paused() if exchange else nullcontext():
            reply = await self._reply(question)
        try:
            await self._send(session, reply)
        except Exception as error:
            log.warning("The answer to %s did not reach the server: %s", question.method, error)

    async def _send(self, session: Session, reply: dict[str, Any]) -> None:
        """Send an answer, again while it may not have arrived: it counts once, by its id."""
        failures = 0
        while not session.lost:  # the next session has not asked this
            try:
                await self._post(session, reply)
            except (ConnectionFailed, ServerBusy, OutcomeUnknown) as error:
                failures += 1
                if failures > self._limits.reconnects:
                    raise
                asked = error.retry_after if isinstance(error, ServerBusy) else None
                await asyncio.sleep(self._limits.pause(failures) if asked is None else asked)
            else:
                return

    async def _reply(self, question: Request) -> dict[str, Any]:
        try:
            result = await answered(self._handlers, question.method, question.params)
        except MCPError as error:
            return error_response(question.id, error)
        return result_response(question.id, result)


def _key(request_id: Any) -> tuple[str, str]:
    # 1 and "1" are two ids.
    return type(request_id).__name__, str(request_id)
