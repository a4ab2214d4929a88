"""A POST on an event loop: its calls, which may outlive the connection, and what is shown of them.

What ends without having waited for anything costs neither a turn of the loop nor an entry
anywhere, and is answered at once; what has ended before anything was shown of it, in one piece.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from ..conf import get_settings
from ..protocol import sse
from ..protocol.errors import SessionNotFound, cancelled
from ..server.ports import Runner
from ..store.delivery.records import Call, Kept, Kind, Message, unheard
from ..store.delivery.stream_readers import Reader
from ..store.ledger import ledger
from ..store.requests.running_requests import Stop
from . import replies
from .connections import Connection
from .http import Reply
from .making import Making
from .peers import CallPeer, Direct, Durable
from .posted import Item, Posted, state_of
from .replies import Answer
from .staying import Staying
from .streams import RETRY_MS, EventId, Mailbox, Shown, reader_into, resume
from .tasks import keep, start
from .threads import call_on


class Answering:
    """One POST whose calls are a task of their own."""

    def __init__(self, posted: Posted, runner: Runner, connection: Connection) -> None:
        self._posted = posted
        self._connection = connection
        self._runner = runner
        self._loop = asyncio.get_running_loop()
        self._mailbox = Mailbox(self._loop)
        self._post = posted.post(durable=posted.session is not None and posted.takes_stream)
        self._post.listener = self._kept
        self._news: asyncio.Event | None = None
        """Set when the one who replies is to look; there as soon as he waits."""
        self._wants_stream = False
        """Whether there is something that does not wait for the end. Set from any thread."""
        self._is_streamed = False
        """Whether the end comes on a stream; else all had ended before anything wanted one."""
        self._shown = False
        self._reader: Reader | None = None
        self._connected = True
        self._lost = False
        self._calls: dict[Call, Making] = {}

    async def reply(self) -> Reply:
        """Wait until the calls have ended or something is to be streamed, and reply."""
        for item in self._posted.items:
            self._begin(item)
        task = start(self._make_all())
        if task.done():
            self._connection.leave()
        else:
            self._watch(task)
        if not self._has_ended_in_one(task):
            try:
                await self._first(task)
            except asyncio.CancelledError:
                self._disconnect()
                raise
        if self._lost:
            posted = self._posted
            return posted.reply([posted.answer(item, SessionNotFound()) for item in posted.items])
        if self._wants_stream and not self._has_ended_in_one(task):
            self._shown = True
            return replies.stream(self._events())
        said = [*self._post.said, *map(str.encode, self._mailbox.waiting())]
        self._mailbox.close()
        if not task.done():
            return Reply(204)  # to nobody: the client has gone
        self._part()
        return self._posted.reply(task.result(), said)

    def _watch(self, task: asyncio.Task[Any]) -> None:
        keep(task)
        # Counted as long as the call runs, which may be longer than its connection lasts.
        task.add_done_callback(lambda _: self._connection.leave())
        task.add_done_callback(lambda _: self._look())
        # When this process dies, each has its end: also those of a batch that have not begun.
        for making in self._calls.values():
            making.watch(self._post)
        ledger().nudge()

    async def _first(self, task: asyncio.Task[Any]) -> None:
        self._news = asyncio.Event()
        gone = asyncio.ensure_future(self._posted.request.disconnected())
        gone.add_done_callback(lambda _: self._look())
        try:
            # What has become a row is shown once its response has become one, too.
            while not (self._wants_stream or gone.done() or self._has_ended_in_one(task)):
                self._news.clear()
                await self._news.wait()
            if gone.done():
                self._disconnect()
        finally:
            self._news = None
            gone.cancel()

    def _look(self) -> None:
        if self._news is not None:
            self._news.set()

    def _has_ended_in_one(self, task: asyncio.Task[Any]) -> bool:
        return task.done() and not self._is_streamed

    def _part(self) -> None:
        """Let go of each other, or the garbage collector would have to find every POST."""
        if not self._post.is_open:
            self._post.listener = unheard

    # The calls

    async def _make_all(self) -> list[Answer]:
        makings = list(self._calls.values())
        try:
            return [await self._make(each, last=each is makings[-1]) for each in makings]
        finally:
            for making in self._calls.values():
                making.leave()
            self._calls.clear()

    def _begin(self, item: Item) -> None:
        call = item.call()
        self._calls[call] = Making(item, call, self._peer(call), self._soon)
        self._post.begin(call)

    async def _make(self, making: Making, *, last: bool) -> Answer:
        outcome = await making.outcome(self._runner)
        if making.peer.stays:
            await making.peer.stay()
            outcome = outcome if self._connected else cancelled()
        making.leave()
        answer = self._posted.answer(making.item, outcome)
        self._hand_in(making.call, answer, last=last)
        return answer

    def _hand_in(self, call: Call, answer: Answer, *, last: bool) -> None:
        self._post.end(call, state_of(answer.outcome), answer.body, last=last)
        if self._post.durable:
            self._is_streamed = self._post.is_open
        elif self._shown:
            self._is_streamed = True
            self._mailbox.put([Message(0, Kind.RESPONSE, answer.body.decode())])
            if last:
                self._mailbox.finish()

    def _peer(self, call: Call) -> CallPeer:
        session, takes_stream = self._posted.session, self._posted.takes_stream
        if session is None and self._posted.stays:
            given = (self._mailbox, self._post, call, self._runner)
            return Staying(*given, listens=takes_stream, spoke=self._spoke)
        if session is None:
            return Direct(self._mailbox, listens=takes_stream, spoke=self._spoke)
        return Durable(self._post, call, session, release=self._release)

    # What they say

    def _spoke(self) -> None:
        self._wants_stream = True
        self._soon(self._look)

    def _kept(self, kept: Kept) -> None:
        """Hear from the ledger what has become of what was written."""
        if kept.lost:
            self._soon(self._lose)
            return
        for call in kept.cancelled:
            self._soon(self._end, call, Stop.CANCELLED)
        if self._post.durable and self._reader is None and self._connected:
            self._reader = reader_into(
                self._mailbox,
                stream=self._post.id,
                cursor=0,
                epoch=self._post.epoch,
                fed=True,
            )
            ledger().readers.add(self._reader)
        if self._posted.takes_stream:
            self._spoke()

    def _end(self, call: Call, why: Stop) -> None:
        making = self._calls.get(call)
        if making is not None:
            making.end(why)

    def _lose(self) -> None:
        self._lost = not self._shown
        for making in list(self._calls.values()):
            making.end(Stop.SESSION_ENDED)
            # It may be waiting for the answer to a question that was never asked.
            making.peer.stop()
        self._wants_stream = True
        self._look()

    # The connection

    def _events(self) -> Shown:
        post, resumable = self._post, self._posted.revision.resumable_posts
        # Whoever has the id of an event may ask any worker for what follows it. So what is not
        # stored has none.
        primed = resumable and post.is_kept
        age = get_settings().stream_max_age_seconds if primed else float("inf")
        return Shown(
            self._mailbox,
            lambda: self._soon(self._disconnect),
            opening=sse.priming(str(EventId(post.id, 0, post.epoch)), RETRY_MS) if primed else b"",
            label=self._label,
            ending=sse.pause(RETRY_MS),
            max_age=age,
            drained=self._drained,
        )

    def _label(self, message: Message) -> str | None:
        stored = 0 < message.seq <= self._post.stored
        return str(EventId(self._post.id, message.seq)) if stored else None

    def _drained(self) -> None:
        if self._reader is not None:
            resume(self._reader)

    def _release(self) -> bool:
        """End the connection, so that the client comes back for the rest."""
        if not (self._post.durable and self._posted.revision.resumable_posts):
            return False
        self._post.open()
        self._mailbox.finish(sse.pause(RETRY_MS))
        return True

    def _disconnect(self) -> None:
        """Take note that the connection has gone, or has shown everything."""
        self._connected = self._post.has_client = False
        self._mailbox.close()
        if self._reader is not None:
            ledger().readers.remove(self._reader)
        if self._posted.session is None:
            # 2026-07-28, basic/utilities/cancellation: a connection that goes is the cancellation.
            for making in list(self._calls.values()):
                making.peer.stop(partial(making.end, Stop.CANCELLED))

    def _soon(self, function: Callable[..., object], *args: object) -> None:
        call_on(self._loop, function, *args)
