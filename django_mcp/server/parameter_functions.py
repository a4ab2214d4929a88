"""Functions of the site that a parameter of another function names: what they take and return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async

from .context import ProvidedParameter
from .errors import RegistrationError
from .exchange import Exchange
from .functions import check, hints_of, is_async, label_of, parameters_of
from .questions.asking import Questions


@dataclass(frozen=True, slots=True)
class ParameterFunction:
    """A function that is called before another one, for a parameter of that."""

    function: Callable[..., Any]
    is_async: bool
    takes: Sequence[str]
    """Which of the other function's values it takes, by their names."""
    provided: ProvidedParameter | None

    def value(
        self, values: Mapping[str, Any], exchange: Exchange, questions: Questions | None = None
    ) -> Any:
        """Return what it returns, given ``values`` of the other function."""
        return self.function(**self._arguments(values, exchange, questions))

    async def avalue(
        self, values: Mapping[str, Any], exchange: Exchange, questions: Questions | None = None
    ) -> Any:
        """Do as :meth:`value`, in asynchronous code."""
        function = partial(self.function, **self._arguments(values, exchange, questions))
        return await (function() if self.is_async else sync_to_async(function)())

    def _arguments(
        self, values: Mapping[str, Any], exchange: Exchange, questions: Questions | None
    ) -> dict[str, Any]:
        arguments = {name: values[name] for name in self.takes}
        if self.provided is not None:
            arguments[self.provided.name] = self.provided.value(exchange, questions)
        return arguments


def build_parameter_function(
    function: Callable[..., Any],
    others: Sequence[str],
    *,
    of: Callable[..., Any],
    find_provided: Callable[[Mapping[str, Any], Iterable[str]], ProvidedParameter | None],
    may_also: str,
) -> ParameterFunction:
    """Return ``function`` as one for a parameter of the function ``of``.

    It may take ``others``, which are values of that function, and what ``find_provided`` finds
    among its parameters; ``may_also`` is what an error calls this. Raises
    :class:`RegistrationError`.
    """
    check(function)
    hints = hints_of(function)
    takes: list[str] = []
    parameters = parameters_of(function)
    provided = find_provided(hints, [parameter.name for parameter in parameters])
    for parameter in parameters:
        if provided is not None and parameter.name == provided.name:
            continue
        if parameter.name in others:
            takes.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise RegistrationError(
                f"{label_of(of)}: {label_of(function)} takes {parameter.name!r}, which is no "
                f"argument of {label_of(of)} ({', '.join(others) or 'it has none'}). It may take "
                f"those, and {may_also}."
            )
    if is_async(function) and not is_async(of):
        raise RegistrationError(
            f"{label_of(of)}: {label_of(function)} is asynchronous, so the function that it "
            "is called for must be `async def`, too."
        )
    return ParameterFunction(function, is_async(function), takes, provided)
