"""The requests of one POST, and how what comes of them is put into one reply."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ..protocol.errors import INTERNAL, ErrorCode, Failed, MCPError
from ..protocol.lifecycle import SessionInfo
from ..protocol.versions import Revision
from ..running.call_observers import run_within
from ..running.running_call import Outcome, RunningCall
from ..server.failures import TOOL_FAILED, report
from ..server.function_call import Runner
from ..store.delivery.records import RequestState
from ..store.delivery.stream_writer import StreamWriter
from ..store.ledger import ledger
from . import replies
from .replies import Reply
from .request import Caller

logger = logging.getLogger("django_mcp.request")


class IncomingPost:
    """The requests of one POST, their calls, and how they are run.

    This one runs calls that say nothing but their answer. See its subclasses for others.
    """

    def __init__(
        self,
        calls: Sequence[RunningCall],
        revision: Revision,
        session: SessionInfo | None,
        caller: Caller,
        is_batch: bool,
    ) -> None:
        self.calls = calls
        self.revision = revision
        self.session = session
        self.caller = caller
        self.is_batch = is_batch

    async def run(self, runner: Runner) -> Reply:
        """Run the calls by ``runner``, and reply with what comes of them."""
        for call in self.calls:
            running, context = call.run(runner), call.context
            await (running if context is None else runner.run_within(context, running))
            self.encode(call)
        return self.reply()

    def writer(self, *, durable: bool) -> StreamWriter:
        """Return what writes down what becomes of it."""
        return StreamWriter(
            server=self.caller.server_name,
            principal=self.caller.principal,
            session_id=None if self.session is None else self.session.id,
            durable=durable,
            submit=ledger().submit,
        )

    def encode(self, call: RunningCall) -> None:
        """Put how a call ended into a message. The answers of a batch share what one may have."""
        assert call.outcome is not None
        limit = self.caller.settings.max_result_bytes // len(self.calls)
        try:
            call.outcome, call.answer = replies.encode(call.request_id, call.outcome, limit)
        except ValueError as error:
            instead = run_within(call.observation, self._unsendable, call, call.outcome, error)
            call.outcome, call.answer = replies.encode(call.request_id, instead, limit)
        if call.observation is not None:
            call.observation.finish(call.outcome, call.answer)

    def _unsendable(self, call: RunningCall, outcome: Outcome, error: ValueError) -> Outcome:
        """Return what is sent instead of an outcome that JSON has no form for."""
        event = f"{call.method} {call.name[:100]!r}: the answer has no JSON"
        reference = report(error, event, self.caller.request.django, logger)
        if isinstance(outcome, MCPError) or not outcome.is_tool_result:
            return Failed(f"{INTERNAL} {reference}")
        return replies.instead(outcome, f"{TOOL_FAILED} {reference}", failed=True)

    def reply(self, said: Sequence[bytes] = ()) -> Reply:
        """Return the reply that holds everything: what was said, and how the calls ended."""
        if self.is_batch:
            return replies.batch([call.answer for call in self.calls], said)
        call = self.calls[0]
        assert call.outcome is not None
        return replies.answer(call.outcome, call.answer, self.revision.era, said)


def state_of(outcome: Outcome | None) -> str:
    """Return how a request's row says that it ended."""
    assert outcome is not None
    if not isinstance(outcome, MCPError):
        return RequestState.FAILED if outcome.failed else RequestState.ANSWERED
    is_cancelled = outcome.code == ErrorCode.REQUEST_CANCELLED
    return RequestState.CANCELLED if is_cancelled else RequestState.FAILED
