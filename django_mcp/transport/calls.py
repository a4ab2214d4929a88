"""How calls are made at each door: inline, or as a task of their own that a stream accompanies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from django.db import connections

from ..conf import get_settings
from ..protocol import sse
from ..protocol.errors import SessionNotFound, access_revoked, cancelled, session_ended
from ..server.ports import Runner
from ..store.database import alias
from ..store.ledger import ledger
from ..store.posts import Call, Kept, Kind, Message
from ..store.readers import Reader
from ..store.requests import Running, Stop
from . import replies
from .http import Reply, Shown
from .peers import CallPeer, Collected, Durable
from .posted import Item, Outcome, Posted, state_of
from .runners import Inline, OnLanes
from .staying import Staying
from .streams import RETRY_MS, EventId, Mailbox, events, reader_into, resume

T = TypeVar("T")


class Door(Protocol):
    """What differs between the ways into the endpoint."""

    runner: Runner
    streams: bool
    """Whether a reply can be sent piece by piece, without a thread that waits."""

    async def answer(self, posted: Posted) -> Reply:
        """Make the calls that a POST asks for, and reply with what comes of them."""


class InlineDoor:
    """Answers in one piece, in the thread and on the database connection of the request."""

    streams = False

    def __init__(self) -> None:
        self.runner: Runner = Inline()

    async def answer(self, posted: Posted) -> Reply:
        """See :class:`Door`."""
        peer = Collected(listens=posted.takes_stream)
        # Within a transaction of the caller's, as in a test, nobody else would see the session.
        watched = posted.speaks and not connections[alias()].in_atomic_block
        make = self._watched if watched else self._make
        return posted.reply([await make(item, posted, peer) for item in posted.items], peer.said)

    async def _make(self, item: Item, posted: Posted, peer: Collected) -> Outcome:
        return await item.outcome(peer, self.runner)

    async def _watched(self, item: Item, posted: Posted, peer: Collected) -> Outcome:
        """Make a call that is a row as soon as it has become long."""
        call, post = item.call(), posted.post(durable=False)
        running = Running(call, post, lambda why: peer.stop())
        post.begin(call)
        ledger().requests.begin(running)
        ledger().nudge()
        try:
            outcome = await item.outcome(peer, self.runner)
        finally:
            ledger().requests.end(running)
        post.end(call, state_of(outcome), b"")
        return outcome


class LoopDoor:
    """Answers on the server's event loop: calls are tasks, and what they say is a stream."""

    streams = True

    def __init__(self) -> None:
        self.runner: Runner = OnLanes()

    async def answer(self, posted: Posted) -> Reply:
        """See :class:`Door`."""
        if posted.speaks:
            return await _Answering(posted, self.runner).reply()
        peer = Collected(listens=False)
        return posted.reply([await item.outcome(peer, self.runner) for item in posted.items])


class _Answering:
    """One POST whose calls are a task of their own, which may outlive the connection."""

    def __init__(self, posted: Posted, runner: Runner) -> None:
        self._posted = posted
        self._runner = runner
        self._loop = asyncio.get_running_loop()
        self._mailbox = Mailbox(self._loop)
        self._post = posted.post(durable=posted.session is not None and posted.takes_stream)
        self._post.listener = self._kept
        self._stream = asyncio.Event()
        self._reader: Reader | None = None
        self._connected = True
        self._lost = False
        self._stops: dict[Call, asyncio.Future[Stop]] = {}
        self._peers: dict[Call, CallPeer] = {}

    async def reply(self) -> Reply:
        """Wait until the calls have ended or something is to be streamed, and reply."""
        task = _keep(self._loop.create_task(self._make_calls()))
        try:
            await self._first(task)
        except asyncio.CancelledError:
            self._disconnect()
            raise
        if self._lost:
            return self._posted.reply([SessionNotFound() for _ in self._posted.items])
        if self._stream.is_set():
            return replies.stream(self._events())
        if not task.done():
            return Reply(204)  # to nobody: the client has gone
        return self._posted.reply(task.result())

    async def _first(self, task: asyncio.Task[Any]) -> None:
        gone = asyncio.ensure_future(self._posted.request.disconnected())
        word = asyncio.ensure_future(self._stream.wait())
        try:
            await asyncio.wait({task, word, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                self._disconnect()
            elif task.done() and self._post.durable and self._post.is_open:
                await word  # its response has become a row, as everything before it
        finally:
            gone.cancel()
            word.cancel()

    # The calls

    async def _make_calls(self) -> list[Outcome]:
        # All are in flight from now on: when this process dies, each has its end.
        running = [(item, self._begin(item.call())) for item in self._posted.items]
        ledger().nudge()
        last = running[-1][1]
        try:
            return [await self._make(item, each, last=each is last) for item, each in running]
        finally:
            for _, each in running:
                ledger().requests.end(each)

    def _begin(self, call: Call) -> Running:
        peer = self._peers[call] = self._peer(call)
        self._stops[call] = self._loop.create_future()
        running = Running(
            call,
            self._post,
            stop=lambda why: self._stop_call(call, peer, why),
            pulse=lambda: peer.pulse(),
        )
        self._post.begin(call)
        ledger().requests.begin(running)
        return running

    async def _make(self, item: Item, running: Running, *, last: bool) -> Outcome:
        call = running.call
        outcome = await self._outcome(item, self._peers[call], self._stops[call])
        ledger().requests.end(running)
        self._hand_in(item, call, outcome, last=last)
        return outcome

    async def _outcome(self, item: Item, peer: CallPeer, stop: asyncio.Future[Stop]) -> Outcome:
        if stop.done():
            return _stopped(stop.result())
        making = self._loop.create_task(item.outcome(peer, self._runner))
        first: set[asyncio.Future[Any]] = {making, stop}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not stop.done():
            return making.result()
        # An asynchronous function is cancelled; a synchronous one ends at its next word. Nobody
        # waits for either.
        making.cancel()
        _keep(making)
        return _stopped(stop.result())

    def _hand_in(self, item: Item, call: Call, outcome: Outcome, *, last: bool) -> None:
        response = replies.encode(item.message.id, outcome)
        self._post.end(call, state_of(outcome), response, last=last)
        if not self._post.durable:
            # For the stream, if it becomes one in this very moment; else nobody reads it.
            self._mailbox.put([Message(0, Kind.RESPONSE, response.decode())])
            if last:
                self._mailbox.finish()

    def _peer(self, call: Call) -> CallPeer:
        session, takes_stream = self._posted.session, self._posted.takes_stream
        if session is None:
            return Staying(self._mailbox, self._post, call, listens=takes_stream, spoke=self._spoke)
        return Durable(self._post, call, session, release=self._release)

    def _stop_call(self, call: Call, peer: CallPeer, why: Stop) -> None:
        """End a call early. From any thread, and more than once."""

        def note() -> None:
            if not peer.concludes:
                self._soon(self._note_stop, call, why)

        peer.stop(note)

    def _note_stop(self, call: Call, why: Stop) -> None:
        if not self._stops[call].done():
            self._stops[call].set_result(why)

    # What they say

    def _spoke(self) -> None:
        self._soon(self._stream.set)

    def _kept(self, kept: Kept) -> None:
        """Hear from the ledger what has become of what was written."""
        if kept.lost:
            self._soon(self._lose)
        for call in kept.cancelled:
            self._soon(self._note_stop, call, Stop.CANCELLED)
        if self._post.durable and self._reader is None and self._connected and not kept.lost:
            self._reader = reader_into(
                self._mailbox,
                stream=self._post.id,
                cursor=0,
                epoch=self._post.epoch,
                own=False,
            )
            ledger().readers.add(self._reader)
        if self._posted.takes_stream:
            self._spoke()

    def _lose(self) -> None:
        self._lost = not self._stream.is_set()
        for call in list(self._stops):
            self._note_stop(call, Stop.SESSION_ENDED)
        self._stream.set()

    # The connection

    def _events(self) -> AsyncGenerator[bytes]:
        post, resumable = self._post, self._posted.revision.resumable_posts
        primed = resumable and post.durable
        age = get_settings().stream_max_age_seconds if primed else float("inf")
        shown = events(
            self._mailbox,
            opening=sse.priming(str(EventId(post.id, 0, post.epoch)), RETRY_MS) if primed else b"",
            label=lambda message: str(EventId(post.id, message.seq)) if post.durable else None,
            ending=sse.pause(RETRY_MS),
            max_age=age,
            drained=self._drained,
        )
        return Shown(shown, lambda: self._soon(self._disconnect))

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
        self._connected = False
        if self._reader is not None:
            ledger().readers.remove(self._reader)
        if self._posted.session is None:
            # 2026-07-28, basic/utilities/cancellation: a connection that goes is the cancellation.
            for call, peer in list(self._peers.items()):
                peer.stop(partial(self._note_stop, call, Stop.CANCELLED))

    def _soon(self, function: Callable[..., object], *args: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)


def _stopped(why: Stop) -> Outcome:
    ends = {Stop.SESSION_ENDED: session_ended, Stop.ACCESS_REVOKED: access_revoked}
    return ends.get(why, cancelled)()


def _keep(task: asyncio.Task[T]) -> asyncio.Task[T]:
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


_tasks: set[asyncio.Task[Any]] = set()
"""Calls must not be collected while they run, whatever becomes of their connections."""
