"""Questions and the end of their call, at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from django_mcp import MCPServer
from django_mcp.protocol.lifecycle import Sender, SessionInfo
from django_mcp.protocol.messages import Request
from django_mcp.protocol.versions import NEWEST_LEGACY
from django_mcp.running import peers
from django_mcp.running.peers import BufferedPeer, StoredPeer, StreamPeer
from django_mcp.running.running_call import RunningCall
from django_mcp.running.send_queue import SendQueue
from django_mcp.server.errors import AnswerTimedOut, CallStopped
from django_mcp.store.delivery.records import CallRecord, QuestionRecord
from django_mcp.store.in_flight.running_requests import StopReason
from django_mcp.store.ledger import close_ledger, ledger


class Writer:
    """Takes questions, and does what a test wants when a notification is sent."""

    durable = True

    def __init__(self, *, takes: bool = True) -> None:
        self.takes = takes
        self.asked: list[str] = []
        self.sent: list[tuple[str, Any]] = []
        """Requests and their cancellations, with the ids of the requests."""
        self.asking: Callable[[], object] = lambda: None
        self.notifying: Callable[[], object] = lambda: None

    def ask(self, question: QuestionRecord) -> bool:
        self.asking()
        self.asked.append(question.method)
        self.sent.append(("asked", question.request_id))
        return self.takes

    def notify(self, message: dict[str, Any]) -> None:
        self.sent.append(("cancelled", message["params"]["requestId"]))
        self.notifying()


@pytest.fixture(autouse=True)
def _no_ledger() -> Iterator[None]:
    yield
    close_ledger()


def peer_of(writer: Any, *, initialized: bool = True) -> StoredPeer:
    session = SessionInfo("1", NEWEST_LEGACY, Sender(), initialized, "debug")
    call = CallRecord(1, "tools/call", "it")
    return StoredPeer(writer, call, session, release=lambda: False)


def question(peer: StoredPeer) -> QuestionRecord:
    return QuestionRecord(peer._call, "elicitation/create", {}, 300)


def test_a_question_that_comes_while_the_call_is_told_to_end_waits_for_nobody():
    writer = Writer()
    peer = peer_of(writer)
    first = peer._ask(question(peer))
    late: list[Any] = []

    def ask_another() -> None:
        writer.notifying = lambda: None
        late.append(peer._ask(question(peer)))

    writer.notifying = ask_another  # as the first question is taken back
    peer.stop()
    assert [type(each.exception(0)) for each in (first, *late)] == [CallStopped] * 2


@pytest.mark.parametrize("moment", ["as it is put in", "before"])
def test_a_question_that_the_end_of_its_call_has_overtaken_is_taken_back(moment):
    writer = Writer()
    peer = peer_of(writer)
    if moment == "before":
        peer.stop()
    else:
        writer.asking = peer.stop
    asked = question(peer)
    peer._ask(asked)
    assert writer.sent[-2:] == [("asked", asked.request_id), ("cancelled", asked.request_id)]


class Racing(Future[Any]):
    """Is settled by somebody else just after it was asked whether it is."""

    def done(self) -> bool:
        return False


def test_an_answer_and_the_end_of_a_call_may_come_at_once():
    waiting = Racing()
    waiting.cancel()
    peers._take(waiting, {"result": {}})
    peers._take(waiting, None)
    assert waiting.cancelled()


def test_what_a_thread_says_that_its_call_has_left_does_not_come_behind_the_answer():
    loop = asyncio.new_event_loop()
    queue = SendQueue(loop)
    peer = StreamPeer(queue, can_notify=True)
    peer.notify("notifications/message", {"data": 1})
    peer.end()
    peer.notify("notifications/message", {"data": 2})
    loop.close()
    assert ['"data":1' in each for each in queue.waiting()] == [True]


def test_a_question_that_comes_after_the_end_of_the_stream_waits_for_nobody():
    peer = peer_of(Writer(takes=False))
    assert isinstance(peer._ask(question(peer)).exception(0), CallStopped)


def test_a_client_that_does_not_get_ready_in_time_is_asked_nothing(monkeypatch):
    looks: list[None] = []
    monkeypatch.setattr(peers, "is_ready", lambda session: bool(looks.append(None)))
    monkeypatch.setattr(peers, "READY_POLL_SECONDS", 0.01)
    writer = Writer()
    with pytest.raises(AnswerTimedOut):
        peer_of(writer, initialized=False).request("elicitation/create", {}, 0.05)
    assert writer.asked == []
    assert len(looks) < 10, "with pauses between them"


def test_a_peer_that_is_made_while_the_call_is_told_to_end_is_told_as_well():
    call = RunningCall(Request(1, "tools/call"), MCPServer("peers", version="1"), None)

    class Reaching:
        """An exchange whose function reaches for its client as the call is stopped."""

        def __init__(self) -> None:
            self._stopped = False
            self.peer: Any = None

        @property
        def stopped(self) -> bool:
            return self._stopped

        @stopped.setter
        def stopped(self, value: bool) -> None:
            self.peer = call.reach()
            assert isinstance(self.peer, BufferedPeer)
            if self._stopped:
                self.peer.stop()
            self._stopped = value

    exchange: Any = Reaching()
    call.exchange = exchange
    call.stop(StopReason.CANCELLED)
    with pytest.raises(CallStopped):
        exchange.peer.check_not_stopped()


def ask_in_a_coroutine(peer: StoredPeer) -> Any:
    return asyncio.run(peer.arequest("roots/list", {}, 1))


def ask_in_a_thread(peer: StoredPeer) -> Any:
    return peer.request("roots/list", {}, 1)


@pytest.mark.parametrize("ask", [ask_in_a_thread, ask_in_a_coroutine])
def test_a_call_that_is_told_to_end_asks_nothing_more(ask):
    writer = Writer()
    peer = peer_of(writer)
    peer.stop()
    with pytest.raises(CallStopped):
        ask(peer)
    assert writer.asked == []


@pytest.mark.parametrize("stops", [True, False])
def test_a_question_whose_coroutine_is_cancelled_is_taken_back_once(stops):
    """Also where the end of its call takes it back, and cancels that."""
    writer = Writer()
    peer = peer_of(writer)

    async def main() -> None:
        asking = asyncio.ensure_future(peer.arequest("roots/list", {}, 60))
        while not writer.asked:
            await asyncio.sleep(0)
        if stops:
            peer.stop()
        asking.cancel()
        await asyncio.wait([asking])

    asyncio.run(main())
    assert [what for what, _ in writer.sent] == ["asked", "cancelled"]


@pytest.mark.parametrize("ask", [ask_in_a_thread, ask_in_a_coroutine])
@pytest.mark.django_db
def test_a_question_that_is_over_is_watched_no_longer(ask):
    peer = peer_of(Writer(takes=False))
    with pytest.raises(CallStopped):
        ask(peer)
    assert ledger().requests._questions == {}
