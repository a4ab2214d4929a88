"""One call on an event loop: made as a task, watched by the ledger, ended early if it must be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..protocol.errors import MCPError, access_revoked, cancelled, session_ended, shutting_down
from ..server.ports import Runner
from ..store.delivery.records import Call
from ..store.delivery.stream_writer import Post
from ..store.ledger import ledger
from ..store.requests.running_requests import Running, Stop
from .peers import CallPeer
from .posted import Item, Outcome
from .tasks import keep, start


class Making:
    """One call of a POST, and what may end it early."""

    __slots__ = (
        "_ended",
        "_has_left",
        "_is_over",
        "_running",
        "_soon",
        "_why",
        "call",
        "item",
        "peer",
    )

    def __init__(self, item: Item, call: Call, peer: CallPeer, soon: Callable[..., object]) -> None:
        self.item = item
        self.call = call
        self.peer = peer
        self._soon = soon
        self._running: Running | None = None
        self._has_left = False
        self._is_over = False
        self._why: Stop | None = None
        self._ended: asyncio.Future[None] | None = None

    def watch(self, post: Post) -> None:
        """Let the ledger know of the call, unless it has ended already."""
        if not self._has_left:
            peer = self.peer
            self._running = Running(self.call, post, self._stop, peer.pulse, peer.guard)
            ledger().requests.begin(self._running)

    def leave(self) -> None:
        """Let the ledger forget the call."""
        self._has_left = True
        if self._running is not None:
            ledger().requests.end(self._running)
            self._running = None

    async def outcome(self, runner: Runner) -> Outcome:
        """Make the call; return how it has ended, or has been ended."""
        if self._is_over:
            return ended_early(self._why)
        making = start(self.item.outcome(self.peer, runner))
        if making.done():
            return making.result()
        self._ended = asyncio.get_running_loop().create_future()
        making.add_done_callback(lambda _: self.end(None))
        await self._ended
        if self._why is None:
            return making.result()
        # An asynchronous function is cancelled; a synchronous one ends at its next word. Nobody
        # waits for either.
        making.cancel()
        keep(making)
        return ended_early(self._why)

    def end(self, why: Stop | None) -> None:
        """End the call, unless it is over: by itself, if there is no ``why``. On the loop."""
        if self._is_over:
            return
        self._is_over, self._why = True, why
        if self._ended is not None:
            self._ended.set_result(None)

    def _stop(self, why: Stop) -> None:
        """End the call early. From any thread, and more than once."""

        def note() -> None:
            if not self.peer.concludes:
                self._soon(self.end, why)

        self.peer.stop(note)


def ended_early(why: Stop | None) -> MCPError:
    """Return how a call has ended that was told to stop."""
    return (_ENDS.get(why, cancelled) if why else cancelled)()


_ENDS = {
    Stop.SESSION_ENDED: session_ended,
    Stop.ACCESS_REVOKED: access_revoked,
    Stop.SHUTTING_DOWN: shutting_down,
}
