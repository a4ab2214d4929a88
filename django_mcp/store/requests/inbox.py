"""What comes in for requests in flight, whichever worker they are at: answers and cancellations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from ...clock import DatabaseNow
from ...models import PendingRequest, Session
from ...protocol.lifecycle import SessionInfo
from ...protocol.messages import RequestId, Response, encode
from ..database import alias, available, insist
from ..ledger import ledger
from ..sessions.liveness import LIVE
from .pending import CANCELLATION, Direction, State, early_cancellations, storable

MAX_EARLY: Final = 100
"""Most cancellations that a session has waiting for calls which may still get a row."""
MOST_AT_ONCE: Final = 100
"""Most that one more removes: where an older version left them, there may be very many."""


@dataclass(frozen=True, slots=True)
class Inbox:
    """The requests in flight of one server."""

    server: str

    def answer(self, session: SessionInfo, response: Response) -> None:
        """Take the client's answer to a question.

        The first one wins. Late, repeated and unasked ones are dropped, and so is one from another
        session, whose questions it cannot name.
        """
        given = {"result": response.result} if response.error is None else {"error": response.error}
        with available():
            asked = _running(session).filter(
                direction=Direction.TO_CLIENT, request_id=encode(response.id).decode()
            )
            channel = asked.values_list("channel", flat=True).first()
            answered = {"state": State.ANSWERED, "answer": encode(given).decode()}
            taken = channel is not None and insist(
                lambda: asked.update(**answered, ended=DatabaseNow())
            )
        if taken:
            ledger().doorbell.ring([str(channel)])

    def cancel(self, session: SessionInfo, request_id: RequestId, reason: str) -> None:
        """Cancel the newest call with an id; one that is unknown, or has ended, is ignored."""
        here = ledger().requests.find_unkept(session.id, request_id)
        with available():
            wanted = encode(request_id).decode()
            channel = insist(lambda: self._cancel(session, wanted, reason, here is None))
        if channel is not None:
            ledger().doorbell.ring([channel])
        elif here is not None:
            here.cancel()

    def _cancel(
        self, session: SessionInfo, request_id: str, reason: str, leave_word: bool
    ) -> str | None:
        with transaction.atomic(using=alias()):
            living = Session.objects.using(alias()).filter(pk=session.id, state__in=LIVE)
            if not living.update(last_active=DatabaseNow()):
                return None
            running = _running(session).filter(
                direction=Direction.FROM_CLIENT, request_id=request_id
            )
            newest = running.order_by("-created", "-id").values_list("id", "channel").first()
            if newest is not None:
                running.filter(pk=newest[0]).update(cancel_requested=True)
                return str(newest[1])
            if leave_word:
                # A call at another worker may have no row yet. When it gets one, it finds this:
                # both transactions begin by locking the session's row, so one sees the other.
                _forget_surplus(session)
                PendingRequest.objects.using(alias()).create(
                    session_id=session.id,
                    server=self.server,
                    request_id=request_id,
                    method=CANCELLATION,
                    name=storable(reason, 255),
                    state=State.CANCELLED,
                    ended=DatabaseNow(),
                )
        return None


def cancel_calls(rows: QuerySet[PendingRequest]) -> int:
    """Tell those of ``rows`` that are calls in flight to end, and return how many that were.

    Each ends at the worker that runs it; its client is told so under the request's own id.
    """
    calls = rows.filter(
        direction=Direction.FROM_CLIENT, state=State.RUNNING, cancel_requested=False
    )
    with available():
        channels = set(calls.values_list("channel", flat=True))
        told = insist(lambda: calls.update(cancel_requested=True))
    ledger().doorbell.ring(channels)
    return told


def _forget_surplus(session: SessionInfo) -> None:
    """See that one more cancellation fits among those of a session that found no call."""
    # The oldest go: what they were meant for has ended, or has had its row for long.
    left = early_cancellations().filter(session__pk=session.id).order_by("-created", "-id")
    surplus = list(left.values_list("pk", flat=True)[MAX_EARLY - 1 : MAX_EARLY + MOST_AT_ONCE])
    if surplus:
        PendingRequest.objects.using(alias()).filter(pk__in=surplus)._raw_delete(alias())


def _running(session: SessionInfo) -> QuerySet[PendingRequest]:
    return PendingRequest.objects.using(alias()).filter(session__pk=session.id, state=State.RUNNING)
