"""What one POST asks, and how what comes of it is put into one reply."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..conf import get_settings
from ..principal import Principal
from ..protocol.errors import INTERNAL, ErrorCode, Failed, MCPError
from ..protocol.lifecycle import SessionInfo
from ..protocol.messages import Request as Message
from ..protocol.versions import Revision
from ..server.calling import Result
from ..server.dispatcher import dispatch
from ..server.exchange import Exchange
from ..server.failures import TOOL_FAILED, report
from ..server.methods import METHODS
from ..server.ports import Peer, Runner
from ..store.delivery.records import Call, State
from ..store.delivery.stream_writer import Post
from ..store.ledger import ledger
from . import replies
from .http import Reply, Request
from .peers import CallPeer
from .replies import Answer

logger = logging.getLogger("django_mcp.request")

Outcome = Result | MCPError


@dataclass(slots=True, eq=False)
class Item:
    """One request of a POST; or, with ``refused``, what only looks like one.

    Its call is made once, and then what was needed to make it is let go.
    """

    message: Message
    exchange: Callable[[Peer], Exchange] | None = None
    refused: MCPError | None = None

    @property
    def speaks(self) -> bool:
        """Whether a call of this method may say something before it ends."""
        method = METHODS.get(self.message.method)
        return method is not None and method.speaks

    @property
    def stays(self) -> bool:
        """Whether the answer is always a stream."""
        method = METHODS.get(self.message.method)
        return method is not None and method.streams

    async def outcome(self, peer: CallPeer, runner: Runner) -> Outcome:
        """Make the call."""
        begin, self.exchange = self.exchange, None
        if begin is None:
            assert self.refused is not None
            return self.refused
        exchange = begin(peer)
        peer.serve(exchange)
        try:
            outcome = await dispatch(exchange, runner)
            exchange.progress.finish()
            return outcome
        finally:
            # The two know each other: left so, each call would wait for the garbage collector.
            peer.serve(None)

    def call(self) -> Call:
        """Return the request as one in flight."""
        return Call(self.message.id, self.message.method, self.message.target)


@dataclass(slots=True, kw_only=True, eq=False)
class Posted:
    """The requests of one POST with all that is known before their calls."""

    request: Request
    server: str
    principal: Principal
    revision: Revision
    session: SessionInfo | None
    items: tuple[Item, ...]
    takes_stream: bool
    """Whether the client takes a stream for an answer."""
    is_batch: bool = False

    @property
    def speaks(self) -> bool:
        """Whether any of its calls may say something before it ends."""
        return any(item.speaks for item in self.items)

    @property
    def stays(self) -> bool:
        """Whether its connection is there for what happens later."""
        return any(item.stays for item in self.items)

    def post(self, *, durable: bool) -> Post:
        """Return it as one in flight."""
        return Post(
            server=self.server,
            principal=self.principal,
            session_id=None if self.session is None else self.session.id,
            durable=durable,
            submit=ledger().submit,
        )

    def answer(self, item: Item, outcome: Outcome) -> Answer:
        """Return how a call ended as it is sent. The answers of a batch share what one may have."""
        limit = get_settings().max_result_bytes // len(self.items)
        try:
            return replies.encode(item.message.id, outcome, limit)
        except ValueError as error:
            outcome = self._unsendable(item, outcome, error)
            return replies.encode(item.message.id, outcome, limit)

    def _unsendable(self, item: Item, outcome: Outcome, error: ValueError) -> Outcome:
        """Return what is sent instead of an outcome that JSON has no form for."""
        call = item.call()
        event = f"{call.method} {call.name[:100]!r}: the answer has no JSON"
        reference = report(error, event, self.request.django, logger)
        if isinstance(outcome, MCPError) or not outcome.tells_errors:
            return Failed(f"{INTERNAL} {reference}")
        return replies.instead(outcome, f"{TOOL_FAILED} {reference}", failed=True)

    def reply(self, answers: Sequence[Answer], said: Sequence[bytes] = ()) -> Reply:
        """Return the reply that holds everything: what was said, and how the calls ended."""
        if not self.is_batch:
            return replies.answer(answers[0], self.revision.era, said)
        return replies.batch([answer.body for answer in answers], said)


def state_of(outcome: Outcome) -> str:
    """Return how a request's row says that it ended."""
    if not isinstance(outcome, MCPError):
        return State.FAILED if outcome.failed else State.ANSWERED
    return State.CANCELLED if outcome.code == ErrorCode.REQUEST_CANCELLED else State.FAILED
