"""Requests in flight, from the client and to it, as rows. Their state moves once."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final

from django.db.models import Case, F, Q, QuerySet, Value, When

from ...clock import DatabaseNow
from ...conf import get_settings
from ...models import PendingRequest
from ...protocol.messages import encode
from ..database import alias
from .records import CallRecord, QuestionRecord
from .stream_writer import StreamWriter

State = PendingRequest.State
Direction = PendingRequest.Direction

LISTEN: Final = "subscriptions/listen"
"""Method of a request that lasts until its client goes."""
CANCELLATION: Final = "notifications/cancelled"
"""Method of the row that a cancellation leaves for a call that has none yet."""


RENEWALS_PER_LEASE: Final = 3
"""How often a lease is renewed within its time, so that one attempt or two may fail."""
LOOKS_PER_LEASE: Final = 10
"""How often others look, within that time, for leases that have run out."""


def lease_seconds() -> float:
    """Return for how many seconds a process that says nothing counts as alive."""
    return get_settings().lease_seconds


def lease() -> timedelta:
    """Return the same as a duration."""
    return timedelta(seconds=lease_seconds())


def call_row(call: CallRecord, writer: StreamWriter, **values: Any) -> PendingRequest:
    """Return the row of a request from the client."""
    return PendingRequest(
        id=call.id,
        request_id=call.request_text,
        method=storable(call.method, 64),
        name=storable(call.name, 255),
        lease_until=DatabaseNow() + lease(),
        ended=None if values["state"] == State.RUNNING else DatabaseNow(),
        **_common(writer),
        **values,
    )


def question_row(question: QuestionRecord, writer: StreamWriter, **values: Any) -> PendingRequest:
    """Return the row of a request to the client."""
    if question.has_timed_out:
        values |= {"state": State.TIMED_OUT, "ended": DatabaseNow()}
    return PendingRequest(
        id=question.id,
        parent_id=question.call.id,
        direction=Direction.TO_CLIENT,
        request_id=encode(question.request_id).decode(),
        method=question.method,
        deadline=DatabaseNow() + timedelta(seconds=question.seconds),
        lease_until=DatabaseNow() + lease(),
        **_common(writer),
        **values,
    )


def storable(text: str, length: int) -> str:
    """Return what a column for so many characters takes of what a client has sent."""
    return text.replace("\x00", "")[:length]


def early_cancellations() -> QuerySet[PendingRequest]:
    """Return what cancellations left behind that found no call to cancel."""
    return PendingRequest.objects.using(alias()).filter(state=State.CANCELLED, method=CANCELLATION)


def time_out(question: QuestionRecord) -> None:
    """Give a question up, unless it has been answered in this moment."""
    rows = PendingRequest.objects.using(alias()).filter(pk=question.id, state=State.RUNNING)
    rows.update(state=State.TIMED_OUT, ended=DatabaseNow())


def end_questions(calls: Collection[uuid.UUID]) -> None:
    """End what calls that have ended asked, and keep no answer that a user gave to it."""
    asked = PendingRequest.objects.using(alias()).filter(parent__in=calls)
    open_or_answered = asked.filter(Q(state=State.RUNNING) | ~Q(answer=""))
    still_open = When(state=State.RUNNING, then=Value(State.CANCELLED))
    # In this order: MySQL reads in each assignment what the ones before it have set.
    open_or_answered.update(
        ended=Case(When(state=State.RUNNING, then=DatabaseNow()), default=F("ended")),
        state=Case(still_open, default=F("state")),
        answer="",
    )


def forget_answers(questions: Collection[uuid.UUID]) -> None:
    """Keep no longer what users have answered: whoever asked has it."""
    rows = PendingRequest.objects.using(alias()).filter(pk__in=questions)
    rows.exclude(answer="").update(answer="")


def _common(writer: StreamWriter) -> dict[str, Any]:
    return {
        "session_id": writer.session_id,
        "stream_id": writer.id if writer.durable else None,
        "user_id": getattr(writer.principal.user, "pk", None),
        "client_id": storable(writer.principal.client_id, 255),
        "server": writer.server,
    }
