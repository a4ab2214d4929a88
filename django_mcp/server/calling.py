"""User code to be made, and what comes of it.

A handler that has reached user code does not run it: it returns a :class:`Call`, and the runner of
the door makes it, inline or on a lane. So handlers are plain functions, whatever the colour of the
function that the site wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .failures import Rescue
    from .ports import Peer


class CallTimedOut(Exception):
    """A call took longer than it may; not to be confused with a time-out inside the function."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The tool did not finish within {seconds:g} seconds.")


class CallStopped(BaseException):
    """A call must end: it was cancelled, or took too long, or its session has ended.

    It is raised at the call's next word. User code that catches every ``Exception`` does not
    swallow it, and what a savepoint covers is rolled back.
    """


class EndedItself(Exception):
    """A function has ended in a way that is for whoever runs it: nobody had cancelled the call."""

    def __init__(self, raised: BaseException) -> None:
        super().__init__(f"the function raised {type(raised).__name__}")
        self.__cause__ = raised


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
    session_id: str | None = field(default=None, repr=False)
    """The secret id of a session that this request opened."""
    type: Literal["complete", "input_required"] = "complete"
    """What the modern era calls ``resultType``."""
    tells_errors: bool = False
    """Whether it is a tool's, so that the model can be told in it what went wrong."""
    failed: bool = False
    """Whether it says that something was not foreseen, which the log describes."""
    key: Hashable = None
    """Says which body it is, where many callers get the same: that is encoded once."""


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """One call to a function of the site.

    ``finish`` turns what it returned into the outcome; it runs where the function ran, inside its
    scope, because reading the value may need the database. ``rescue`` turns an exception into an
    outcome; it runs there, too, but after the scope has rolled back.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    is_async: bool
    finish: Callable[[Any], Outcome]
    rescue: Rescue | None
    """``None`` where no code of the site runs."""
    scope: Callable[[], AbstractContextManager[None]]
    peer: Peer
    """The client for which it is made, which knows whether anybody still waits."""
    timeout: float | None = None
    """Seconds that the function may take."""

    def run(self) -> Outcome:
        """Make a synchronous call, in its scope."""
        try:
            with self.scope():
                value = self.function(**self.arguments)
                if self.peer.stopped:
                    # Nobody gets the result, so what a transaction covers must not stay either.
                    raise CallStopped
                return self.finish(value)
        except (Exception, BaseExceptionGroup) as error:
            if self.rescue is None:
                raise
            return self.rescue.outcome(error)

    def run_apart(self) -> Outcome:
        """Do as :meth:`run`, in a thread that only the function itself can bring to an end.

        What would end the process, or the task that waits, is a failure there like any other.
        """
        try:
            return self.run()
        except (SystemExit, asyncio.CancelledError) as error:
            if self.rescue is None:
                raise
            return self.rescue.outcome(EndedItself(error))

    async def arun(self) -> Outcome:
        """Make an asynchronous call."""
        try:
            return self.finish(await self.function(**self.arguments))
        except (Exception, BaseExceptionGroup) as error:
            if self.rescue is None:
                raise
            return await self.rescue.aoutcome(error)
        except asyncio.CancelledError as error:
            if self.rescue is None or _is_cancelled():
                raise
            # Out of something that the function has awaited. Its client waits for an answer.
            return await self.rescue.aoutcome(EndedItself(error))


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


Outcome = Result | Call
