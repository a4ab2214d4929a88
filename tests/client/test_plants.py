"""Plants each fault that the tests are there to notice, and sees that they do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from django_mcp.client import ServerBusy, legacy, legacy_session
from django_mcp.client.bounds import Deadline
from django_mcp.client.legacy import LegacyEra
from django_mcp.client.legacy_session import LegacySession
from django_mcp.client.outgoing_request import OutgoingRequest, StreamPosition

from . import test_broken_streams as broken
from . import test_lost_session as lost
from . import test_time as time
from .scripted import LegacyServer, Stream

Test = Callable[[], Coroutine[Any, Any, None]]

SOON = 3
"""Seconds after which a test that hangs has noticed a fault."""


def orphans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Abort the old streams, and tell nobody who waits for an answer there."""
    monkeypatch.setattr(LegacySession, "_end_waiting", lambda self, seconds: self.stream.cancel())


def cuts_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not look at what the old streams still hold."""
    end = LegacySession._end_waiting
    monkeypatch.setattr(LegacySession, "_end_waiting", lambda self, seconds: end(self, 0.0))


def repeats_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every request for safe."""
    send_until_answered = legacy.send_until_answered

    async def safe(send: Any, request: Any, limits: Any) -> Any:
        request.is_repeatable = True
        return await send_until_answered(send, request, limits)

    monkeypatch.setattr(legacy, "send_until_answered", safe)


def repeats_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take none for safe."""
    send_until_answered = legacy.send_until_answered

    async def unsafe(send: Any, request: Any, limits: Any) -> Any:
        request.is_repeatable = False
        return await send_until_answered(send, request, limits)

    monkeypatch.setattr(legacy, "send_until_answered", unsafe)


def opens_one_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every caller who meets the 404 open a session."""

    async def session(self: LegacyEra) -> LegacySession:
        if self._session is None or self._session.is_lost:
            await self._open()
        assert self._session is not None
        return self._session

    monkeypatch.setattr(LegacyEra, "session", session)


def forgets_whose_404(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a late 404 of the old session for one of the new session."""
    mark_lost = LegacySession.mark_lost

    def mark_current_lost(self: LegacySession) -> None:
        era: LegacyEra = self._on_lost.__self__  # type: ignore[attr-defined]
        mark_lost(era._session or self)

    monkeypatch.setattr(LegacySession, "mark_lost", mark_current_lost)


def takes_any_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take whatever response comes for one's own."""
    monkeypatch.setattr(OutgoingRequest, "is_answered_by", lambda self, response: True)


def answers_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send the answer to a question though its session is gone."""
    post = LegacySession.post

    async def post_anyway(self: LegacySession, message: Any) -> None:
        is_lost, self.is_lost = self.is_lost, False
        try:
            await post(self, message)
        finally:
            self.is_lost = is_lost

    monkeypatch.setattr(LegacySession, "post", post_anyway)


def forgets_wishes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open the new session, and ask it for nothing of what the old one was asked for."""

    async def restore(self: LegacyEra, session: LegacySession, deadline: Any) -> None:
        if self._listeners:
            session.stream.start(gap=True)

    monkeypatch.setattr(LegacyEra, "_restore", restore)


def shares_the_opening_with_its_first_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the new session end with whoever asked for it first."""

    async def shield(task: Any) -> Any:
        return await task

    class Unshielded:
        def __getattr__(self, name: str) -> Any:
            return shield if name == "shield" else getattr(asyncio, name)

    monkeypatch.setattr(legacy, "asyncio", Unshielded())


def sees_double(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not remember which events were seen."""

    advance = StreamPosition.advance

    def advance_always(self: StreamPosition, event: Any) -> bool:
        advance(self, event)
        return True

    monkeypatch.setattr(StreamPosition, "advance", advance_always)


def never_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask for a broken stream for ever."""
    monkeypatch.setattr(StreamPosition, "exhausted", False)


def tells_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop waiting, and let the server go on."""
    monkeypatch.setattr(LegacySession, "_notify_cancelled", lambda self, request: None)


def has_no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for as long as it takes."""
    monkeypatch.setattr(Deadline, "_restart", lambda self: None)


def counts_only_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let progress extend the time without a maximum."""
    restart = Deadline._restart

    def without_maximum(self: Deadline) -> None:
        self._last = self.now + 1000
        restart(self)

    monkeypatch.setattr(Deadline, "_restart", without_maximum)


def resends_after_any_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a 502 for a refusal."""

    check_status = legacy_session.check_status

    async def busy(response: Any) -> None:
        if response.status >= 500:
            raise ServerBusy("again", retry_after=0)
        await check_status(response)

    monkeypatch.setattr(legacy_session, "check_status", busy)


async def unsafe_after_502() -> None:
    await time.test_a_failure_that_may_have_run_is_repeated_only_where_safe(LegacyServer(), 502)


async def extended() -> None:
    await time.test_progress_may_extend_the_time_and_the_maximum_ends_it(LegacyServer())


async def silent() -> None:
    await time.test_a_silent_server_ends_no_wait_but_the_time_does(LegacyServer())


async def resumed() -> None:
    await broken.test_a_stream_that_breaks_is_resumed_after_its_last_event(Stream.cut)


async def in_flight() -> None:
    await lost.test_a_call_in_flight_that_is_not_safe_ends_with_its_outcome_unknown("pay")


async def safe_in_flight() -> None:
    await lost.test_a_safe_call_in_flight_is_repeated_once("look")


PLANTS: list[tuple[Callable[[pytest.MonkeyPatch], None], Test]] = [
    (orphans, lost.test_rust_sdk_accepted_request_completes_instead_of_hanging),
    (orphans, in_flight),
    (orphans, safe_in_flight),
    (cuts_off, lost.test_what_the_old_stream_still_holds_is_delivered),
    (repeats_everything, in_flight),
    (repeats_everything, lost.test_rust_sdk_accepted_request_completes_instead_of_hanging),
    (repeats_nothing, safe_in_flight),
    (opens_one_each, lost.test_many_callers_meet_the_404_and_one_session_is_opened),
    (forgets_whose_404, lost.test_callers_whose_404_is_late_open_no_further_session),
    (takes_any_answer, lost.test_late_answers_reach_nobody),
    (answers_anywhere, lost.test_a_question_of_the_old_session_is_not_answered_in_the_new),
    (sees_double, resumed),
    (never_gives_up, broken.test_the_attempts_have_an_end),
    (tells_nobody, time.test_a_call_that_takes_too_long_is_called_off_in_a_session),
    (has_no_deadline, silent),
    (counts_only_the_call, extended),
    (resends_after_any_failure, unsafe_after_502),
    (forgets_wishes, lost.test_the_new_session_has_what_the_old_one_was_asked_for),
    (
        shares_the_opening_with_its_first_caller,
        lost.test_a_caller_who_gives_up_takes_the_new_session_from_nobody,
    ),
]


@pytest.mark.parametrize(("plant", "test"), PLANTS)
def test_a_planted_fault_is_noticed(
    plant: Callable[[pytest.MonkeyPatch], None], test: Test, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def bounded() -> None:
        # A plant makes tests leave what they have begun.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with asyncio.timeout(SOON):
            await test()

    asyncio.run(bounded())
    plant(monkeypatch)
    with pytest.raises((Exception, asyncio.CancelledError, pytest.fail.Exception)):
        asyncio.run(bounded())
