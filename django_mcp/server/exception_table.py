"""What Django's exceptions say to a client, and how the site hears of those that say nothing."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass
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
from django.core.signals import got_request_exception
from django.db import IntegrityError, connections
from django.http import Http404
from django.utils.functional import Promise

from ..store.database import has_loop
from .calling import CallTimedOut
from .errors import ResourceNotFound, ToolError


class FailureKind(Enum):
    """What an exception says."""

    TOLD = auto()
    """What the site wants the client to read."""
    MISSING = auto()
    """That something does not exist."""
    REFUSED = auto()
    """That the caller may not do this."""
    INVALID = auto()
    """That what the caller gave does not fit. In what is only read, that is a failure."""
    FAILED = auto()
    """Nothing: it was not foreseen."""


@dataclass(frozen=True, slots=True)
class ExceptionRow:
    """What is told of the exceptions of one class, and how loudly they are logged."""

    kind: FailureKind
    text: Callable[[Any], str | None]
    """Makes of the exception what the client reads; ``None``: it is of no such kind after all."""
    level: int = logging.INFO
    traceback: bool = False
    log: Callable[[Any, Any], None] | None = None
    """Logs it, given the request of the framework, where that is not done here."""


MAX_MESSAGES: Final = 20
"""How many messages of one exception are told."""

_NO_FIELD: Final = (NON_FIELD_ERRORS, "non_field_errors")
"""What Django and REST framework call what is said of all fields together."""


def _said(otherwise: str) -> Callable[[Exception], str]:
    """Return what gives the text of an exception, or ``otherwise`` where it has none."""

    def text(error: Exception) -> str:
        # That of the URL resolver holds all its patterns.
        has_text = all(isinstance(each, (str, Promise)) for each in error.args)
        return (str(error) if has_text else "") or otherwise

    return text


def _said_on_purpose(error: ToolError) -> str:
    given = error.args[0] if len(error.args) == 1 else None
    return _listed(given) if isinstance(given, (dict, list)) else str(error)


def _invalid_for_django(error: ValidationError) -> str:
    return _listed(error)


def _invalid_for_pydantic(error: pydantic.ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return _lines(_problem(map(str, each["loc"]), each["msg"]) for each in problems)


def _refused_by_rest_framework(error: Any) -> str | None:
    return None if error.status_code >= 500 else _listed(error.detail)


def _log_as_django(error: Exception, request: Any) -> None:
    logger = logging.getLogger(f"django.security.{type(error).__name__}")
    logger.error("%s", error, exc_info=error, extra={"request": request})


TABLE: Final[Mapping[type[BaseException], ExceptionRow]] = {
    ToolError: ExceptionRow(FailureKind.TOLD, _said_on_purpose),
    CallTimedOut: ExceptionRow(FailureKind.TOLD, str, logging.WARNING),
    ResourceNotFound: ExceptionRow(FailureKind.MISSING, _said("There is no such resource.")),
    Http404: ExceptionRow(FailureKind.MISSING, _said("This does not exist.")),
    ObjectDoesNotExist: ExceptionRow(FailureKind.MISSING, _said("This does not exist.")),
    PermissionDenied: ExceptionRow(
        FailureKind.REFUSED, _said("You may not do this."), logging.WARNING
    ),
    SuspiciousOperation: ExceptionRow(
        FailureKind.REFUSED, lambda _: "Refused.", log=_log_as_django
    ),
    ValidationError: ExceptionRow(FailureKind.INVALID, _invalid_for_django),
    pydantic.ValidationError: ExceptionRow(FailureKind.INVALID, _invalid_for_pydantic),
    IntegrityError: ExceptionRow(
        FailureKind.INVALID,
        lambda _: "This conflicts with what is already there.",
        logging.WARNING,
        traceback=True,
    ),
}
"""What a client is told of each exception, by its nearest class; all others have failed."""


@lru_cache(maxsize=1)
def _with_rest_framework(exceptions: ModuleType) -> Mapping[type[BaseException], ExceptionRow]:
    refused = ExceptionRow(FailureKind.REFUSED, _refused_by_rest_framework, logging.WARNING)
    return {
        **TABLE,
        exceptions.APIException: ExceptionRow(FailureKind.INVALID, _refused_by_rest_framework),
        exceptions.NotFound: ExceptionRow(FailureKind.MISSING, _refused_by_rest_framework),
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


def announce(error: BaseException, request: Any) -> None:
    """Send ``got_request_exception``, as Django does for an exception out of a view.

    Receivers may block and may use the ORM, so on an event loop they get a thread.
    """
    if not got_request_exception.has_listeners():
        return
    if has_loop():
        context = copy_context()
        asyncio.get_running_loop().run_in_executor(None, context.run, _send_apart, error, request)
    else:
        _send(error, request)


def _send_apart(error: BaseException, request: Any) -> None:
    try:
        _send(error, request)
    finally:
        connections.close_all()


def _send(error: BaseException, request: Any) -> None:
    if sys.exc_info()[1] is error:
        got_request_exception.send_robust(sender=None, request=request)
        return
    # Receivers ask which exception is being handled.
    traceback, context = error.__traceback__, error.__context__
    try:
        raise error
    except BaseException:
        got_request_exception.send_robust(sender=None, request=request)
    finally:
        error.__traceback__, error.__context__ = traceback, context


def _listed(detail: Any) -> str:
    return _lines(_problems(detail, ()))


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
