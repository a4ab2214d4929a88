"""User code to be made, and what comes of it.

A handler that has reached user code does not run it: it returns a :class:`Call`, and the runner of
the door makes it, inline or on a lane. So handlers are plain functions, whatever the colour of the
function that the site wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .ports import Peer


class CallTimedOut(Exception):
    """A call took longer than it may; not to be confused with a time-out inside the function."""


class CallStopped(BaseException):
    """A call must end: it was cancelled, or took too long, or its session has ended.

    It is raised at the call's next word. User code that catches every ``Exception`` does not
    swallow it, and what a savepoint covers is rolled back.
    """


@dataclass(frozen=True, slots=True)
class Caching:
    """How long a client may keep a result, and for whom (2026-07-28, server/utilities/caching)."""

    ttl_ms: int
    scope: Literal["public", "private"]


@dataclass(slots=True)
class Result:
    """The ``result`` member of an answer, before the era's own fields are added."""

    body: dict[str, Any]
    caching: Caching | None = None
    session_id: str | None = None
    """The secret id of a session that this request opened."""
    type: Literal["complete", "input_required"] = "complete"
    """What the modern era calls ``resultType``."""
    tells_errors: bool = False
    """Whether it is a tool's, so that the model can be told in it what went wrong."""
    key: Hashable = None
    """Says which body it is, where many callers get the same: that is encoded once."""


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """One call to a function of the site.

    ``finish`` turns what it returned into the outcome; it runs where the function ran, inside its
    scope, because reading the value may need the database. ``rescue`` turns an exception into an
    outcome or raises it again; it runs after the scope has rolled back.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    is_async: bool
    finish: Callable[[Any], Outcome]
    rescue: Callable[[Exception], Outcome]
    scope: Callable[[], AbstractContextManager[None]]
    peer: Peer
    """The client for which it is made, which knows whether anybody still waits."""
    timeout: float | None = None
    """Seconds that the function may take."""

    def run(self) -> Outcome:
        """Make a synchronous call, in its scope."""
        with self.scope():
            value = self.function(**self.arguments)
            if self.peer.stopped:
                # Nobody gets the result, so what a transaction covers must not stay either.
                raise CallStopped
            return self.finish(value)

    async def arun(self) -> Outcome:
        """Make an asynchronous call."""
        return self.finish(await self.function(**self.arguments))


Outcome = Result | Call
