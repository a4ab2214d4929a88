"""Bytes that count how often they are handled: a measure of work that no clock disturbs.

What is cut out of them, or put together with them, counts as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Self

HANDLING = [
    *["__add__", "__contains__", "__eq__", "__getitem__", "__iter__", "count", "decode"],
    *["endswith", "find", "index", "partition", "removeprefix", "replace", "rfind", "rpartition"],
    *["split", "splitlines", "startswith", "strip"],
]
"""Methods that may look at all of the bytes."""
APPENDING = ["__iadd__", "extend"]
"""Methods that look at what they append alone."""


class Work:
    """How many bytes have been handled."""

    handled = 0


class Counted:
    """Of bytes, or of an array of them."""

    work: Work

    @classmethod
    def of(cls, value: bytes | bytearray, work: Work) -> Self:
        """Return ``value``, counted."""
        counted: Any = cls(value)  # type: ignore[call-arg]
        counted.work = work
        return counted  # type: ignore[no-any-return]


class CountedBytes(Counted, bytes):
    """Counted bytes."""

    __hash__ = bytes.__hash__

    def __radd__(self, other: bytes) -> bytes:
        self.work.handled += len(other) + len(self)
        return self.of(other + bytes(memoryview(self)), self.work)


class CountedArray(Counted, bytearray):
    """Counted bytes that can be changed."""

    def __bytes__(self) -> bytes:
        self.work.handled += len(self)
        return CountedBytes.of(bytes(memoryview(self)), self.work)


class CountedPattern:
    """A pattern that counts the bytes in which it searches."""

    def __init__(self, pattern: re.Pattern[bytes], work: Work) -> None:
        self._pattern = pattern
        self._work = work

    def __getattr__(self, name: str) -> Any:
        def search(text: bytes, *args: int) -> Any:
            self._work.handled += len(text) - (args[0] if args else 0)
            return getattr(self._pattern, name)(text, *args)

        return search


def _counting(method: Callable[..., Any], *, appends: bool) -> Callable[..., Any]:
    def count(self: Any, *args: Any) -> Any:
        others = sum(len(each) for each in args if isinstance(each, bytes | bytearray))
        self.work.handled += others + (0 if appends else _looked_at(self, method.__name__, args))
        result = method(self, *args)
        return self if appends and result is self else _counted(result, self.work)

    return count


def _looked_at(self: bytes, method: str, args: tuple[Any, ...]) -> int:
    if method == "__getitem__":
        return len(range(*args[0].indices(len(self)))) if isinstance(args[0], slice) else 1
    return len(self)


def _counted(value: Any, work: Work) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_counted(each, work) for each in value)
    if type(value) is bytes:
        return CountedBytes.of(value, work)
    return CountedArray.of(value, work) if type(value) is bytearray else value


for kind, base in ((CountedBytes, bytes), (CountedArray, bytearray)):
    for name in HANDLING:
        setattr(kind, name, _counting(getattr(base, name), appends=False))
for name in APPENDING:
    setattr(CountedArray, name, _counting(getattr(bytearray, name), appends=True))
