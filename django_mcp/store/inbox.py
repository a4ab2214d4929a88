"""What comes in for requests in flight, whichever worker they are at: answers and cancellations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from ..clock import DatabaseNow
from ..models import PendingRequest
from ..protocol.lifecycle import SessionInfo
from ..protocol.messages import RequestId, Response, encode
from .database import alias, reporting_outages, with_retries
from .delivery.request_rows import CANCELLATION, Direction, State, early_cancellations, storable
from .ledger import ledger
from .parent_rows import lock_live_sessions

MAX_EARLY: Final = 100
"""Most cancellations that a session has waiting for calls which may still get a row."""
REMOVED_CANCELLATIONS: Final = 100
"""Most that one more removes: where an older version left them, there may be very many."""


def take_answer(
    session: SessionInfo, response: Response, check: Callable[[str, str], None] | None = None
) -> None:
    """Take the client's answer to a question.

    ``check`` is given method and name of the request that has asked, as its row has them, and
    raises what speaks against an answer. The first one wins. Late, repeated and unasked ones are
    dropped, and so is one from another session, whose questions it cannot name.
    """
    given = {"result": response.result} if response.error is None else {"error": response.error}
    with reporting_outages():
        asked = _running(session).filter(
            direction=Direction.TO_CLIENT, request_id=encode(response.id).decode()
        )
        if check is not None:
            for method, name in asked.values_list("parent__method", "parent__name"):
                check(method or "", name or "")
        channel = asked.values_list("channel", flat=True).first()
        answered = {"state": State.ANSWERED, "answer": encode(given).decode()}
        taken = channel is not None and with_retries(
            lambda: asked.update(**answered, ended=DatabaseNow())
        )
    if taken:
        ledger().doorbell.wake([str(channel)])


def cancel(server: str, session: SessionInfo, request_id: RequestId, reason: str) -> None:
    """Cancel the newest call with an id that has a row; or else the newest that runs here without.

    A client has no two of an id in flight. What is unknown, or has ended, is ignored.
    """
    here = ledger().requests.find_without_row(session.id, request_id)
    with reporting_outages():
        wanted = encode(request_id).decode()
        channel = with_retries(lambda: _cancel(server, session, wanted, reason, here is None))
    if channel is not None:
        ledger().doorbell.wake([channel])
    elif here is not None:
        here.cancel()


def cancel_calls(rows: QuerySet[PendingRequest]) -> int:
    """Tell those of ``rows`` that are calls in flight to end, and return how many that were.

    Each ends at the worker that runs it; its client is told so under the request's own id.
    """
    calls = rows.filter(
        direction=Direction.FROM_CLIENT, state=State.RUNNING, cancel_requested=False
    )
    with reporting_outages():
        channels = set(calls.values_list("channel", flat=True))
        number = with_retries(lambda: calls.update(cancel_requested=True))
    ledger().doorbell.wake(channels)
    return number


def _cancel(
    server: str, session: SessionInfo, request_id: str, reason: str, leaves_row: bool
) -> str | None:
    with transaction.atomic(using=alias()):
        if not lock_live_sessions([session.id]):
            return None
        running = _running(session).filter(direction=Direction.FROM_CLIENT, request_id=request_id)
        newest = running.order_by("-created", "-id").values_list("id", "channel").first()
        if newest is not None:
            running.filter(pk=newest[0]).update(cancel_requested=True)
            return str(newest[1])
        if leaves_row:
            # A call at another worker may have no row yet. When it gets one, it finds this:
            # both transactions begin by locking the session's row, so one sees the other.
            _forget_surplus(session)
            PendingRequest.objects.using(alias()).create(
                session_id=session.id,
                server=server,
                request_id=request_id,
                method=CANCELLATION,
                name=storable(reason, 255),
                # What has never run does not end: so the index finds these among the others.
                state=State.CANCELLED,
                ended=None,
            )
    return None


def _forget_surplus(session: SessionInfo) -> None:
    """Make room for one more among the cancellations of a session that found no call."""
    # The oldest go: what they were meant for has ended, or has had its row for long.
    left = early_cancellations().filter(session__pk=session.id).order_by("-created", "-id")
    surplus = list(
        left.values_list("pk", flat=True)[MAX_EARLY - 1 : MAX_EARLY + REMOVED_CANCELLATIONS]
    )
    if surplus:
        PendingRequest.objects.using(alias()).filter(pk__in=surplus)._raw_delete(alias())


def _running(session: SessionInfo) -> QuerySet[PendingRequest]:
    return PendingRequest.objects.using(alias()).filter(session__pk=session.id, state=State.RUNNING)
