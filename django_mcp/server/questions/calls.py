"""Connects a call of a site's function with the questions that it may ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from ...protocol.errors import ErrorCode, MCPError
from ..calling import Call, Outcome
from ..errors import QuestionUnsupported, ToolError
from .declared import answering
from .rounds import Bound, InputRequired

if TYPE_CHECKING:
    from ..exchange import Exchange
    from ..signature import Signature


def asking(
    call: Call,
    signature: Signature,
    exchange: Exchange,
    *,
    target: str,
    arguments: Mapping[str, Any] | None = None,
    once: bool = False,
) -> Call:
    """Return ``call``, whose function may ask the client from now on.

    ``target`` and ``arguments``, as the client sent them, are what answers belong to; ``once`` says
    that they count for one call. Raises :class:`MCPError` if the client comes back with answers of
    another call.
    """
    questions, finish = exchange.questions, call.finish
    questions.open(Bound(exchange, target, arguments or {}, once=once))

    def close_and_finish(value: Any) -> Outcome:
        outcome = finish(value)
        questions.close()
        return outcome

    if signature.asked:
        call.function = answering(call.function, signature.asked, exchange)
    call.finish = close_and_finish
    if questions.redeems:
        _redeem_first(call, exchange)
    return call


def _redeem_first(call: Call, exchange: Exchange) -> None:
    """Let nothing of ``call`` run unless it is the first that comes with its state.

    Outside of the call's own transaction: what is rolled back there has been used all the same.
    """
    questions, function, scope = exchange.questions, call.function, call.scope

    async def redeem_and_call(**arguments: Any) -> Any:
        await sync_to_async(questions.redeem)()
        return await function(**arguments)

    @contextmanager
    def redeem_and_enter() -> Iterator[None]:
        questions.redeem()
        with scope():
            yield

    if call.is_async:
        call.function = redeem_and_call
    else:
        call.scope = redeem_and_enter


def beside_questions(error: BaseException) -> BaseException | None:
    """Return what was raised beside questions; ``None`` if that was all.

    Tasks that ask at the same time raise their questions as a group. If one of them is declined,
    or several, the model is told of the first; one bug in the group is that bug; and a call that
    is stopped is stopped.
    """
    if isinstance(error, InputRequired):
        return None
    if not isinstance(error, BaseExceptionGroup):
        return error
    rest: BaseException | None = error.split(InputRequired)[1]
    leaves = [] if rest is None else list(_leaves(rest))
    for each in leaves:
        if len(leaves) == 1 or not isinstance(each, Exception):
            return each
    return leaves[0] if leaves and all(isinstance(each, ToolError) for each in leaves) else rest


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def missing_capability(error: QuestionUnsupported) -> MCPError:
    """Return the error for a client that cannot be asked."""
    # 2026-07-28, basic/index, "Client Capabilities". The message is all that many clients show the
    # model.
    return MCPError(
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        str(error),
        {"requiredCapabilities": error.required},
    )
