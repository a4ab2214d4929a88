"""A POST in the thread of its request: its calls run there, and it is answered in one piece."""

from __future__ import annotations

import threading
from typing import Final

from ..running.peers import BufferedPeer
from ..running.running_call import RunningCall
from ..running.user_code import InlineRunner
from ..server.function_call import Runner
from ..store.ledger import ledger
from .incoming_post import IncomingPost, state_of
from .replies import Reply

_state_lock: Final = threading.Lock()


class InlinePost(IncomingPost):
    """One POST whose calls run one after the other in the thread that has received it."""

    _current: RunningCall | None = None
    """The call that runs."""
    _peers: tuple[BufferedPeer, ...] = ()
    """The client of each call that has wanted to reach it."""

    async def run(self, runner: Runner) -> Reply:
        """Run the calls, and reply with what they have said and how they have ended."""
        await self.run_calls(runner)
        return self.reply([each for peer in self._peers for each in peer.notifications])

    async def run_calls(self, runner: Runner) -> None:
        """Run the calls, one after the other."""
        # Within a transaction of the caller's, as in a test, nobody else would see the session.
        is_watched = not self.caller.is_in_transaction
        books = ledger()
        for call in self.calls:
            call.post = self
            if is_watched:
                # It is a row as soon as it has become long.
                self._current = call
                books.add_request(call)
            try:
                running = call.run(runner)
                await (
                    running if call.context is None else runner.run_within(call.context, running)
                )
            finally:
                call.post = None
                if is_watched:
                    with _state_lock:
                        self._current = None
                    books.requests.remove(call)
            self.encode(call)
            if call.writer is not None:
                call.writer.end(call, state_of(call.outcome), b"")

    def peer(self, call: RunningCall) -> BufferedPeer:
        """Return the client, which gets what is said together with the answers."""
        runner = self.caller.runner
        assert isinstance(runner, InlineRunner)
        # Of a batch, each has its own: what ends one of them ends no other.
        peer = runner.peer(can_notify=self.caller.takes_events)
        self._peers += (peer,)
        return peer

    def want_rows(self, call: RunningCall) -> None:
        """Want a row for a call, unless it has ended. From any thread."""
        with _state_lock:
            if call is not self._current:
                return
            if call.writer is None:
                call.writer = self.writer(durable=False)
                call.writer.begin(call)
        call.writer.want_rows()
