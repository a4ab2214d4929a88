"""The client of a running call, as far as each way of answering lets it be reached.

``Collected`` answers in one piece: what a call says comes with its response. ``Direct`` streams and
keeps nothing: when its connection goes, so does the call (2026-07-28). ``Durable`` streams from
rows, which outlive connection and process (the legacy revisions).
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Sized
from concurrent.futures import Future
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.db import connections

from ..principal import Guard
from ..protocol.errors import ErrorCode, MCPError
from ..protocol.lifecycle import SessionInfo
from ..protocol.messages import Notification, notification
from ..protocol.topics import Topic
from ..server.calling import CallStopped
from ..server.errors import QuestionFailed
from ..server.exchange import Exchange
from ..server.ports import AnswerTimedOut
from ..store.delivery.records import Call, Kind, Message, Question
from ..store.delivery.stream_writer import Post, bounded, has_room
from ..store.ledger import ledger
from ..store.requests import pending
from ..store.sessions.session_rows import is_ready
from . import lanes
from .streams import Mailbox

logger = logging.getLogger("django_mcp.request")

READY_PAUSE: Final = 0.2
"""Seconds between two looks whether the client has said that it is ready."""


class CallPeer(ABC):
    """What all have in common: a call can be told to end, and by itself nothing can be asked."""

    answers = False
    stays = False
    concludes = False
    """Whether the call ends by itself, in good order, once it has been told to stop."""

    def __init__(self, *, listens: bool) -> None:
        self.listens = listens
        self._stopped = False
        self._is_full = False
        self._exchange: Exchange | None = None

    def serve(self, exchange: Exchange | None) -> None:
        """Take note of the exchange that the call belongs to; of none, once it has ended."""
        self._exchange = exchange

    def pulse(self) -> None:
        """Let out what the call holds back. Called from time to time while it runs."""
        exchange = self._exchange
        if exchange is not None:
            exchange.progress.pulse()

    def guard(self) -> Guard | None:
        """Return what says whether a user may go on with the call, where not everybody may."""
        exchange = self._exchange
        return None if exchange is None else exchange.guard

    @property
    def stopped(self) -> bool:
        """See :class:`django_mcp.server.ports.Peer`."""
        return self._stopped

    def stop(self, note: Callable[[], object] = lambda: None) -> None:
        """Tell the call to end. From any thread.

        ``note`` is called before the call can notice, which may end it at once.
        """
        note()
        self._stopped = True

    @abstractmethod
    def tell(self, method: str, params: dict[str, Any]) -> None:
        """See :class:`django_mcp.server.ports.Peer`."""

    def release(self) -> bool:
        """See :class:`django_mcp.server.ports.Peer`."""
        return False

    def ask(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Refuse: ``answers`` says so."""
        raise NotImplementedError

    async def aask(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Refuse: ``answers`` says so."""
        raise NotImplementedError

    async def listen(
        self, opening: Notification, wanted: Mapping[Topic, Notification], guard: Guard | None
    ) -> None:
        """Refuse: ``stays`` says so."""
        raise NotImplementedError

    async def stay(self) -> None:
        """Wait until what :meth:`listen` has begun is to end; ``stays`` says whether it can."""
        return

    def _has_room(self, waiting: Sequence[Sized], size: int) -> bool:
        if has_room(len(waiting), sum(map(len, waiting)) + size):
            return True
        if not self._is_full:
            self._is_full = True
            logger.warning("A client does not read: notifications are dropped")
        return False

    def check(self) -> None:
        """Raise :class:`CallStopped` if the call is to end."""
        if self.stopped:
            raise CallStopped


class Collected(CallPeer):
    """Keeps what the call says until it ends."""

    def __init__(self, *, listens: bool) -> None:
        super().__init__(listens=listens)
        self.said: list[bytes] = []

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """See :class:`django_mcp.server.ports.Peer`."""
        self.check()
        if not self.listens:
            return
        body = bounded(notification(Notification(method, params)))
        if body is not None and self._has_room(self.said, len(body)):
            self.said.append(body)


class Direct(CallPeer):
    """Sends what the call says on the connection that the request came on."""

    def __init__(self, mailbox: Mailbox, *, listens: bool, spoke: Callable[[], None]) -> None:
        super().__init__(listens=listens)
        self._mailbox = mailbox
        self._spoke = spoke

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """See :class:`django_mcp.server.ports.Peer`."""
        self.check()
        if not self.listens:
            return
        body = bounded(notification(Notification(method, params)))
        if body is not None and self._has_room(self._mailbox.waiting(), len(body)):
            self._mailbox.put([Message(0, Kind.NOTIFICATION, body.decode())])
            self._spoke()


class Durable(CallPeer):
    """Keeps what the call says in rows, and asks questions that any worker may be answered at."""

    def __init__(
        self, post: Post, call: Call, session: SessionInfo, *, release: Callable[[], bool]
    ) -> None:
        super().__init__(listens=post.durable)
        self.answers = post.durable
        self._post = post
        self._call = call
        self._session = session
        self._release = release
        self._waiting: dict[Question, Future[dict[str, Any]]] = {}

    def stop(self, note: Callable[[], object] = lambda: None) -> None:
        """Tell the call to end, and its client that its questions are settled."""
        if self.stopped:
            return
        waiting, self._waiting = self._waiting, {}
        for question in waiting:
            self._withdraw(question, "The call has ended")
        super().stop(note)
        for each in waiting.values():
            _settle(each, CallStopped())

    def release(self) -> bool:
        """See :class:`django_mcp.server.ports.Peer`."""
        return self._release()

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """See :class:`django_mcp.server.ports.Peer`."""
        self.check()
        if self.listens:
            self._post.say(notification(Notification(method, params)))

    def ask(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """See :class:`django_mcp.server.ports.Peer`."""
        self.check()
        question = Question(self._call, method, params, seconds)
        with lanes.idle():
            end = time.monotonic() + seconds
            if not self._session.initialized:
                while not self._is_ready(end):
                    time.sleep(READY_PAUSE)
                # Whoever waits for a person holds no connection to the database.
                connections.close_all()
            waiting = self._ask(question)
            try:
                return waiting.result(max(0, end - time.monotonic()))
            except TimeoutError:
                raise self._give_up(question) from None
            finally:
                self._forget(question)

    async def aask(self, method: str, params: dict[str, Any], seconds: float) -> dict[str, Any]:
        """See :class:`django_mcp.server.ports.Peer`."""
        self.check()
        question = Question(self._call, method, params, seconds)
        end = time.monotonic() + seconds
        while not (self._session.initialized or await sync_to_async(self._is_ready)(end)):
            await asyncio.sleep(READY_PAUSE)
        lanes.drop_lane()
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

    def _is_ready(self, end: float) -> bool:
        # 2025-11-25, basic/lifecycle, "Initialization": before notifications/initialized, which
        # may come in at another worker, a server asks nothing.
        self.check()
        return time.monotonic() > end or is_ready(self._session)

    def _ask(self, question: Question) -> Future[dict[str, Any]]:
        waiting: Future[dict[str, Any]] = Future()
        self._waiting[question] = waiting
        ledger().requests.ask(question.id, lambda answer: _take(waiting, answer))
        try:
            self._post.ask(question)
        except ValueError as error:
            self._forget(question)
            raise QuestionFailed(str(error)) from error
        if self.stopped:
            _settle(waiting, CallStopped())
        return waiting

    def _give_up(self, question: Question) -> AnswerTimedOut:
        ledger().run(lambda: pending.time_out(question))
        self._withdraw(question, "The answer took too long")
        return AnswerTimedOut(f"No answer within {question.seconds:g} seconds")

    def _withdraw(self, question: Question, reason: str) -> None:
        # 2025-11-25, basic/utilities/cancellation: whoever has sent a request may take it back.
        params = {"requestId": question.request_id, "reason": reason}
        self._post.say(notification(Notification("notifications/cancelled", params)))

    def _forget(self, question: Question) -> None:
        self._waiting.pop(question, None)
        ledger().requests.forget(question.id)


def _take(waiting: Future[dict[str, Any]], answer: dict[str, Any] | None) -> None:
    if answer is None:
        _settle(waiting, CallStopped())
    elif "error" in answer:
        error = answer["error"]
        code, text = error.get("code"), str(error.get("message", ""))
        code = code if isinstance(code, int) else ErrorCode.INTERNAL_ERROR
        _settle(waiting, MCPError(code, text, error.get("data")))
    elif not waiting.done():
        waiting.set_result(answer["result"])


def _settle(waiting: Future[dict[str, Any]], error: BaseException) -> None:
    if not waiting.done():
        waiting.set_exception(error)
