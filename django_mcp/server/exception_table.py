"""What exceptions say to a client: Django's by a table, the site's by functions of its own."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

import pydantic
from django.core.exceptions import (
    NON_FIELD_ERRORS,
    ObjectDoesNotExist,
    PermissionDenied,
    SuspiciousOperation,
    ValidationError,
)
from django.db import IntegrityError
from django.http import Http404
from django.utils.functional import Promise

from .context import ContextParameter, context_parameter
from .errors import RegistrationError, ResourceNotFound, ToolError, ToolTimedOut
from .exchange import Exchange
from .functions import hints_of, is_async, label_of


class FailureKind(Enum):
    """What an exception tells a client, and with it how it is answered."""

    EXPLAINED = auto()
    """What the site wants the client to read."""
    NOT_FOUND = auto()
    """That something does not exist."""
    DENIED = auto()
    """That the caller may not do this."""
    INVALID = auto()
    """That what the caller gave does not fit. In what is only read, that is a failure."""
    UNEXPECTED = auto()
    """Nothing: it was not foreseen, and is reported."""


PROTOCOL_ERROR_KINDS: Final = frozenset(
    {FailureKind.EXPLAINED, FailureKind.NOT_FOUND, FailureKind.DENIED}
)
"""The kinds of which an error of the protocol can inform the client."""
ALL_KINDS: Final = frozenset(FailureKind)
"""The kinds of which a tool's result can."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What the client may know of an exception."""

    kind: FailureKind
    blocks: Sequence[dict[str, Any]]
    """Content blocks, with all fields of the newest revision."""
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The messages of each field, where it is about fields; for programs."""

    @property
    def text(self) -> str:
        """Its text, where there is no place for content."""
        return "\n".join(block["text"] for block in self.blocks if block["type"] == "text")


@dataclass(frozen=True, slots=True)
class ExceptionRow:
    """What the client reads of the exceptions of one class, and how they are logged."""

    kind: FailureKind
    text: Callable[[Any], str | None]
    """Makes of the exception what the client reads; ``None``: it is of no such kind after all."""
    level: int = logging.INFO
    traceback: bool = False
    log: Callable[[Any, Any], None] | None = None
    """Logs it, given the request of the framework, where that is not done here."""


MAX_MESSAGES: Final = 20
"""How many messages of one exception the client reads."""

_NO_FIELD: Final = (NON_FIELD_ERRORS, "non_field_errors")
"""What Django and REST framework call what is said of all fields together."""


def _text_or(otherwise: str) -> Callable[[Exception], str]:
    """Return what gives the text of an exception, or ``otherwise`` where it has none."""

    def text(error: Exception) -> str:
        # That of the URL resolver holds all its patterns.
        has_text = all(isinstance(each, (str, Promise)) for each in error.args)
        return (str(error) if has_text else "") or otherwise

    return text


def _tool_error_text(error: ToolError) -> str:
    given = error.args[0] if len(error.args) == 1 else None
    return listed(given) if isinstance(given, (dict, list)) else str(error)


def _django_validation_text(error: ValidationError) -> str:
    return listed(error)


def _pydantic_validation_text(error: pydantic.ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return _lines(_problem(map(str, each["loc"]), each["msg"]) for each in problems)


def _rest_framework_text(error: Any) -> str | None:
    return None if error.status_code >= 500 else listed(error.detail)


def _log_as_django(error: Exception, request: Any) -> None:
    logger = logging.getLogger(f"django.security.{type(error).__name__}")
    logger.error("%s", error, exc_info=error, extra={"request": request})


TABLE: Final[Mapping[type[BaseException], ExceptionRow]] = {
    ToolError: ExceptionRow(FailureKind.EXPLAINED, _tool_error_text),
    ToolTimedOut: ExceptionRow(FailureKind.EXPLAINED, str, logging.WARNING),
    ResourceNotFound: ExceptionRow(FailureKind.NOT_FOUND, _text_or("There is no such resource.")),
    Http404: ExceptionRow(FailureKind.NOT_FOUND, _text_or("This does not exist.")),
    ObjectDoesNotExist: ExceptionRow(FailureKind.NOT_FOUND, _text_or("This does not exist.")),
    PermissionDenied: ExceptionRow(
        FailureKind.DENIED, _text_or("You may not do this."), logging.WARNING
    ),
    SuspiciousOperation: ExceptionRow(FailureKind.DENIED, lambda _: "Refused.", log=_log_as_django),
    ValidationError: ExceptionRow(FailureKind.INVALID, _django_validation_text),
    pydantic.ValidationError: ExceptionRow(FailureKind.INVALID, _pydantic_validation_text),
    IntegrityError: ExceptionRow(
        FailureKind.INVALID,
        lambda _: "This conflicts with what is already there.",
        logging.WARNING,
        traceback=True,
    ),
}
"""What a client reads of each exception, by its nearest class; all others are unexpected."""


@lru_cache(maxsize=1)
def _with_rest_framework(exceptions: ModuleType) -> Mapping[type[BaseException], ExceptionRow]:
    refused = ExceptionRow(FailureKind.DENIED, _rest_framework_text, logging.WARNING)
    return {
        **TABLE,
        exceptions.APIException: ExceptionRow(FailureKind.INVALID, _rest_framework_text),
        exceptions.NotFound: ExceptionRow(FailureKind.NOT_FOUND, _rest_framework_text),
        exceptions.NotAuthenticated: refused,
        exceptions.AuthenticationFailed: refused,
        exceptions.PermissionDenied: refused,
    }


def rows() -> Mapping[type[BaseException], ExceptionRow]:
    """Return the table, with REST framework's exceptions where the site has imported them."""
    exceptions = sys.modules.get("rest_framework.exceptions")
    # Another thread may be about to import it.
    if not hasattr(exceptions, "APIException") or not hasattr(exceptions, "Throttled"):
        return TABLE
    assert exceptions is not None
    return _with_rest_framework(exceptions)


@dataclass(frozen=True, slots=True)
class ExceptionHandler:
    """A function of the site that is given an exception, and a context if it wants one."""

    function: Callable[..., Any]
    context: ContextParameter | None

    def handle(self, error: Exception, exchange: Exchange) -> Any:
        """Return what the function makes of ``error``."""
        if self.context is None:
            return self.function(error)
        return self.function(error, **{self.context.name: self.context.value(exchange)})


def build_exception_handler(function: Any) -> ExceptionHandler:
    """Return the handler that ``function`` makes."""
    label = label_of(function)
    if not callable(function) or is_async(function):
        raise RegistrationError(
            f"{label} is no plain function. Exceptions are handled by synchronous functions, which "
            "may use the ORM, also where an asynchronous tool has raised them."
        )
    hints = {} if inspect.isclass(function) else hints_of(function)
    context = context_parameter(hints, [name for name in hints if name != "return"])
    _check_takes_exception(function, label, context)
    return ExceptionHandler(function, context)


def check_kinds(kinds: Sequence[Any]) -> None:
    """Refuse what are no classes of exceptions that a site may have handled."""
    for kind in kinds or [None]:
        _check_kind(kind)


def listed(detail: Any) -> str:
    """Return messages, perhaps by field and nested, one a line."""
    return _lines(_problems(detail, ()))


def messages_by_field(error: Exception) -> dict[str, list[str]]:
    """Return what Django says of each field, in the language in force; else nothing."""
    return dict(iter(error)) if hasattr(error, "error_dict") else {}  # type: ignore[call-overload]


def _problems(detail: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(detail, ValidationError):
        # Iterated, it gives its messages in the language in force, by field if it has fields.
        messages: Any = iter(detail)
        detail = dict(messages) if hasattr(detail, "error_dict") else list(messages)
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _problems(inner, path if name in _NO_FIELD else (*path, str(name)))
    elif isinstance(detail, (list, tuple)):
        for index, inner in enumerate(detail):
            nested = isinstance(inner, (Mapping, list, tuple))
            yield from _problems(inner, (*path, str(index)) if nested else path)
    else:
        yield _problem(path, str(detail))


def _problem(path: Any, message: str) -> str:
    where = ".".join(path)
    return f"{where}: {message}" if where else message


def _lines(problems: Iterator[str]) -> str:
    lines = list(problems)
    left = len(lines) - MAX_MESSAGES
    if left > 0:
        lines[MAX_MESSAGES:] = [f"And {left} more like these."]
    return "\n".join(lines) or "Invalid."


def _check_kind(kind: Any) -> None:
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        raise RegistrationError(
            f"{kind!r} is no class of exceptions. Say which are handled: "
            "`@mcp.exception_handler(OutOfStock)`."
        )
    if issubclass(kind, ToolError):
        raise RegistrationError(
            f"{kind.__name__} is a ToolError: its text reaches the client as it stands, and no "
            "handler is called."
        )


def _check_takes_exception(
    function: Callable[..., Any], label: str, context: ContextParameter | None
) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # of some built-in types nothing is known
    try:
        signature.bind(None, **({} if context is None else {context.name: None}))
    except TypeError as error:
        raise RegistrationError(
            f"{label}: {error}. It takes the exception and, if it wants one, a Context."
        ) from None
