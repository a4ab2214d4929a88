"""What becomes of an exception out of the site's code: what the client reads, and what is logged.

Which exceptions say something that a client may read is a table, by class, of the framework's
(:mod:`~django_mcp.server.exception_table`); a server's own handlers come before it. Whatever is
in neither has failed: it gets a reference, which the client and the log share.
"""

from __future__ import annotations

import logging
import secrets
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import sync_to_async
from django.conf import settings as django_settings

from ..protocol.errors import INTERNAL, Failed, MCPError, Unavailable
from .calling import Outcome
from .errors import QuestionUnsupported, ToolError, Unserializable
from .exception_table import ExceptionRow, FailureKind, announce, rows
from .questions.calls import beside_questions, missing_capability
from .results import content_blocks
from .transactions import around_function

if TYPE_CHECKING:
    from .exception_handlers import ExceptionHandler
    from .exchange import Exchange

logger = logging.getLogger("django_mcp.server")

REFERENCE_BYTES: Final = 4
"""Enough to tell the failures of some days apart in a log."""


NAMED: Final = frozenset({FailureKind.TOLD, FailureKind.MISSING, FailureKind.REFUSED})
"""What an error of the protocol can say."""
EVERYTHING: Final = frozenset(FailureKind)
"""What a result can say."""

TOOL_FAILED: Final = "The tool failed."


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception as the client may be told of it."""

    kind: FailureKind
    blocks: Sequence[dict[str, Any]]
    """Content blocks, with all fields of the newest revision."""

    @property
    def text(self) -> str:
        """What it says, where there is no place for content."""
        return "\n".join(block["text"] for block in self.blocks if block["type"] == "text")


@dataclass(slots=True, eq=False)
class Rescue:
    """Makes an outcome of what a call has raised, once its savepoint is rolled back."""

    exchange: Exchange
    tell: Callable[[Failure], Outcome]
    """Turns what can be told into an outcome, or raises an error of the protocol."""
    kinds: frozenset[FailureKind] = NAMED
    """What ``tell`` has words for; all else is an internal error."""

    def outcome(self, raised: BaseException) -> Outcome:
        """Return the outcome, in a thread that may use the ORM if code of the site is asked."""
        error = beside_questions(raised)
        return self._waiting() if error is None else self._outcome(_ordinary(error))

    async def aoutcome(self, raised: BaseException) -> Outcome:
        """Do as :meth:`outcome`, on an event loop."""
        error = beside_questions(raised)
        if error is None and self.exchange.request.is_large:
            # The answers so far are sealed, which takes its time.
            return await sync_to_async(self._waiting)()
        if error is None:
            return self._waiting()
        if isinstance(error, (MCPError, ToolError)):
            return self._outcome(error)
        try:
            return await sync_to_async(self._outcome)(_ordinary(error))
        except Unavailable:
            # No thread is free, and what has happened is told all the same.
            return self._outcome(_ordinary(error))

    def _waiting(self) -> Outcome:
        try:
            return self.exchange.questions.result()
        except Exception as error:
            return self._outcome(error)

    def _outcome(self, error: Exception) -> Outcome:
        if isinstance(error, MCPError):
            raise error
        if isinstance(error, QuestionUnsupported) and self.exchange.revision.modern:
            raise missing_capability(error) from None
        try:
            failure = self._told(error)
        except MCPError:
            raise
        except Exception as another:  # out of a handler, or of the text of an exception
            failure, error = None, another
        return self.tell(failure or self._failed(error))

    def _told(self, error: Exception) -> Failure | None:
        """Return what is told of ``error``: by what its nearest class has, and the site first."""
        handlers, table = self.exchange.server.exception_handlers, rows()
        for each in type(error).__mro__:
            failure = self._by_site(handlers.get(each), error, table[ToolError])
            failure = failure or self._by_table(table.get(each), error)
            if failure is not None:
                return failure
        return None

    def _by_site(
        self, handler: ExceptionHandler | None, error: Exception, row: ExceptionRow
    ) -> Failure | None:
        """Return what the site's handler makes of ``error``; ``row`` is for a ``ToolError``."""
        if handler is None:
            return None
        try:
            with around_function(atomic=True):
                answer = handler.handle(error, self.exchange)
        except ToolError as said:
            answer = said
        if answer is None:
            return None
        if isinstance(answer, ToolError):
            return self._by_table(row, answer)
        failure = Failure(FailureKind.TOLD, content_blocks(answer))
        self._log(logging.INFO, error, failure.text)
        return failure

    def _by_table(self, row: ExceptionRow | None, error: Exception) -> Failure | None:
        if row is None or row.kind not in self.kinds:
            return None
        text = row.text(error)
        if text is None:
            return None
        if row.log is not None:
            row.log(error, self.exchange.http_request())
        else:
            self._log(row.level, error, text, traceback=row.traceback)
        return _failure(row.kind, text)

    def _log(self, level: int, error: Exception, text: str, *, traceback: bool = False) -> None:
        label, kind = self.exchange.label, type(error).__name__
        logger.log(level, "%s: %s: %s", label, kind, text, exc_info=error if traceback else None)

    def _failed(self, error: Exception) -> Failure:
        if FailureKind.FAILED not in self.kinds:
            raise failed(error, self.exchange) from error
        return _failure(FailureKind.FAILED, _report(error, self.exchange, TOOL_FAILED))


def failed(error: Exception, exchange: Exchange) -> Failed:
    """Report what was not foreseen; return the error of the protocol that says so."""
    return Failed(_report(error, exchange, INTERNAL))


def report(
    error: BaseException,
    event: str,
    request: Callable[[], Any],
    log: logging.Logger = logger,
) -> str:
    """Log ``error``, and announce it as the framework does; return how texts refer to it."""
    reference = secrets.token_hex(REFERENCE_BYTES)
    extra = {"reference": reference}
    log.error("%s (reference %s)", event, reference, exc_info=error, extra=extra)
    announce(error, request())
    return f"(reference {reference})"


def _report(error: Exception, exchange: Exchange, otherwise: str) -> str:
    said = str(error) if isinstance(error, Unserializable) else ""
    event = f"{exchange.label}: {said}" if said else f"{exchange.label} failed"
    reference = report(error, event, exchange.http_request)
    text = f"{said or otherwise} {reference}"
    if django_settings.DEBUG:
        text += "\n" + "".join(traceback.format_exception_only(error)).strip()
    return text


def _ordinary(error: BaseException) -> Exception:
    if not isinstance(error, Exception):
        raise error  # the call is to end
    return error


def _failure(kind: FailureKind, text: str) -> Failure:
    return Failure(kind, [{"type": "text", "text": text}])
