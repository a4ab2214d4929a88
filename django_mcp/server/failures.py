"""What becomes of an exception out of the site's code: what the client reads, and what is logged.

Which exceptions say something that a client may read is a table, by class, of the framework's
(:mod:`~django_mcp.server.exception_table`); a server's own handlers come before it. Whatever is
in neither is unexpected: it gets a reference, which the client and the log share.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
import traceback
from collections.abc import Callable, Iterator
from contextvars import copy_context
from dataclasses import replace
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.core.signals import got_request_exception
from django.db import connections

from ..protocol.errors import INTERNAL, ErrorCode, Failed, MCPError
from ..store.database import has_loop
from .errors import InputRequired, NoThreadFree, QuestionUnsupported, ToolError, Unserializable
from .exception_table import (
    PROTOCOL_ERROR_KINDS,
    ExceptionHandler,
    ExceptionRow,
    Failure,
    FailureKind,
    messages_by_field,
    rows,
)
from .exchange import Exchange
from .function_call import HandlerOutcome
from .questions.asking import Questions
from .registry import MCPServer
from .results import Result, content_blocks
from .transactions import atomic_aliases, open_transactions, savepoints

logger = logging.getLogger("django_mcp.server")

REFERENCE_BYTES: Final = 4
"""Enough to distinguish the failures of some days in a log."""


TOOL_FAILED: Final = "The tool failed."


class ExceptionTranslator:
    """Makes an outcome of what a function has raised, once its savepoint is rolled back."""

    def __init__(
        self,
        server: MCPServer,
        exchange: Exchange,
        fail: Callable[[Failure], HandlerOutcome],
        kinds: frozenset[FailureKind] = PROTOCOL_ERROR_KINDS,
        questions: Questions | None = None,
    ) -> None:
        """``fail`` turns what the client may know into an outcome; it takes ``kinds`` alone."""
        self.server = server
        self.exchange = exchange
        self.questions = questions
        self.fail = fail
        self.kinds = kinds

    def outcome(self, raised: BaseException) -> HandlerOutcome:
        """Return the outcome, in a thread that may use the ORM if code of the site is asked."""
        error = _without_input_required(raised)
        return self._input_required() if error is None else self._outcome(_require_exception(error))

    async def aoutcome(self, raised: BaseException) -> HandlerOutcome:
        """Do as :meth:`outcome`, on an event loop."""
        error = _without_input_required(raised)
        if error is None and self.exchange.request.is_large:
            # The answers so far are signed, which takes its time.
            return await sync_to_async(self._input_required)()
        if error is None:
            return self._input_required()
        if isinstance(error, (MCPError, ToolError)):
            return self._outcome(error)
        try:
            return await sync_to_async(self._outcome)(_require_exception(error))
        except NoThreadFree:
            # No thread is free, and the client is answered all the same.
            return self._outcome(_require_exception(error))

    def _input_required(self) -> HandlerOutcome:
        try:
            assert self.questions is not None
            return Result(self.questions.result(), type="input_required")
        except Exception as error:
            return self._outcome(error)

    def _outcome(self, error: Exception) -> HandlerOutcome:
        self.exchange.note_raised(error)
        if isinstance(error, MCPError):
            raise error
        if isinstance(error, QuestionUnsupported) and self.exchange.revision.modern:
            raise _missing_capability(error) from None
        try:
            failure = self._explain(error)
        except MCPError:
            raise
        except Exception as another:  # out of a handler, or of the text of an exception
            failure, error = None, another
        return self.fail(failure or self._unexpected(error))

    def _explain(self, error: Exception) -> Failure | None:
        """Return what the client may know of ``error``, by its nearest class, the site's first."""
        handlers, table = self.server.exception_handlers, rows()
        for each in type(error).__mro__:
            failure = self._explain_by_handler(handlers.get(each), error, table[ToolError])
            failure = failure or self._explain_by_table(table.get(each), error)
            if failure is not None:
                return failure
        return None

    def _explain_by_handler(
        self, handler: ExceptionHandler | None, error: Exception, row: ExceptionRow
    ) -> Failure | None:
        """Return what the site's handler makes of ``error``; ``row`` is for a ``ToolError``."""
        if handler is None:
            return None
        try:
            with savepoints(atomic_aliases(open_transactions())):
                answer = handler.handle(error, self.exchange)
        except ToolError as tool_error:
            answer = tool_error
        if answer is None:
            return None
        if isinstance(answer, ToolError):
            return self._explain_by_table(row, answer)
        failure = Failure(FailureKind.EXPLAINED, content_blocks(answer))
        self._log(logging.INFO, error, failure.text)
        return failure

    def _explain_by_table(self, row: ExceptionRow | None, error: Exception) -> Failure | None:
        if row is None or row.kind not in self.kinds:
            return None
        text = row.text(error)
        if text is None:
            return None
        if row.log is not None:
            row.log(error, self.exchange.http.django())
        else:
            self._log(row.level, error, text, traceback=row.traceback)
        return replace(_failure(row.kind, text), fields=messages_by_field(error))

    def _log(self, level: int, error: Exception, text: str, *, traceback: bool = False) -> None:
        label, kind = self.exchange.label, type(error).__name__
        logger.log(level, "%s: %s: %s", label, kind, text, exc_info=error if traceback else None)

    def _unexpected(self, error: Exception) -> Failure:
        if FailureKind.UNEXPECTED not in self.kinds:
            raise internal_error(error, self.exchange) from error
        return _failure(FailureKind.UNEXPECTED, _report(error, self.exchange, TOOL_FAILED))


def internal_error(error: Exception, exchange: Exchange) -> Failed:
    """Report what was not foreseen; return the error of the protocol that says so."""
    exchange.note_raised(error)
    return Failed(_report(error, exchange, INTERNAL))


def report(
    error: BaseException,
    event: str,
    request: Callable[[], Any],
    log: logging.Logger = logger,
) -> str:
    """Log ``error``, and send the signal that Django sends; return how texts refer to it."""
    reference = secrets.token_hex(REFERENCE_BYTES)
    extra = {"reference": reference}
    log.error("%s (reference %s)", event, reference, exc_info=error, extra=extra)
    _send_exception_signal(error, request())
    return f"(reference {reference})"


def _report(error: Exception, exchange: Exchange, otherwise: str) -> str:
    text_of_error = str(error) if isinstance(error, Unserializable) else ""
    event = f"{exchange.label}: {text_of_error}" if text_of_error else f"{exchange.label} failed"
    reference = report(error, event, exchange.http.django)
    text = f"{text_of_error or otherwise} {reference}"
    if django_settings.DEBUG:
        text += "\n" + "".join(traceback.format_exception_only(error)).strip()
    return text


def _require_exception(error: BaseException) -> Exception:
    if not isinstance(error, Exception):
        raise error  # the call is to end
    return error


def _failure(kind: FailureKind, text: str) -> Failure:
    return Failure(kind, [{"type": "text", "text": text}])


def _without_input_required(error: BaseException) -> BaseException | None:
    """Return what was raised beside questions; ``None`` if that was all.

    Tasks that ask at the same time raise their questions as a group. If one of them is declined,
    or several, the model reads of the first; one bug in the group is that bug; and a call that
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
    """Return the error for a client that cannot be asked."""
    # 2026-07-28, basic/index, "Client Capabilities". The message is all that many clients show the
    # model.
    return MCPError(
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        str(error),
        {"requiredCapabilities": error.required},
    )


def _send_exception_signal(error: BaseException, request: Any) -> None:
    """Send ``got_request_exception``, as Django does for an exception out of a view.

    Receivers may block and may use the ORM, so on an event loop they get a thread.
    """
    if not got_request_exception.has_listeners():
        return
    if has_loop():
        context = copy_context()
        asyncio.get_running_loop().run_in_executor(
            None, context.run, _send_in_thread, error, request
        )
    else:
        _send(error, request)


def _send_in_thread(error: BaseException, request: Any) -> None:
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
