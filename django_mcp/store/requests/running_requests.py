"""Requests in flight that this process knows: its calls, and the questions it has asked.

One query asks about all that have rows: which are to be cancelled, which somebody else has settled,
which sessions have ended, which questions were answered. Another one asks after the sessions of
calls that have none yet.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ...clock import DatabaseNow
from ...conf import get_settings
from ...models import PendingRequest, Session
from ...principal import Guard
from ...protocol.messages import RequestId, same_id
from ..access.access_watch import Audience
from ..database import alias
from ..delivery.records import Call
from ..delivery.stream_writer import Post
from ..sessions.liveness import LIVE
from .pending import LISTEN, RENEWALS, forget_answers, lease, lease_seconds

State = PendingRequest.State


class Stop(Enum):
    """Why a call must stop."""

    CANCELLED = auto()
    """Its client, or somebody in the admin, wants it so."""
    SETTLED = auto()
    """Somebody else has ended it, so that nothing more may be said of it."""
    SESSION_ENDED = auto()
    """The session that it belongs to is no more."""
    ACCESS_REVOKED = auto()
    """Its caller may use the server no longer."""
    SHUTTING_DOWN = auto()
    """The process that runs it is about to end."""


@dataclass(slots=True, eq=False)
class Running:
    """A call in this process. ``stop`` may be called from any thread, and more than once;
    ``pulse`` is called from time to time and lets out what the call holds back.
    """

    call: Call
    post: Post
    stop: Callable[[Stop], None]
    pulse: Callable[[], None] = lambda: None
    guard: Callable[[], Guard | None] = lambda: None
    """Returns what says whether a user may go on with the call, where not everybody may."""

    def cancel(self) -> None:
        """Stop the call because its client wants that."""
        self.stop(Stop.CANCELLED)

    def revoke(self) -> None:
        """Stop the call because its caller may make it no longer."""
        self.stop(Stop.ACCESS_REVOKED)


class Requests:
    """The requests in flight of one process."""

    def __init__(self, process_id: str, audience: Audience) -> None:
        self._process_id = process_id
        self._audience = audience
        self._calls: dict[Call, Running] = {}
        self._questions: dict[uuid.UUID, Callable[[dict[str, Any] | None], None]] = {}
        self._renewed = float("-inf")

    def __bool__(self) -> bool:
        return bool(self._calls or self._questions)

    @property
    def has_rows(self) -> bool:
        """Whether any of them is a row."""
        return bool(self._questions) or any(each.post.is_open for each in self.running())

    def running(self) -> list[Running]:
        """Return the calls. From any thread."""
        return list(self._calls.values())

    def begin(self, running: Running) -> None:
        """Watch a call. From any thread."""
        self._calls[running.call] = running
        self._audience.enter(running.call, running.post.principal, running.revoke, running.guard)

    def end(self, running: Running) -> None:
        """Forget a call. From any thread."""
        self._calls.pop(running.call, None)
        self._audience.leave(running.call)

    def find_unkept(self, session_id: str, request_id: RequestId) -> Running | None:
        """Return the newest call with an id that runs here and has no row yet."""
        found = [
            running
            for running in self.running()
            if running.post.session_id == session_id
            and not running.post.is_open
            and same_id(running.call.request_id, request_id)
        ]
        return max(found, key=lambda running: running.call.started, default=None)

    def ask(self, question: uuid.UUID, answered: Callable[[dict[str, Any] | None], None]) -> None:
        """Watch a question: ``answered`` gets ``{"result": ...}``, ``{"error": ...}`` or, if it was
        settled without an answer, ``None``. From any thread.
        """
        self._questions[question] = answered

    def forget(self, question: uuid.UUID) -> None:
        """Watch a question no longer. From any thread."""
        self._questions.pop(question, None)

    def pulse(self) -> None:
        """Give rows to the calls that have become long, and let out what they hold back."""
        limit = time.monotonic() - get_settings().stream_after_seconds
        for running in self.running():
            # One that listens writes its row itself, however long it has waited for its turn.
            if running.call.started < limit and running.call.method != LISTEN:
                running.post.open()
            running.pulse()

    def look(self) -> None:
        """Find what has become of them."""
        running = self.running()
        self._look_for_sessions([each for each in running if not each.post.is_open])
        self._look_for_rows([each for each in running if each.post.is_open])

    def _look_for_sessions(self, silent: Sequence[Running]) -> None:
        """Stop those without rows whose sessions have ended: else only their rows would tell."""
        sessions = {each.post.session_id for each in silent if each.post.session_id}
        if not sessions:
            return
        rows = Session.objects.using(alias()).filter(pk__in=sessions, state__in=LIVE)
        ended = sessions - {str(key) for key in rows.values_list("pk", flat=True)}
        for each in silent:
            if each.post.session_id in ended:
                each.stop(Stop.SESSION_ENDED)

    def _look_for_rows(self, kept: Sequence[Running]) -> None:
        calls = {each.call.id: each for each in kept}
        questions = dict(self._questions)
        watched = [*calls, *questions]
        if not watched:
            return
        rows = PendingRequest.objects.using(alias()).filter(pk__in=watched)
        facts = rows.values_list("id", "state", "cancel_requested", "session__state", "answer")
        gone = {key for key, each in calls.items() if each.post.is_kept}
        taken = []
        for key, state, cancelled, session_state, answer in facts:
            gone.discard(key)
            if key in calls:
                self._check_call(calls[key], state, cancelled, session_state)
            elif state != State.RUNNING:
                self.forget(key)
                questions[key](json.loads(answer) if answer else None)
                taken += [key] if answer else []
        for key in gone:
            # Rows go with their sessions, and with their users.
            calls[key].stop(Stop.SESSION_ENDED)
        if taken:
            # If this fails, they go with the end of their calls.
            forget_answers(taken)

    def renew(self) -> None:
        """Renew the leases, so that nobody takes this process for dead."""
        if not self.has_rows or time.monotonic() - self._renewed < lease_seconds() / RENEWALS:
            return
        own = PendingRequest.objects.using(alias()).filter(
            owner=self._process_id, state=State.RUNNING
        )
        own.update(lease_until=DatabaseNow() + lease())
        self._renewed = time.monotonic()

    def _check_call(
        self, running: Running, state: str, cancelled: bool, session_state: str | None
    ) -> None:
        if state != State.RUNNING:
            running.stop(Stop.SETTLED)
        elif session_state is not None and session_state not in LIVE:
            running.stop(Stop.SESSION_ENDED)
        elif cancelled:
            running.stop(Stop.CANCELLED)
