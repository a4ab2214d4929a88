"""How calls are made at each door: inline, or as a task of their own that a stream accompanies."""

from __future__ import annotations

from typing import Protocol

from ..protocol.errors import ErrorCode, MCPError
from ..server.ports import Runner
from ..store.database import is_in_transaction
from ..store.ledger import ledger
from ..store.requests.running_requests import Running, Stop
from . import shutdown
from .answering import Answering
from .connections import open_connections
from .http import Reply
from .making import ended_early
from .peers import Collected
from .posted import Item, Outcome, Posted, state_of
from .replies import Answer
from .runners import Inline, OnLanes


class Door(Protocol):
    """What differs between the ways into the endpoint."""

    runner: Runner
    streams: bool
    """Whether a reply can be sent piece by piece, without a thread that waits."""

    def admit(self, caller: str) -> None:
        """Go on for ``caller``, as whom limits know who is at the door."""

    async def answer(self, posted: Posted) -> Reply:
        """Make the calls that a POST asks for, and reply with what comes of them."""


class InlineDoor:
    """Answers in one piece, in the thread and on the database connection of the request."""

    streams = False

    def __init__(self) -> None:
        self.runner: Runner = Inline()

    def admit(self, caller: str) -> None:
        """See :class:`Door`."""

    async def answer(self, posted: Posted) -> Reply:
        """See :class:`Door`."""
        peer = Collected(listens=posted.takes_stream)
        # Within a transaction of the caller's, as in a test, nobody else would see the session.
        watched = posted.speaks and not is_in_transaction()
        make = self._watched if watched else self._make
        return posted.reply([await make(item, posted, peer) for item in posted.items], peer.said)

    async def _make(self, item: Item, posted: Posted, peer: Collected) -> Answer:
        return posted.answer(item, await item.outcome(peer, self.runner))

    async def _watched(self, item: Item, posted: Posted, peer: Collected) -> Answer:
        """Make a call that is a row as soon as it has become long."""
        call, post = item.call(), posted.post(durable=False)
        reasons: list[Stop] = []

        def stop(why: Stop) -> None:
            peer.stop(lambda: reasons.append(why))

        running = Running(call, post, stop, guard=peer.guard)
        post.begin(call)
        ledger().requests.begin(running)
        ledger().nudge()
        try:
            outcome = await item.outcome(peer, self.runner)
        finally:
            ledger().requests.end(running)
        if reasons and _is_cancelled(outcome):
            outcome = ended_early(reasons[0])
        answer = posted.answer(item, outcome)
        post.end(call, state_of(answer.outcome), b"")
        return answer


def _is_cancelled(outcome: Outcome) -> bool:
    return isinstance(outcome, MCPError) and outcome.code == ErrorCode.REQUEST_CANCELLED


class LoopDoor:
    """Answers on the server's event loop: calls are tasks, and what they say is a stream."""

    streams = True

    def __init__(self) -> None:
        self.runner: Runner = OnLanes()

    def admit(self, caller: str) -> None:
        """See :class:`Door`."""
        self.runner = OnLanes(caller)

    async def answer(self, posted: Posted) -> Reply:
        """See :class:`Door`."""
        shutdown.prepare()
        if posted.speaks:
            # Before anything is in flight: whoever is refused here has not been heard.
            caller = posted.principal.limit_key
            connection = open_connections.enter(caller, waits=posted.stays)
            return await Answering(posted, self.runner, connection).reply()
        peer = Collected(listens=False)
        outcomes = [(item, await item.outcome(peer, self.runner)) for item in posted.items]
        return posted.reply([posted.answer(*each) for each in outcomes])
