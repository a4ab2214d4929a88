"""Questions in a signature: parameters whose values the client gives before the function runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from .context import context_parameter
from .errors import InputRequired, QuestionFailed, QuestionUnsupported, RegistrationError
from .exchange import Exchange
from .functions import bare, is_async, label_of
from .parameter_functions import ParameterFunction, build_parameter_function
from .questions.asking import Questions
from .questions.kinds import Elicit, Question


@dataclass(frozen=True, slots=True)
class Ask:
    """Annotate a parameter with it to ask the client for the value.

    ``question`` is what the user is asked, or a function that says it. The function takes what it
    needs of the other arguments, by their names, and a ``Context``. It returns the question
    (:class:`Elicit`, :class:`ElicitURL`, :class:`Sample`, :class:`Roots`), or the value if nobody
    needs to be asked. An :class:`Elicit` without a schema asks for the parameter's type.

    With ``or_argument`` the parameter of a tool is an argument for clients whose user cannot be
    asked.
    """

    question: str | Callable[..., Any]
    _: KW_ONLY
    or_argument: bool = False

    @property
    def message(self) -> str | None:
        """What the user is asked, where that is always the same."""
        return self.question if isinstance(self.question, str) else None

    @property
    def function(self) -> Callable[..., Any]:
        """The function that says what to ask."""
        question = self.question
        return (lambda: Elicit(question)) if isinstance(question, str) else question


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedParameter:
    """A parameter whose value the client is asked for."""

    name: str
    annotation: Any
    source: ParameterFunction
    """Says what to ask."""
    is_argument: bool
    """Whether the model may give the value, because the client cannot be asked."""

    def named(self, question: Question) -> Question:
        """Return the question with the parameter's name for its key, and the type to ask for."""
        key = question.key or self.name
        if isinstance(question, Elicit) and question.schema is None:
            return replace(question, key=key, schema=self.annotation)
        return replace(question, key=key)

    def unanswered(self, error: QuestionUnsupported) -> Exception:
        """Return what to raise where the client cannot be asked."""
        if not self.is_argument:
            return error
        return QuestionFailed(f"Call again with the argument {self.name!r}: {error.question}")


def ask_of(annotation: Any) -> Ask | None:
    """Return the :class:`Ask` in an annotation, if any."""
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    if Ask in extras:
        raise RegistrationError(
            'Ask takes what to ask, or the function that says it: `Ask("How many?")`, '
            "`Ask(ask_refund)`."
        )
    return next((extra for extra in extras if isinstance(extra, Ask)), None)


def build_asked(
    name: str,
    annotation: Any,
    ask: Ask,
    others: Sequence[str],
    *,
    of: Callable[..., Any],
    is_argument: bool = False,
) -> AskedParameter:
    """Return the parameter ``name`` of the function ``of``, which has ``others`` beside it."""
    source = build_parameter_function(
        ask.function, others, of=of, find_provided=context_parameter, may_also="a Context"
    )
    return AskedParameter(name=name, annotation=annotation, source=source, is_argument=is_argument)


def without_ask(annotation: Any, ask: Ask) -> Any:
    """Return what the client is asked for: the annotation of a parameter without ``ask``."""
    kind, *extras = get_args(annotation)
    extras.remove(ask)
    return Annotated[kind, *extras] if extras else kind


def check_argument(name: str, annotation: Any, *, of: Callable[..., Any]) -> None:
    """Refuse to take as an argument what has no value."""
    if bare(annotation) in (None, NoneType):
        raise RegistrationError(
            f"{label_of(of)}: {name!r} asks for a confirmation, which is no argument. Annotate it "
            "`bool`, or leave out or_argument=."
        )


def with_answers(
    function: Callable[..., Any],
    asked: Sequence[AskedParameter],
    exchange: Exchange,
    questions: Questions,
) -> Callable[..., Any]:
    """Return ``function`` as one that asks for what it lacks, all at once where that goes."""

    def answered(**values: Any) -> Any:
        lacking = [each for each in asked if each.name not in values]
        return function(**values, **_answers(lacking, values, exchange, questions))

    async def aanswered(**values: Any) -> Any:
        lacking = [each for each in asked if each.name not in values]
        return await function(**values, **await _aanswers(lacking, values, exchange, questions))

    return aanswered if is_async(function) else answered


def _answers(
    asked: Sequence[AskedParameter],
    values: Mapping[str, Any],
    exchange: Exchange,
    questions: Questions,
) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    suspension: InputRequired | None = None
    for each in asked:
        value = each.source.value(values, exchange, questions)
        try:
            if isinstance(value, Question):
                value = questions.ask(each.named(value))
            answers[each.name] = value
        except QuestionUnsupported as error:
            raise each.unanswered(error) from None
        except InputRequired as required:
            # The others are asked in the same round.
            suspension = required
    if suspension is not None:
        raise suspension
    return answers


async def _aanswers(
    asked: Sequence[AskedParameter],
    values: Mapping[str, Any],
    exchange: Exchange,
    questions: Questions,
) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    suspension: InputRequired | None = None
    for each in asked:
        value = await each.source.avalue(values, exchange, questions)
        try:
            if isinstance(value, Question):
                value = await questions.aask(each.named(value))
            answers[each.name] = value
        except QuestionUnsupported as error:
            raise each.unanswered(error) from None
        except InputRequired as required:
            suspension = required
    if suspension is not None:
        raise suspension
    return answers
