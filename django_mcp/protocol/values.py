"""How many values a JSON text holds, told without parsing it: what it costs depends on that."""

from __future__ import annotations

from itertools import accumulate
from math import isfinite
from typing import Any, Final

MANY_VALUES: Final = 1_000
"""Values up to which all that is wrong with a body is told."""


def most_values(text: bytes) -> int:
    """Return a number that the values in ``text`` do not exceed; commas in strings count, too."""
    return 1 + text.count(b",") + text.count(b"[") + text.count(b"{")


def count_values(text: bytes) -> int:
    """Return how many values ``text`` holds; an empty array or object counts for one more."""
    return most_values(_without_strings(text))


def exceeds(text: bytes, limit: int) -> bool:
    """Return whether ``text`` holds more than ``limit`` values. Takes linear time."""
    if most_values(text) <= limit:
        return False
    # A value has one name at most, and each of the two has two quotes.
    if _without_escapes(text).count(b'"') > 4 * limit:
        return True
    return count_values(text) > limit


def is_deeper(text: bytes, limit: int) -> bool:
    """Return whether arrays and objects are nested to more than ``limit`` levels."""
    brackets = _without_strings(text).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > limit


def count_names(text: bytes) -> int:
    """Return how many members the objects in ``text`` have, which is valid JSON."""
    return _without_strings(text).count(b":")


def can_be_stored(text: str) -> bool:
    """Return whether every database takes ``text``: JSON can have NUL and halves of characters."""
    return "\x00" not in text and not any("\ud800" <= each <= "\udfff" for each in text)


def count_members(value: Any) -> int:
    """Return how many members the objects of a parsed value have.

    -1 if there is a number in it of which more is to be said than that it is one.
    """
    number, waiting = 0, [value]
    for each in waiting:
        kind = type(each)
        if kind is str:
            continue  # most are
        if kind is dict:
            number += len(each)
            waiting += each.values()
        elif kind is list:
            waiting += each
        elif (kind is int and not -_GREAT < each < _GREAT) or (
            kind is float and not isfinite(each)
        ):
            return -1
    return number


def _without_escapes(text: bytes) -> bytes:
    return text.replace(rb"\\", b"").replace(rb"\"", b"")


def _without_strings(text: bytes) -> bytes:
    if b"\\" in text:
        text = _without_escapes(text)
    return b"".join(text.split(b'"')[::2])


_GREAT: Final = 1 << 64
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def holds_more(value: Any, limit: int) -> bool:
    """Return whether a parsed value holds more than ``limit`` others; looks at no more of them."""
    left, waiting = limit, [value]
    while waiting:
        parent = waiting.pop()
        if isinstance(parent, (dict, list)):
            left -= len(parent)
            if left < 0:
                return True
            waiting += parent.values() if isinstance(parent, dict) else parent
    return False
