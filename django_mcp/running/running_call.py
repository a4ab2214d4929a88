"""One request of a client while it is answered."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextvars import Context
from typing import Final, Protocol

from ..auth import Guard
from ..protocol.errors import (
    ErrorCode,
    MCPError,
    access_revoked,
    cancelled,
    internal_error,
    session_ended,
    shutting_down,
    taken_for_dead,
)
from ..protocol.messages import Request
from ..server.dispatch import Begun, finish
from ..server.exchange import Exchange
from ..server.function_call import Runner
from ..server.registry import MCPServer
from ..server.results import Result
from ..signals import call_finished, call_started
from ..store.in_flight.running_requests import RunningRequest, StopReason
from .call_observers import Observation, calls_log, known_levels, observers
from .eager_tasks import keep, start
from .peers import BufferedPeer, CallPeer
from .thread_locals import adopt_locals
from .threads import call_on

Outcome = Result | MCPError


class PostOfCalls(Protocol):
    """A POST whose calls run, as they know it. Safe to use from any thread."""

    def peer(self, call: RunningCall) -> CallPeer:
        """Return what a call reaches its client by; nobody, once it has ended."""

    def want_rows(self, call: RunningCall) -> None:
        """Want rows for the calls, unless this one has ended."""


class RunningCall(RunningRequest):
    """A request from when it is accepted until its outcome is known.

    With ``refused`` it is no request but an error, in the place of one in a batch.
    """

    observation: Observation | None = None
    """What tells of it whoever watches calls; ``None`` where nobody does, and until it begins."""

    def __init__(
        self,
        message: Request,
        server: MCPServer,
        exchange: Exchange | None,
        refused: MCPError | None = None,
    ) -> None:
        super().__init__(message.id, message.method, message.target)
        self._server = server
        self.exchange = exchange
        """What is needed to answer it; let go once it is answered."""
        self.outcome: Outcome | None = refused
        """How it has ended, or has been ended; ``None`` while it runs."""
        self.answer = b""
        """The message that says so, as it is sent; empty while it runs."""
        self.is_registered = False
        """Whether the ledger was told of it."""
        self.post: PostOfCalls | None = None
        """What it is one of the calls of, while it runs."""
        self.begun: Begun | None = None
        """What its handler has made of it; let go once it runs."""
        self.context: Context | None = None
        """What it runs in, of a batch: a copy of the request's, so that nothing that one call sets
        reaches another. One that is alone has the request's own."""
        self._peer: CallPeer | None = None
        self._reason: StopReason | None = None
        self._has_gone = False
        """Whether nobody is there any more whom its outcome would reach."""
        self._guard: Guard | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._ended: Callable[[RunningCall], object] | None = None
        if exchange is not None:
            self.principal = exchange.principal
            self.session_id = None if exchange.session is None else exchange.session.id
            exchange.make_peer = self.reach

    @property
    def guard(self) -> Guard | None:  # type: ignore[override]
        """Says whether a user may go on with it, where not everybody may."""
        return self._guard if self.exchange is None else self.exchange.guard

    def reach(self) -> CallPeer:
        """Return the client, as the call can reach it. From any thread."""
        with _reaching:
            if self._peer is None:
                post = self.post
                self._peer = post.peer(self) if post is not None else BufferedPeer(can_notify=False)
            return self._peer

    def want_rows(self) -> None:
        """Want a row for it, unless it has ended. From any thread."""
        if (post := self.post) is not None:
            post.want_rows(self)

    async def run(self, runner: Runner) -> None:
        """Answer the request, of which its handler has made :attr:`begun`."""
        exchange, begun, self.begun = self.exchange, self.begun, None
        if exchange is None:
            return
        assert begun is not None
        if (reason := self._reason) is not None:
            # Of a batch, and stopped while the one before it ran.
            self._settle(ended_early(reason))
            return
        # Asked here, since a function that asks would be called for every request.
        if (
            observers
            or call_started.receivers
            or call_finished.receivers
            or (
                known_levels.get(logging.INFO) is not False and calls_log.isEnabledFor(logging.INFO)
            )
        ):
            self.observation = Observation(self._server, exchange, runner)
        try:
            if self.observation is not None:
                await self.observation.start()
            outcome = await finish(begun, self._server, exchange, runner)
            if exchange.reported_progress is not None:
                exchange.reported_progress.finish()
            if self._peer is not None and self._peer.can_listen:
                # Nothing of what has answered the request is kept while its client listens.
                self._guard, self.exchange = exchange.guard, None
                del exchange, begun
                await self._peer.wait_until_ended()
                if self._has_gone:
                    outcome = cancelled()
        except BaseException:
            if self.observation is not None:
                self.observation.abandon()
            self._settle(cancelled())
            raise
        if self.observation is not None:
            self.observation.leave()  # first: what comes next may be another call's
        if self._reason is not None and _is_cancelled(outcome):
            outcome = ended_early(self._reason)
        self._settle(outcome)

    def start(self, runner: Runner, ended: Callable[[RunningCall], object]) -> None:
        """Run as a task, at once up to where it first waits.

        If it has not ended by then, ``ended`` is called when it has.
        """
        self._loop = asyncio.get_running_loop()
        if (context := self.context) is None:
            task = start(self.run(runner))
        else:  # the one before may have been ended from somewhere else
            task = context.run(adopt_locals, context, start, self.run(runner))
        if self.outcome is None:
            self._task, self._ended = keep(task), ended

    def stop(self, reason: StopReason) -> None:
        """Tell the call to end. From any thread, and more than once.

        On a loop it is ended there and then, unless it ends by itself in good order.
        """
        if self._reason is None:
            self._reason = reason
        exchange = self.exchange
        if exchange is not None:
            exchange.stopped = True
        # Only now: a peer that is made at this moment sees that it is to stop.
        peer = self._peer
        if peer is not None:
            peer.stop()
        if self._loop is not None and not (peer is not None and peer.ends_by_itself):
            call_on(self._loop, self._end_early)

    def abandon(self) -> None:
        """End the call, whose client has gone. On the loop."""
        self._has_gone = True
        is_staying = self.exchange is None
        self.stop(StopReason.CANCELLED)
        if not is_staying:
            self._end_early()

    def flush(self) -> None:
        """Let out what the call holds back."""
        if (exchange := self.exchange) is not None:
            exchange.flush()

    def _end_early(self) -> None:
        if self.outcome is not None or self._reason is None:
            return
        task = self._task
        self._settle(ended_early(self._reason))
        if task is not None:
            # An asynchronous function is cancelled; a synchronous one ends at its next word. Nobody
            # waits for either.
            task.cancel()

    def _settle(self, outcome: Outcome) -> None:
        if self.outcome is not None:
            return  # it was ended early
        self.outcome = outcome
        # They know each other: left so, each call would wait for the garbage collector.
        ended, self._ended, self._task, peer = self._ended, None, None, self._peer
        self.exchange = self._peer = self.begun = None
        if peer is not None:
            peer.end()
        if ended is not None:
            ended(self)


_reaching: Final = threading.Lock()


def ended_early(reason: StopReason) -> MCPError:
    """Return how a call has ended that was told to stop."""
    return _ENDS.get(reason, cancelled)()


_ENDS = {
    StopReason.SESSION_ENDED: session_ended,
    StopReason.ACCESS_REVOKED: access_revoked,
    StopReason.ENDED_ELSEWHERE: taken_for_dead,
    StopReason.NOT_STORED: lambda: internal_error("The answer could not be kept"),
    StopReason.SHUTTING_DOWN: shutting_down,
}


def _is_cancelled(outcome: Outcome) -> bool:
    return isinstance(outcome, MCPError) and outcome.code == ErrorCode.REQUEST_CANCELLED
