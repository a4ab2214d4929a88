"""From a function, or from the choices that a type implies, to a completion."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from .context import Context
from .errors import RegistrationError
from .functions import bare, check, context_type, hints_of, is_async, name_of, parameters_of
from .primitives import Completion


def build_completion(function: Callable[..., Any]) -> Completion:
    """Return the completion that ``function`` makes."""
    check(function)
    parameters = [parameter.name for parameter in parameters_of(function)]
    hints = hints_of(function)
    wanted = {name: context_type(hints.get(name)) for name in parameters}
    contexts = {name: kind for name, kind in wanted.items() if kind is not None}
    context = next(iter(contexts), None)
    others = [name for name in parameters if name not in (context, "arguments")]
    if others != ["value"]:
        raise RegistrationError(
            f"{name_of(function)}: a completion takes `value: str` and, if it wants them, "
            f"`arguments: dict[str, str]` and a Context; not {', '.join(others) or 'nothing'}."
        )
    return Completion(
        function=function,
        is_async=is_async(function),
        context_parameter=context,
        context_type=next(iter(contexts.values()), Context),
        takes_arguments="arguments" in parameters,
    )


def choices_of(annotation: Any) -> tuple[str, ...]:
    """Return the values that a type allows, as text; none if it does not count them."""
    annotation = bare(annotation)
    if get_origin(annotation) is Literal:
        return tuple(_choice(value) for value in get_args(annotation) if value is not None)
    if get_origin(annotation) in (Union, UnionType):
        return tuple(choice for part in get_args(annotation) for choice in choices_of(part))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return tuple(_choice(member) for member in annotation)
    return ()


def completion_of(choices: tuple[str, ...]) -> Completion:
    """Return the completion that offers ``choices``."""

    def complete(value: str) -> list[str]:
        return [choice for choice in choices if choice.lower().startswith(value.lower())]

    return build_completion(complete)


def _choice(value: Any) -> str:
    value = value.value if isinstance(value, enum.Enum) else value
    return json.dumps(value) if isinstance(value, bool) else str(value)
