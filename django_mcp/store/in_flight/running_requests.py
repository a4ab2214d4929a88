"""Requests in flight that this process knows: its calls, and the questions it has asked.

One query asks about all that have rows: which are to be cancelled, which somebody else has ended,
which sessions have ended, which questions were answered. Another one asks after the sessions of
calls that have none yet.
"""

from __future__ import annotations

import json
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any

from ...auth import Guard, Principal
from ...clock import DatabaseNow
from ...conf import get_settings
from ...models import PendingRequest, Session
from ...protocol.messages import RequestId, same_id
from ..access.access_watch import AccessWatch
from ..database import alias
from ..delivery.records import CallRecord
from ..delivery.request_rows import LISTEN, RENEWALS_PER_LEASE, forget_answers, lease, lease_seconds
from ..delivery.stream_writer import StreamWriter
from ..parent_rows import LIVE

State = PendingRequest.State


class StopReason(Enum):
    """Why a call must stop."""

    CANCELLED = auto()
    """Its client, or somebody in the admin, wants it so."""
    ENDED_ELSEWHERE = auto()
    """Somebody else has ended it, so that nothing more may be said of it."""
    SESSION_ENDED = auto()
    """The session that it belongs to is no more."""
    ACCESS_REVOKED = auto()
    """Its caller may use the server no longer."""
    NOT_STORED = auto()
    """The database takes nothing of it."""
    TOO_OLD = auto()
    """It holds a connection for later news, and has done so for long enough."""
    SHUTTING_DOWN = auto()
    """The process that runs it is about to end."""


class RunningRequest(CallRecord, ABC):
    """A request that this process answers."""

    principal: Principal
    session_id: str | None
    writer: StreamWriter | None = None
    """Writes what becomes of it, as soon as that is to be rows."""
    has_client = True
    """Whether the connection that it came on is still there."""
    guard: Guard | None = None
    """Says whether a user may go on with it, where not everybody may."""
    is_access_watched = False
    """Whether its caller's access is watched."""

    @property
    def wants_rows(self) -> bool:
        """Whether it is a row, or is about to be one."""
        return self.writer is not None and self.writer.wants_rows

    @abstractmethod
    def want_rows(self) -> None:
        """Want a row for it, unless it has ended. From any thread."""

    @abstractmethod
    def stop(self, reason: StopReason) -> None:
        """Tell it to end. From any thread, and more than once."""

    def flush(self) -> None:
        """Send what it holds back. Called from time to time while it runs."""

    def cancel(self) -> None:
        """Stop it because its client wants that."""
        self.stop(StopReason.CANCELLED)

    def revoke(self) -> None:
        """Stop it because its caller may make it no longer."""
        self.stop(StopReason.ACCESS_REVOKED)


class RunningRequests:
    """The requests in flight of one process."""

    def __init__(self, process_id: str, access_watch: AccessWatch) -> None:
        self._process_id = process_id
        self._access_watch = access_watch
        self._calls: dict[RunningRequest, None] = {}
        self._questions: dict[uuid.UUID, Callable[[dict[str, Any] | None], None]] = {}
        self._renewed = float("-inf")

    def __bool__(self) -> bool:
        return bool(self._calls or self._questions)

    @property
    def has_rows(self) -> bool:
        """Whether any of them is a row."""
        return bool(self._questions) or any(each.wants_rows for each in self.running())

    def running(self) -> list[RunningRequest]:
        """Return the calls. From any thread."""
        return list(self._calls)

    def add(self, running: RunningRequest) -> None:
        """Watch a call. From any thread."""
        self._calls[running] = None
        principal = running.principal
        if principal.recheck is not None or getattr(principal.user, "pk", None) is not None:
            running.is_access_watched = True
            self._access_watch.watch(running, principal, running.revoke, lambda: running.guard)

    def remove(self, running: RunningRequest) -> None:
        """Forget a call. From any thread."""
        self._calls.pop(running, None)
        if running.is_access_watched:
            self._access_watch.unwatch(running)

    def find_without_row(self, session_id: str, request_id: RequestId) -> RunningRequest | None:
        """Return the newest call with an id that runs here and has no row yet."""
        found = [
            running
            for running in self.running()
            if running.session_id == session_id
            and not running.wants_rows
            and same_id(running.request_id, request_id)
        ]
        return max(found, key=lambda running: running.started, default=None)

    def watch_question(
        self, question: uuid.UUID, answered: Callable[[dict[str, Any] | None], None]
    ) -> None:
        """Watch a question: ``answered`` gets ``{"result": ...}``, ``{"error": ...}`` or, if it was
        ended without an answer, ``None``. From any thread.
        """
        self._questions[question] = answered

    def unwatch_question(self, question: uuid.UUID) -> None:
        """Watch a question no longer. From any thread."""
        self._questions.pop(question, None)

    def want_rows_for_long_calls(self) -> None:
        """Give rows to the calls that have become long, and send what they hold back."""
        limit = time.monotonic() - get_settings().stream_after_seconds
        for running in self.running():
            # One that listens writes its row itself, however long it has waited for its turn.
            if running.started < limit and running.method != LISTEN:
                running.want_rows()
            running.flush()

    def look(self) -> None:
        """Find what has become of them."""
        running = self.running()
        unwritten = [each for each in running if not (each.writer and each.writer.has_rows)]
        self._look_for_sessions(unwritten)
        self._look_for_rows([each for each in running if each.wants_rows])

    def _look_for_sessions(self, silent: Sequence[RunningRequest]) -> None:
        """Stop those without rows whose sessions have ended: else only their rows would tell."""
        sessions = {each.session_id for each in silent if each.session_id}
        if not sessions:
            return
        rows = Session.objects.using(alias()).filter(pk__in=sessions, state__in=LIVE)
        ended = sessions - {str(key) for key in rows.values_list("pk", flat=True)}
        for each in silent:
            if each.session_id in ended:
                each.stop(StopReason.SESSION_ENDED)

    def _look_for_rows(self, requests: Sequence[RunningRequest]) -> None:
        calls = {each.id: each for each in requests}
        questions = dict(self._questions)
        watched = [*calls, *questions]
        if not watched:
            return
        rows = PendingRequest.objects.using(alias()).filter(pk__in=watched)
        facts = rows.values_list("id", "state", "cancel_requested", "session__state", "answer")
        gone = {key for key, each in calls.items() if each.writer and each.writer.has_rows}
        taken = []
        for key, state, cancelled, session_state, answer in facts:
            gone.discard(key)
            if key in calls:
                self._check_call(calls[key], state, cancelled, session_state)
            elif state != State.RUNNING:
                self.unwatch_question(key)
                questions[key](json.loads(answer) if answer else None)
                taken += [key] if answer else []
        for key in gone:
            # Rows go with their sessions, and with their users.
            calls[key].stop(StopReason.SESSION_ENDED)
        if taken:
            # If this fails, they go with the end of their calls.
            forget_answers(taken)

    def renew(self) -> None:
        """Renew the leases, so that nobody takes this process for dead."""
        if (
            not self.has_rows
            or time.monotonic() - self._renewed < lease_seconds() / RENEWALS_PER_LEASE
        ):
            return
        own = PendingRequest.objects.using(alias()).filter(
            owner=self._process_id, state=State.RUNNING
        )
        own.update(lease_until=DatabaseNow() + lease())
        self._renewed = time.monotonic()

    def _check_call(
        self, running: RunningRequest, state: str, cancelled: bool, session_state: str | None
    ) -> None:
        if state != State.RUNNING:
            running.stop(StopReason.ENDED_ELSEWHERE)
        elif session_state is not None and session_state not in LIVE:
            running.stop(StopReason.SESSION_ENDED)
        elif cancelled:
            running.stop(StopReason.CANCELLED)
