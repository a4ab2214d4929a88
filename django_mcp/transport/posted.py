"""What one POST asks, and how what comes of it is put into one reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..protocol.errors import ErrorCode, MCPError
from ..protocol.messages import Request as Message
from ..protocol.versions import Revision
from ..server.calling import Result
from ..server.dispatcher import dispatch
from ..server.exchange import Exchange
from ..server.methods import METHODS
from ..server.ports import Peer, Principal, Runner, SessionInfo
from ..store.ledger import ledger
from ..store.posts import Call, Post, State
from . import replies
from .http import Reply, Request
from .peers import CallPeer

Outcome = Result | MCPError


@dataclass(frozen=True, slots=True)
class Item:
    """One request of a POST; or, with ``refused``, what only looks like one."""

    message: Message
    exchange: Callable[[Peer], Exchange] | None = None
    refused: MCPError | None = None

    @property
    def speaks(self) -> bool:
        """Whether a call of this method may say something before it ends."""
        method = METHODS.get(self.message.method)
        return method is not None and method.speaks

    async def outcome(self, peer: CallPeer, runner: Runner) -> Outcome:
        """Make the call."""
        if self.exchange is None:
            assert self.refused is not None
            return self.refused
        exchange = self.exchange(peer)
        peer.pulse = exchange.progress.pulse
        outcome = await dispatch(exchange, runner)
        exchange.progress.finish()
        return outcome

    def call(self) -> Call:
        """Return the request as one in flight."""
        params = self.message.params
        name = params.get("name") or params.get("uri") or ""
        return Call(self.message.id, self.message.method, str(name))


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def post(self, *, durable: bool) -> Post:
        """Return it as one in flight."""
        return Post(
            server=self.server,
            principal=self.principal,
            session_id=None if self.session is None else self.session.id,
            durable=durable,
            submit=ledger().submit,
        )

    def reply(self, outcomes: list[Outcome], said: Sequence[bytes] = ()) -> Reply:
        """Return the reply that holds everything: what was said, and how the calls ended."""
        if not self.is_batch:
            return replies.answer(self.items[0].message.id, outcomes[0], self.revision.era, said)
        answers = [
            replies.encode(item.message.id, outcome)
            for item, outcome in zip(self.items, outcomes, strict=True)
        ]
        return replies.batch(answers, said)


def state_of(outcome: Outcome) -> str:
    """Return how a request's row says that it ended."""
    if not isinstance(outcome, MCPError):
        return State.ANSWERED
    return State.CANCELLED if outcome.code == ErrorCode.REQUEST_CANCELLED else State.FAILED
