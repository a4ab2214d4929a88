"""Questions in a signature: parameters whose values the client gives before the function runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from ..context import Context
from ..errors import RegistrationError
from ..functions import check, context_type, hints_of, is_async, label_of, parameters_of
from .kinds import Elicit, Question
from .rounds import InputRequired

if TYPE_CHECKING:
    from ..exchange import Exchange


@dataclass(frozen=True, slots=True)
class Ask:
    """Annotate a parameter with it to ask the client for the value.

    ``function`` takes what it needs of the other arguments, by their names, and a ``Context``. It
    returns the question (:class:`Elicit`, :class:`ElicitURL`, :class:`Sample`, :class:`Roots`), or
    the value if nobody needs to be asked. An :class:`Elicit` without a schema asks for the
    parameter's type.
    """

    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A parameter whose value the client is asked for."""

    name: str
    annotation: Any
    function: Callable[..., Any]
    is_async: bool
    takes: Sequence[str]
    context_parameter: str | None
    context_type: type[Context]

    def arguments(self, values: Mapping[str, Any], exchange: Exchange) -> dict[str, Any]:
        """Return the arguments of the function that knows what to ask."""
        arguments = {name: values[name] for name in self.takes}
        if self.context_parameter is not None:
            arguments[self.context_parameter] = self.context_type(exchange)
        return arguments

    def named(self, question: Question) -> Question:
        """Return the question with the parameter's name for its key, and the type to ask for."""
        key = question.key or self.name
        if isinstance(question, Elicit) and question.schema is None:
            return replace(question, key=key, schema=self.annotation)
        return replace(question, key=key)


def ask_of(annotation: Any) -> Ask | None:
    """Return the :class:`Ask` in an annotation, if any."""
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    if Ask in extras:
        raise RegistrationError("Ask takes the function that says what to ask: `Ask(ask_refund)`.")
    return next((extra for extra in extras if isinstance(extra, Ask)), None)


def build_asked(
    name: str, annotation: Any, ask: Ask, others: Sequence[str], *, of: Callable[..., Any]
) -> Asked:
    """Return the parameter ``name`` of the function ``of``, which has ``others`` beside it."""
    check(ask.function)
    kind, *extras = get_args(annotation)
    extras.remove(ask)
    hints = hints_of(ask.function)
    takes: list[str] = []
    context, wanted = None, Context
    for parameter in parameters_of(ask.function):
        given = context_type(hints.get(parameter.name))
        if given is not None:
            context, wanted = parameter.name, given
        elif parameter.name in others:
            takes.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise RegistrationError(
                f"{label_of(of)}: {label_of(ask.function)} takes {parameter.name!r}, which is no "
                f"argument of {label_of(of)} ({', '.join(others) or 'it has none'}). It may take "
                "those, and a Context."
            )
    if is_async(ask.function) and not is_async(of):
        raise RegistrationError(
            f"{label_of(of)}: {label_of(ask.function)} is asynchronous, so the function that it "
            "asks for must be `async def`, too."
        )
    return Asked(
        name=name,
        annotation=Annotated[kind, *extras] if extras else kind,
        function=ask.function,
        is_async=is_async(ask.function),
        takes=takes,
        context_parameter=context,
        context_type=wanted,
    )


def answering(
    function: Callable[..., Any], asked: Sequence[Asked], exchange: Exchange
) -> Callable[..., Any]:
    """Return ``function`` as one that asks for what it lacks, all at once where that goes."""

    def answered(**values: Any) -> Any:
        return function(**values, **_answers(asked, values, exchange))

    async def aanswered(**values: Any) -> Any:
        return await function(**values, **await _aanswers(asked, values, exchange))

    return aanswered if is_async(function) else answered


def _answers(
    asked: Sequence[Asked], values: Mapping[str, Any], exchange: Exchange
) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    suspension: InputRequired | None = None
    for each in asked:
        value = each.function(**each.arguments(values, exchange))
        try:
            if isinstance(value, Question):
                value = exchange.questions.ask(each.named(value))
            answers[each.name] = value
        except InputRequired as required:
            # The others are asked in the same round.
            suspension = required
    if suspension is not None:
        raise suspension
    return answers


async def _aanswers(
    asked: Sequence[Asked], values: Mapping[str, Any], exchange: Exchange
) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    suspension: InputRequired | None = None
    for each in asked:
        function = partial(each.function, **each.arguments(values, exchange))
        value = await (function() if each.is_async else exchange.bridge.blocking(function))
        try:
            if isinstance(value, Question):
                value = await exchange.questions.aask(each.named(value))
            answers[each.name] = value
        except InputRequired as required:
            suspension = required
    if suspension is not None:
        raise suspension
    return answers
