"""A function of the site that is to be called, and what becomes of what it returns or raises.

A handler does not call that function itself: it returns a :class:`FunctionCall`, and the
:class:`Runner` decides where it runs. So handlers are plain functions, whether the site's are
asynchronous or not.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .exception_table import PROTOCOL_ERROR_KINDS, Failure, FailureKind
from .exchange import Exchange
from .questions.asking import Questions
from .registry import MCPServer
from .results import Result

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(slots=True, kw_only=True, eq=False)
class FunctionCall:
    """A function of the site that is to be called, and what becomes of what it returns."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    is_async: bool
    server: MCPServer
    """The server that offers the function."""
    exchange: Exchange
    """The request for which it is called."""
    finish: Callable[[Any], HandlerOutcome]
    """Turns what the function returned into the outcome. It runs where the function ran, and in the
    same transaction, because reading the value may need the database."""
    fail: Callable[[Failure], HandlerOutcome] | None
    """Turns what the client may know of an exception into the outcome, or raises an error of the
    protocol; ``None`` where no code of the site runs."""
    failure_kinds: frozenset[FailureKind] = PROTOCOL_ERROR_KINDS
    """The kinds that ``fail`` takes; all else is an internal error."""
    questions: Questions | None = None
    """What the function asks its client; ``None`` where it may not ask anything."""
    takes_request: bool = False
    """Whether it takes the HTTP request, and so runs where a view does."""
    sends_messages: bool = False
    """Whether its client may get notifications or requests before it ends."""
    atomic: bool = True
    """Whether a synchronous function runs in a savepoint, where a transaction is open."""
    timeout: float | None = None
    """Seconds that the function may take."""


HandlerOutcome = Result | FunctionCall
"""What a handler returns: the result, or the call from which it comes."""


class Runner(Protocol):
    """Runs the site's functions, and what may block.

    It does so in the thread of the request, or else on worker threads and the event loop: the only
    place where synchronous and asynchronous code meet.
    """

    limit_key: str
    """Whom limits take the caller for; empty until that is known."""
    call_context: Callable[[], AbstractContextManager[Any]] | None
    """What the site wants around its code where that is not in the request's own thread."""
    can_request: bool
    """Whether the client answers while a call waits, although nothing is streamed."""
    holds_connections: bool
    """Whether connections can be held open that wait for later news: no thread waits with each."""

    def reserve_stream(self) -> bool:
        """Return whether the answer can be a stream; if so there is room for it from now on."""

    def is_run_apart(self, call: FunctionCall) -> bool:
        """Return whether a call runs elsewhere than this, so that what it says can be sent."""

    async def run_on_loop(
        self, function: Callable[..., Coroutine[Any, Any, T]], /, *args: Any
    ) -> T:
        """Run ``function`` on an event loop, with what runs things there as its first argument."""

    async def run_within(self, context: Context, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run ``coroutine`` in ``context``, where what it sets stays."""

    transactions: Sequence[str]
    """The databases in which a transaction is open around the request, as in a test."""

    async def run_blocking(self, function: Callable[..., T], /, *args: Any) -> T:
        """Run code of this package that may touch the database."""

    async def find_batched(
        self, find: Callable[[Sequence[K]], Mapping[K, T]], key: K, /
    ) -> T | None:
        """Return what ``find`` returns for ``key``, perhaps looked up together with others."""

    async def run(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Run a function of the site, asynchronous or not, or one of ours that calls such."""

    async def call(self, call: FunctionCall) -> HandlerOutcome:
        """Call a function of the site, asynchronous or not, and return what comes of it.

        Raises :class:`~django_mcp.server.errors.CallStopped` if the call is to end.
        """
