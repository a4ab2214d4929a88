"""Connects a call of a site's function with the questions that it may ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...protocol.errors import ErrorCode, MCPError
from ..calling import Call, Outcome
from ..errors import QuestionUnsupported, ToolError
from .declared import answering
from .rounds import InputRequired

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
) -> Call:
    """Return ``call``, whose function may ask the client from now on.

    ``target`` and ``arguments``, as the client sent them, are what answers belong to. Raises
    :class:`MCPError` if the client comes back with answers of another call.
    """
    questions, finish, rescue = exchange.questions, call.finish, call.rescue
    questions.open(exchange, target, arguments or {})

    def close_and_finish(value: Any) -> Outcome:
        outcome = finish(value)
        questions.close()
        return outcome

    def rescue_unless_unsupported(error: Exception) -> Outcome:
        if isinstance(error, QuestionUnsupported) and exchange.revision.modern:
            raise _missing_capability(error) from None
        return rescue(error)

    if signature.asked:
        call.function = answering(call.function, signature.asked, exchange)
    call.finish, call.rescue = close_and_finish, rescue_unless_unsupported
    return call


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


def _missing_capability(error: QuestionUnsupported) -> MCPError:
    # 2026-07-28, basic/index, "Client Capabilities".
    ((feature, options),) = error.required.items()
    return MCPError(
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        f"The client must declare the capability {'.'.join((feature, *options))} for this",
        {"requiredCapabilities": error.required},
    )
