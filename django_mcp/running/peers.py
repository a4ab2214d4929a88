"""The client of a running call, as far as each way of answering lets it be reached.

:class:`BufferedPeer` is for an answer in one piece: what a call says comes with its response.
:class:`StreamPeer` streams and keeps nothing: when its connection goes, so does the call
(2026-07-28); :class:`~django_mcp.running.listen_peer.ListenPeer` stays for what changes later.
:class:`StoredPeer` streams from rows, which outlive connection and process (the legacy revisions).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.db import connections

from ..protocol.errors import ErrorCode, MCPError
from ..protocol.lifecycle import SessionInfo
from ..protocol.messages import Notification, notification
from ..protocol.topics import Topic
from ..server.errors import AnswerTimedOut, CallStopped, QuestionFailed
from ..store.delivery import request_rows
from ..store.delivery.records import CallRecord, MessageKind, QuestionRecord, StoredMessage
from ..store.delivery.stream_writer import StreamWriter, bounded, has_room
from ..store.ledger import ledger
from ..store.sessions.session_rows import is_ready
from . import thread_lease, worker_threads
from .send_queue import SendQueue

logger = logging.getLogger("django_mcp.request")

READY_POLL_SECONDS: Final = 0.2
"""Seconds between two looks whether the client has said that it is ready."""


class CallPeer(ABC):
    """What all have in common: a call can be stopped, and by itself nothing can be requested."""

    can_request = False
    can_listen = False
    ends_by_itself = False
    """Whether the call ends by itself, in good order, once it is to stop."""

    def __init__(self, *, can_notify: bool) -> None:
        self.can_notify = can_notify
        self._stopped = False
        self._is_full = False

    def stop(self) -> None:
        """Let the call end: nothing more is sent, and no answer waited for."""
        self._stopped = True

    def end(self) -> None:
        """Send nothing more: how the call has ended is the last that its client hears of it."""
        return

    @abstractmethod
    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification on the call's own stream; returns at once."""

    def release(self) -> bool:
        """End the connection, not the call; return whether that is possible."""
        return False

    def request(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Refuse: ``can_request`` says so."""
        raise NotImplementedError

    async def arequest(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Refuse: ``can_request`` says so."""
        raise NotImplementedError

    async def listen(self, opening: Notification, wanted: Mapping[Topic, Notification]) -> None:
        """Refuse: ``can_listen`` says so."""
        raise NotImplementedError

    async def wait_until_ended(self) -> None:
        """Wait until what :meth:`listen` has begun is to end."""
        return

    def _has_room(self, waiting: Sequence[Sized], size: int) -> bool:
        if has_room(len(waiting), sum(map(len, waiting)) + size):
            return True
        if not self._is_full:
            self._is_full = True
            logger.warning("A client does not read: notifications are dropped")
        return False

    def check_not_stopped(self) -> None:
        """Raise :class:`CallStopped` if the call is to end."""
        if self._stopped:
            raise CallStopped


class BufferedPeer(CallPeer):
    """Stores the notifications of a call until it ends."""

    def __init__(self, *, can_notify: bool) -> None:
        super().__init__(can_notify=can_notify)
        self.notifications: list[bytes] = []

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Store a notification until the call ends."""
        self.check_not_stopped()
        if not self.can_notify:
            return
        body = bounded(notification(Notification(method, params)))
        if body is not None and self._has_room(self.notifications, len(body)):
            self.notifications.append(body)


class StreamPeer(CallPeer):
    """Sends notifications on the connection that the request came on."""

    def __init__(self, queue: SendQueue, *, can_notify: bool) -> None:
        super().__init__(can_notify=can_notify)
        self._queue = queue
        self._lock = threading.Lock()
        self._has_ended = False

    def end(self) -> None:
        """Send nothing more. From any thread."""
        with self._lock:
            self._has_ended = True

    def _send(self, bodies: Iterable[str]) -> None:
        """Send notifications, unless the call has ended: a thread that it has left may go on."""
        with self._lock:
            if not self._has_ended:
                self._queue.put(StoredMessage(0, MessageKind.NOTIFICATION, body) for body in bodies)

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification on the connection; returns at once."""
        self.check_not_stopped()
        if not self.can_notify:
            return
        body = bounded(notification(Notification(method, params)))
        if body is not None and self._has_room(self._queue.waiting(), len(body)):
            self._send([body.decode()])


class StoredPeer(CallPeer):
    """Writes messages to rows, and sends requests whose answers may arrive at any worker."""

    def __init__(
        self,
        writer: StreamWriter,
        call: CallRecord,
        session: SessionInfo,
        *,
        release: Callable[[], bool],
    ) -> None:
        super().__init__(can_notify=writer.durable)
        self.can_request = writer.durable
        self._writer = writer
        self._call = call
        self._session = session
        self._release = release
        self._waiting: dict[QuestionRecord, Future[dict[str, Any]]] = {}

    def stop(self) -> None:
        """Let the call end, and withdraw its questions."""
        if self._stopped:
            return
        # First: a question that is put in at this moment finds out by itself.
        super().stop()
        # A copy: others may come or go meanwhile, in their threads.
        waiting = list(self._waiting.items())
        self._waiting.clear()
        for question, answer in waiting:
            self._withdraw(question, "The call has ended")
            _settle(answer, CallStopped())

    def release(self) -> bool:
        """End the connection, not the call; return whether that is possible."""
        return self._release()

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Write a notification to the call's stream; returns at once."""
        self.check_not_stopped()
        if self.can_notify:
            self._writer.notify(notification(Notification(method, params)))

    def request(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request, and wait in this thread for its result, ``seconds`` at the most."""
        self.check_not_stopped()
        question = QuestionRecord(self._call, method, params, seconds)
        with worker_threads.idle():
            end = time.monotonic() + seconds
            if not self._session.initialized:
                while not self._is_ready():
                    self._check_time(question, end)
                    time.sleep(READY_POLL_SECONDS)
                # Whoever waits for a person holds no connection to the database.
                connections.close_all()
            waiting = self._ask(question)
            try:
                return waiting.result(max(0, end - time.monotonic()))
            except TimeoutError:
                raise self._give_up(question) from None
            finally:
                self._forget(question)

    async def arequest(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Do as :meth:`request`, without a thread that waits."""
        self.check_not_stopped()
        question = QuestionRecord(self._call, method, params, seconds)
        end = time.monotonic() + seconds
        while not (self._session.initialized or await sync_to_async(self._is_ready)()):
            self._check_time(question, end)
            await asyncio.sleep(READY_POLL_SECONDS)
        thread_lease.drop_lease()
        waiting = self._ask(question)
        try:
            async with asyncio.timeout(max(0, end - time.monotonic())):
                return await asyncio.wrap_future(waiting)
        except TimeoutError:
            raise self._give_up(question) from None
        except asyncio.CancelledError:
            if question in self._waiting:
                self._withdraw(question, "The call has ended")
            raise
        finally:
            self._forget(question)

    def _is_ready(self) -> bool:
        # 2025-11-25, basic/lifecycle, "Initialization": before notifications/initialized, which
        # may come in at another worker, a server asks nothing.
        self.check_not_stopped()
        return is_ready(self._session)

    def _check_time(self, question: QuestionRecord, end: float) -> None:
        if time.monotonic() > end:
            raise _timed_out(question)

    def _ask(self, question: QuestionRecord) -> Future[dict[str, Any]]:
        waiting: Future[dict[str, Any]] = Future()
        self._waiting[question] = waiting
        ledger().requests.watch_question(question.id, lambda answer: _take(waiting, answer))
        try:
            is_sent = self._writer.ask(question)
        except ValueError as error:
            self._forget(question)
            raise QuestionFailed(str(error)) from error
        if self._stopped or not is_sent:
            _settle(waiting, CallStopped())
        if self._stopped and is_sent:
            self._withdraw(question, "The call has ended")
        return waiting

    def _give_up(self, question: QuestionRecord) -> AnswerTimedOut:
        question.has_timed_out = True  # first: it is written with this, or before the job runs
        ledger().run(lambda: request_rows.time_out(question), self._call.partition)
        self._withdraw(question, "The answer took too long")
        return _timed_out(question)

    def _withdraw(self, question: QuestionRecord, reason: str) -> None:
        # 2025-11-25, basic/utilities/cancellation: whoever has sent a request may take it back.
        params = {"requestId": question.request_id, "reason": reason}
        self._writer.notify(notification(Notification("notifications/cancelled", params)))

    def _forget(self, question: QuestionRecord) -> None:
        self._waiting.pop(question, None)
        ledger().requests.unwatch_question(question.id)


def _timed_out(question: QuestionRecord) -> AnswerTimedOut:
    return AnswerTimedOut(f"No answer within {question.seconds:g} seconds")


def _take(waiting: Future[dict[str, Any]], answer: dict[str, Any] | None) -> None:
    if answer is None:
        _settle(waiting, CallStopped())
    elif "error" in answer:
        error = answer["error"]
        code, text = error.get("code"), str(error.get("message", ""))
        code = code if isinstance(code, int) else ErrorCode.INTERNAL_ERROR
        _settle(waiting, MCPError(code, text, error.get("data")))
    else:
        # At this very moment it may time out, or be stopped, in another thread.
        with suppress(InvalidStateError):
            waiting.set_result(answer["result"])


def _settle(waiting: Future[dict[str, Any]], error: BaseException) -> None:
    with suppress(InvalidStateError):
        waiting.set_exception(error)
