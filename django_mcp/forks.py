"""What every process has one of. A fork gets its own: threads and connections do not come along."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from random import SystemRandom
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_chance: Final = SystemRandom()


def jitter(seconds: float) -> float:
    """Return a number of seconds up to ``seconds``, so that not all processes come at once.

    Not by the generator that Python's functions share: forks would go on with the same numbers, and
    a site that has seeded it would get others.
    """
    return _chance.uniform(0, seconds)


class _Found(dict[None, T], Generic[T]):
    """What a process has made, once it has."""

    def __init__(self, make: Callable[[], T]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: None) -> T:
        # Of two threads that come at the same time, one wins.
        return self.setdefault(None, self._make())


class PerProcess(partial[T]):
    """One ``T`` for each process, made when it is first asked for, from any thread.

    Each request asks several times. Where it is made already that calls no Python function.
    """

    _found: _Found[T]

    def __new__(cls, make: Callable[[], T]) -> PerProcess[T]:
        """``make`` makes the one of a process."""
        found = _Found(make)
        self = super().__new__(cls, found.__getitem__, None)
        self._found = found
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)
        return self

    def found(self) -> T | None:
        """Return the one that there is, and make none."""
        return self._found.get(None)

    def forget(self) -> T | None:
        """Let the next who asks have a new one; return the one that there was."""
        return self._found.pop(None, None)
