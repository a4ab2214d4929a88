"""What a site registers to say what is told of its own exceptions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .context import Context
from .errors import RegistrationError, ToolError
from .functions import context_type, hints_of, is_async, label_of

if TYPE_CHECKING:
    from .exchange import Exchange


@dataclass(frozen=True, slots=True)
class ExceptionHandler:
    """A function of the site that is given an exception, and a context if it wants one."""

    function: Callable[..., Any]
    context_parameter: str | None
    context_type: type[Context]

    def handle(self, error: Exception, exchange: Exchange) -> Any:
        """Return what the function makes of ``error``."""
        if self.context_parameter is None:
            return self.function(error)
        return self.function(error, **{self.context_parameter: self.context_type(exchange)})


def build_exception_handler(function: Any) -> ExceptionHandler:
    """Return the handler that ``function`` makes."""
    label = label_of(function)
    if not callable(function) or is_async(function):
        raise RegistrationError(
            f"{label} is no plain function. Exceptions are handled by synchronous functions, which "
            "may use the ORM, also where an asynchronous tool has raised them."
        )
    context, wanted = None, Context
    for name, hint in ({} if inspect.isclass(function) else hints_of(function)).items():
        kind = context_type(hint)
        if kind is not None and name != "return":
            context, wanted = name, kind
    _check_takes_exception(function, label, context)
    return ExceptionHandler(function, context, wanted)


def check_kinds(kinds: Sequence[Any]) -> None:
    """Refuse what are no classes of exceptions that a site may have handled."""
    for kind in kinds or [None]:
        _check_kind(kind)


def _check_kind(kind: Any) -> None:
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        raise RegistrationError(
            f"{kind!r} is no class of exceptions. Say which are handled: "
            "`@mcp.exception_handler(OutOfStock)`."
        )
    if issubclass(kind, ToolError):
        raise RegistrationError(
            f"{kind.__name__} is a ToolError: its text is told as it stands, and nothing is asked."
        )


def _check_takes_exception(function: Callable[..., Any], label: str, context: str | None) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # of some built-in types nothing is known
    try:
        signature.bind(None, **({} if context is None else {context: None}))
    except TypeError as error:
        raise RegistrationError(
            f"{label}: {error}. It takes the exception and, if it wants one, a Context."
        ) from None
