"""What every process has one of. A fork gets its own: threads and connections do not come along."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """One ``T`` for each process, made when it is first asked for, from any thread."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._found: dict[None, T] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def __call__(self) -> T:
        """Return this process's own."""
        try:
            return self._found[None]
        except KeyError:
            # Of two threads that come at the same time, one wins.
            return self._found.setdefault(None, self._make())

    def forget(self) -> T | None:
        """Let the next who asks have a new one; return the one that there was."""
        # Another mapping, not an empty one: a thread that has just forked may have been at it.
        found, self._found = self._found, {}
        return found.get(None)
