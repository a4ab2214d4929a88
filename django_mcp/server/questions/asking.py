"""Asks the client, in either era, from synchronous and asynchronous functions alike."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from asgiref.sync import sync_to_async

from ...protocol.errors import MCPError
from ..errors import (
    AnswerTimedOut,
    InputRequired,
    QuestionDeclined,
    QuestionFailed,
    QuestionMisplaced,
    QuestionTimedOut,
    QuestionUnsupported,
)
from ..exchange import Exchange
from ..transactions import check_may_wait
from .fields import InvalidAnswer
from .input_requests import InputRequest
from .kinds import UNSET, ClientProfile, Question
from .mrtr import CallIdentity, Rounds

MAX_ATTEMPTS: Final = 3
"""How often a question is asked until its answer fits."""

_DESCRIPTION_CHARACTERS: Final = 4_000
"""Of a question that cannot be asked, how much the model reads: a form may be long."""

UNDECLARED: Final = "This client cannot be asked ({})."
UNREACHABLE: Final = (
    "Nobody can be asked here ({}), since the answer to this request goes out in one piece. "
    "Whoever runs the server can let it stream: by the setting WSGI_STREAMS, or by ASGI."
)

_REJECTED: Final = -1
"""2025-11-25, client/sampling, "Error Handling": the user has rejected the request."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A request that is to be sent to the client now."""

    number: int
    request: InputRequest


@dataclass(frozen=True, slots=True)
class _Answered:
    """A question has its answer."""

    value: Any


_Attempts = Generator[_Attempt, Any, Any]
"""Yields attempts to ask, is sent what the client answers, and returns the value of an answer."""


NOT_HERE: Final = (
    "Nobody can be asked here: only the functions of tools, resources and prompts may ask, and "
    "only while they run. Ask there, and pass the answer on."
)


class Questions:
    """The questions of one call of a function.

    ``target`` and ``arguments``, as the client sent them, are what answers belong to; ``once`` says
    that they count for one call.
    """

    __slots__ = ("_asked", "_call", "_has_ended", "_prepared", "_preparing", "_rounds")

    def __init__(
        self,
        exchange: Exchange,
        target: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        once: bool = False,
    ) -> None:
        self._call = CallIdentity(exchange, target, arguments or {}, once)
        self._has_ended = False
        self._rounds: Rounds | None = None
        self._asked: list[tuple[str, str]] = []
        self._preparing = 0
        self._prepared: asyncio.Event | None = None

    def restore(self) -> None:
        """Take up what comes back from an earlier round, before anything runs.

        Raises :class:`MCPError` if it belongs to another call.
        """
        exchange = self._call.exchange
        if exchange.revision.modern and "requestState" in exchange.request.params:
            self._rounds = Rounds(self._call)

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
        self._has_ended = True
        if self._rounds is not None and self._rounds.required:
            raise QuestionMisplaced(
                "The function has gone on although a question is not answered yet. Do not catch "
                "BaseException around a question, and await every task that asks one."
            )

    def result(self) -> dict[str, Any]:
        """Return the body of the result that asks the client for what is still to be answered."""
        assert self._rounds is not None
        return self._rounds.result()

    def ask(self, question: Question) -> Any:
        """Return the answer. Only for threads that may wait."""
        _refuse_on_a_loop()
        key, exchange = self._take_key(question), self._call.exchange
        attempts = _attempts(question, exchange)
        step = _advance(attempts)
        while isinstance(step, _Attempt):
            if exchange.revision.modern:
                response = self._find_answer(key, step)
            else:
                with _failures(step.request):
                    response = exchange.peer.request(*_request_arguments(question, step, exchange))
            step = _advance(attempts, response)
        return step.value

    async def aask(self, question: Question) -> Any:
        """Return the answer, without a thread that waits."""
        key = self._take_key(question)
        attempts = _attempts(question, self._call.exchange)
        # Forms, and the search for open transactions, may touch the database.
        try:
            with self._counted():
                step = await sync_to_async(_advance)(attempts)
                while isinstance(step, _Attempt):
                    response = await self._request_answer(question, key, step)
                    step = await sync_to_async(_advance)(attempts, response)
        except InputRequired:
            await self._all_prepared()
            raise
        return step.value

    async def _request_answer(self, question: Question, key: str, step: _Attempt) -> Any:
        exchange = self._call.exchange
        if exchange.revision.modern:
            return self._find_answer(key, step)
        with _failures(step.request):
            return await exchange.peer.arequest(*_request_arguments(question, step, exchange))

    def _take_key(self, question: Question) -> str:
        # At once, before anything is awaited: the order of the questions makes their keys.
        if self._has_ended:
            raise QuestionMisplaced(NOT_HERE)
        place = sum(kind == question.kind for kind, _ in self._asked) + 1
        key = question.key or f"{question.kind}-{place}"
        if any(key == other for _, other in self._asked):
            raise QuestionMisplaced(
                f"Two questions of this call have the key {key!r}; give each one of its own."
            )
        self._asked.append((question.kind, key))
        return key

    def _find_answer(self, key: str, step: _Attempt) -> Any:
        if self._rounds is None:
            self._rounds = Rounds(self._call)
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


def _attempts(question: Question, exchange: Exchange) -> _Attempts:
    """Yield each attempt to ask, take what comes back, and return the answer."""
    check_may_wait()
    capabilities = exchange.sender.capabilities
    client = ClientProfile(exchange.revision, capabilities)
    request = question.prepare(client)
    why = "" if request.is_supported else UNDECLARED
    if not why and not (exchange.revision.modern or exchange.peer.can_request):
        why = UNREACHABLE
    if why:
        if question.fallback is not UNSET:
            return question.fallback
        raise _unsupported(request, why)
    problems: tuple[str, ...] = ()
    for number in range(MAX_ATTEMPTS):
        response = yield _Attempt(number, request.with_problems(problems))
        try:
            return request.read(response)
        except InvalidAnswer as invalid:
            problems = invalid.problems
    raise QuestionFailed(f"No answer fits. {' '.join(problems)} ({request.name})")


def _advance(attempts: _Attempts, response: Any = None) -> _Attempt | _Answered:
    try:
        return attempts.send(response)
    except StopIteration as finished:
        return _Answered(finished.value)


def _request_arguments(
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


def _unsupported(request: InputRequest, why: str) -> QuestionUnsupported:
    ((feature, options),) = request.required.items()
    name, description = ".".join((feature, *options)), request.describe()
    if len(description) > _DESCRIPTION_CHARACTERS:
        description = f"{description[:_DESCRIPTION_CHARACTERS]}..."
    return QuestionUnsupported(
        f"{why.format(name)} {request.alternative}: {description}",
        request.required,
        description,
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
