"""Asks the client, in either era, from a function of either colour."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import sync_to_async

from ...protocol.errors import MCPError
from ..calling import Result
from ..errors import (
    QuestionDeclined,
    QuestionFailed,
    QuestionMisplaced,
    QuestionTimedOut,
    QuestionUnsupported,
)
from ..ports import AnswerTimedOut
from ..transactions import check_may_wait
from .django_forms import form_of
from .fields import Invalid
from .kinds import UNSET, Client, Question
from .requests import InputRequest
from .rounds import Bound, InputRequired, Rounds

if TYPE_CHECKING:
    from ..exchange import Exchange

MAX_ATTEMPTS: Final = 3
"""How often a question is asked until its answer fits."""

_WANTED_CHARACTERS: Final = 4_000
"""Of a question that cannot be asked, how much is told: a form may have thousands of choices."""

_REJECTED: Final = -1
"""2025-11-25, client/sampling, "Error Handling": the user has rejected the request."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A question is to be put to the client now."""

    number: int
    request: InputRequest


@dataclass(frozen=True, slots=True)
class _Settled:
    """A question has its answer."""

    value: Any


_Dialogue = Generator[_Attempt, Any, Any]


class Questions:
    """The questions of one call. Nothing may be asked until it is opened."""

    __slots__ = ("_asked", "_bound", "_prepared", "_preparing", "_rounds")

    def __init__(self) -> None:
        self._bound: Bound | None = None
        self._rounds: Rounds | None = None
        self._asked: list[tuple[str, str]] = []
        self._preparing = 0
        self._prepared: asyncio.Event | None = None

    def open(self, bound: Bound) -> None:
        """Let questions be asked for a call, which answers belong to.

        What comes back from an earlier round is checked before anything runs: raises
        :class:`MCPError`.
        """
        self._bound = bound
        exchange = bound.exchange
        if exchange.revision.modern and "requestState" in exchange.request.params:
            self._rounds = Rounds(bound)

    @property
    def redeems(self) -> bool:
        """Whether the call may run only if it is the first that comes with its state."""
        return self._rounds is not None and self._rounds.state is not None

    def redeem(self) -> None:
        """Use up the state; raises :class:`ToolError` if it has been. May touch the database."""
        if self._rounds is not None:
            self._rounds.redeem()

    def close(self) -> None:
        """Let nothing more be asked: the function has returned."""
        self._bound = None
        if self._rounds is not None and self._rounds.required:
            raise QuestionMisplaced(
                "The function has gone on although a question is not answered yet. Do not catch "
                "BaseException around a question, and await every task that asks one."
            )

    def result(self) -> Result:
        """Return the result that asks the client for what is still to be answered."""
        assert self._rounds is not None
        return self._rounds.result()

    def ask(self, question: Question) -> Any:
        """Return the answer. Only for threads that may wait."""
        _refuse_on_a_loop()
        bound, key = self._claim(question)
        dialogue = _dialogue(question, bound.exchange)
        step = _advance(dialogue)
        while isinstance(step, _Attempt):
            if bound.exchange.revision.modern:
                response = self._answered(key, step, bound)
            else:
                with _failures(step.request):
                    response = bound.exchange.peer.ask(*_sent(question, step, bound.exchange))
            step = _advance(dialogue, response)
        return step.value

    async def aask(self, question: Question) -> Any:
        """Return the answer, without a thread that waits."""
        bound, key = self._claim(question)
        dialogue = _dialogue(question, bound.exchange)
        # Forms, and the search for open transactions, may touch the database.
        try:
            with self._counted():
                step = await sync_to_async(_advance)(dialogue)
                while isinstance(step, _Attempt):
                    response = await self._ahear(question, key, step, bound)
                    step = await sync_to_async(_advance)(dialogue, response)
        except InputRequired:
            await self._all_prepared()
            raise
        return step.value

    async def _ahear(self, question: Question, key: str, step: _Attempt, bound: Bound) -> Any:
        if bound.exchange.revision.modern:
            return self._answered(key, step, bound)
        with _failures(step.request):
            return await bound.exchange.peer.aask(*_sent(question, step, bound.exchange))

    def _claim(self, question: Question) -> tuple[Bound, str]:
        # At once, before anything is awaited: the order of the questions makes their keys.
        if self._bound is None:
            raise QuestionMisplaced(
                "Nobody can be asked here: only the functions of tools, resources and prompts may "
                "ask, and only while they run. Ask there, and pass the answer on."
            )
        place = sum(kind == question.kind for kind, _ in self._asked) + 1
        key = question.key or f"{question.kind}-{place}"
        if any(key == other for _, other in self._asked):
            raise QuestionMisplaced(
                f"Two questions of this call have the key {key!r}; give each one of its own."
            )
        self._asked.append((question.kind, key))
        return self._bound, key

    def _answered(self, key: str, step: _Attempt, bound: Bound) -> Any:
        if self._rounds is None:
            self._rounds = Rounds(bound)
        return self._rounds.answer(key, step.request, step.number)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._preparing += 1
        try:
            yield
        finally:
            self._preparing -= 1
            if self._prepared is not None and not self._preparing:
                self._prepared.set()
                self._prepared = None

    async def _all_prepared(self) -> None:
        # What asks beside this question gets as far, so that all go out in one round; a group of
        # tasks would cancel the others at once.
        while self._preparing:
            self._prepared = self._prepared or asyncio.Event()
            await self._prepared.wait()


def _dialogue(question: Question, exchange: Exchange) -> _Dialogue:
    """Yield each attempt to ask, take what comes back, and return the answer."""
    check_may_wait()
    capabilities = exchange.sender.capabilities
    client = Client(exchange.revision, capabilities, form_of)
    request = question.prepare(client)
    if not request.possible or not (exchange.revision.modern or exchange.peer.answers):
        if question.fallback is not UNSET:
            return question.fallback
        raise _unsupported(request)
    problems: tuple[str, ...] = ()
    for number in range(MAX_ATTEMPTS):
        response = yield _Attempt(number, request.again(problems))
        try:
            return request.read(response)
        except Invalid as invalid:
            problems = invalid.problems
    raise QuestionFailed(f"No answer fits. {' '.join(problems)} ({request.name})")


def _advance(dialogue: _Dialogue, response: Any = None) -> _Attempt | _Settled:
    try:
        return dialogue.send(response)
    except StopIteration as settled:
        return _Settled(settled.value)


def _sent(
    question: Question, step: _Attempt, exchange: Exchange
) -> tuple[str, dict[str, Any], float]:
    seconds = question.timeout or exchange.settings.question_seconds
    return step.request.method, step.request.params or {}, seconds


@contextmanager
def _failures(request: InputRequest) -> Iterator[None]:
    try:
        yield
    except AnswerTimedOut:
        raise QuestionTimedOut(f"No answer came in time: {request.name}") from None
    except MCPError as error:
        kind = QuestionDeclined if error.code == _REJECTED else QuestionFailed
        raise kind(f"The client answered: {error.message} ({request.name})") from None


def _unsupported(request: InputRequest) -> QuestionUnsupported:
    ((feature, options),) = request.required.items()
    name, wanted = ".".join((feature, *options)), request.wanted()
    if len(wanted) > _WANTED_CHARACTERS:
        wanted = f"{wanted[:_WANTED_CHARACTERS]}..."
    return QuestionUnsupported(
        f"This client cannot be asked ({name}). {request.instead}: {wanted}",
        request.required,
        wanted,
    )


def _refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise QuestionMisplaced(
        "This would hold up everything else on the event loop. In asynchronous code await the "
        "method with an `a` before its name: `await ctx.aelicit(...)`."
    )
