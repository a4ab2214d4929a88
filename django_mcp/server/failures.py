"""What becomes of an exception out of the site's code: what the client reads, and what is logged.

Which exceptions say something that a client may read is a table, by class, of the framework's
(:attr:`~django_mcp.server.ports.Bridge.told`); a server's own handlers come before it. Whatever is
in neither has failed: it gets a reference, which the client and the log share.
"""

from __future__ import annotations

import logging
import secrets
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from ..protocol.errors import INTERNAL, Failed, MCPError, Unavailable
from .calling import Outcome
from .errors import QuestionUnsupported, ToolError, Unserializable
from .questions.calls import beside_questions, missing_capability
from .results import content_blocks

if TYPE_CHECKING:
    from .exception_handlers import ExceptionHandler
    from .exchange import Exchange
    from .ports import Bridge

logger = logging.getLogger("django_mcp.server")

REFERENCE_BYTES: Final = 4
"""Enough to tell the failures of some days apart in a log."""


class Kind(Enum):
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


NAMED: Final = frozenset({Kind.TOLD, Kind.MISSING, Kind.REFUSED})
"""What an error of the protocol can say."""
EVERYTHING: Final = frozenset(Kind)
"""What a result can say."""

TOOL_FAILED: Final = "The tool failed."


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of the exceptions of one class, and how loudly they are logged."""

    kind: Kind
    text: Callable[[Any], str | None]
    """Makes of the exception what the client reads; ``None``: it is of no such kind after all."""
    level: int = logging.INFO
    traceback: bool = False
    log: Callable[[Any, Any], None] | None = None
    """Logs it, given the request of the framework, where that is not done here."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception as the client may be told of it."""

    kind: Kind
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
    kinds: frozenset[Kind] = NAMED
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
            return await self.exchange.bridge.blocking(self._waiting)
        if error is None:
            return self._waiting()
        if isinstance(error, (MCPError, ToolError)):
            return self._outcome(error)
        try:
            return await self.exchange.bridge.blocking(self._outcome, _ordinary(error))
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
        handlers, table = self.exchange.server.exception_handlers, self.exchange.bridge.told()
        for each in type(error).__mro__:
            failure = self._by_site(handlers.get(each), error, table[ToolError])
            failure = failure or self._by_table(table.get(each), error)
            if failure is not None:
                return failure
        return None

    def _by_site(
        self, handler: ExceptionHandler | None, error: Exception, row: Told
    ) -> Failure | None:
        """Return what the site's handler makes of ``error``; ``row`` is for a ``ToolError``."""
        if handler is None:
            return None
        bridge = self.exchange.bridge
        try:
            with bridge.scope(atomic=True):
                answer = handler.handle(error, self.exchange)
        except ToolError as said:
            answer = said
        if answer is None:
            return None
        if isinstance(answer, ToolError):
            return self._by_table(row, answer)
        failure = Failure(Kind.TOLD, content_blocks(answer, bridge.jsonable))
        self._log(logging.INFO, error, failure.text)
        return failure

    def _by_table(self, row: Told | None, error: Exception) -> Failure | None:
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
        if Kind.FAILED not in self.kinds:
            raise failed(error, self.exchange) from error
        return _failure(Kind.FAILED, _report(error, self.exchange, TOOL_FAILED))


def failed(error: Exception, exchange: Exchange) -> Failed:
    """Report what was not foreseen; return the error of the protocol that says so."""
    return Failed(_report(error, exchange, INTERNAL))


def report(
    error: BaseException,
    event: str,
    bridge: Bridge,
    request: Callable[[], Any],
    log: logging.Logger = logger,
) -> str:
    """Log ``error``, and announce it as the framework does; return how texts refer to it."""
    reference = secrets.token_hex(REFERENCE_BYTES)
    extra = {"reference": reference}
    log.error("%s (reference %s)", event, reference, exc_info=error, extra=extra)
    bridge.announce(error, request())
    return f"(reference {reference})"


def _report(error: Exception, exchange: Exchange, otherwise: str) -> str:
    said = str(error) if isinstance(error, Unserializable) else ""
    event = f"{exchange.label}: {said}" if said else f"{exchange.label} failed"
    reference = report(error, event, exchange.bridge, exchange.http_request)
    text = f"{said or otherwise} {reference}"
    if exchange.bridge.debug:
        text += "\n" + "".join(traceback.format_exception_only(error)).strip()
    return text


def _ordinary(error: BaseException) -> Exception:
    if not isinstance(error, Exception):
        raise error  # the call is to end
    return error


def _failure(kind: Kind, text: str) -> Failure:
    return Failure(kind, [{"type": "text", "text": text}])
