"""Matches a URI with the steps of a template, in linear time whatever the two are.

A regular expression tries one way to cut the URI after the other, and there may be millions. Here
all are followed at once, from the end to the beginning: the places that are reached are the bits of
an integer, and one addition carries each through a run of characters (R. Cameron et al., "Bitwise
Data Parallelism in Regular Expression Matching", 2014). After that no step from the beginning on
leads to a dead end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

ANY: Final = bytes(range(256))


def without(characters: str) -> bytes:
    """Return all bytes but these."""
    return bytes(set(ANY) - set(characters.encode()))


class Text:
    """A URI, and where in it which characters are.

    A place is told by the number of bytes after it: bit 0 is the end.
    """

    __slots__ = ("_found", "data")

    def __init__(self, uri: str) -> None:
        self.data = uri.encode("utf-8", "surrogatepass")
        self._found: dict[bytes, int] = {}

    def before(self, characters: bytes) -> int:
        """Return the places from which one step to the beginning is one of ``characters``."""
        found = self._found.get(characters)
        if found is None:
            digits = self.data.translate(_digits(characters))
            found = self._found[characters] = int(digits or b"0", 2)
        return found

    def between(self, start: int, end: int) -> str:
        """Return what stands between two places."""
        size = len(self.data)
        return self.data[size - start : size - end].decode("utf-8", "surrogatepass")


@lru_cache(maxsize=256)
def _digits(characters: bytes) -> bytes:
    return bytes(ord("1") if each in characters else ord("0") for each in range(256))


@dataclass(frozen=True, slots=True)
class Literal:
    """Characters that stand there; for each, those that it may be."""

    characters: tuple[bytes, ...]

    @classmethod
    def of(cls, text: str) -> Literal:
        """Return the literal ``text``."""
        return cls(tuple(bytes([each]) for each in text.encode("utf-8", "surrogatepass")))

    def back(self, text: Text, places: int) -> int:
        """Return the places from which one of ``places`` is reached."""
        for each in reversed(self.characters):
            places = (places & text.before(each)) << 1
        return places


@dataclass(frozen=True, slots=True)
class Value:
    """A variable's value: as short as it can be, but for one that may be empty."""

    name: str
    characters: bytes
    may_be_empty: bool = False

    def back(self, text: Text, places: int) -> int:
        """Return the places from which one of ``places`` is reached."""
        run = text.before(self.characters)
        if not self.may_be_empty:
            places = (places & run) << 1
        return (((places & run) + run) ^ run) | places

    def end(self, text: Text, place: int, places: int) -> int:
        """Return which of ``places``, from which the end is reached, is behind it."""
        if not self.may_be_empty:
            return (places & ((1 << place) - 1)).bit_length() - 1
        others = ~text.before(self.characters) & ((1 << place) - 1)
        furthest = others.bit_length()
        reachable = (places & ((2 << place) - 1)) >> furthest
        return furthest + (reachable & -reachable).bit_length() - 1


@dataclass(frozen=True, slots=True)
class Skip:
    """So many of the next steps may be left out, together."""

    over: int


Step = Literal | Value | Skip


def match(steps: Sequence[Step], text: Text) -> dict[str, str] | None:
    """Return the values with which ``steps`` make the whole of ``text``."""
    places = _places(steps, text)
    place = len(text.data)
    if not places[0] >> place & 1:
        return None
    values: dict[str, str] = {}
    number = 0
    while number < len(steps):
        step = steps[number]
        number += 1
        if isinstance(step, Literal):
            place -= len(step.characters)
        elif isinstance(step, Value):
            end = step.end(text, place, places[number])
            values[step.name] = text.between(place, end)
            place = end
        elif not places[number] >> place & 1:
            number += step.over
    return values


def _places(steps: Sequence[Step], text: Text) -> list[int]:
    """Return the places before each step from which the end is reached, and behind the last."""
    places = [1] * (len(steps) + 1)
    for number in range(len(steps) - 1, -1, -1):
        step, following = steps[number], places[number + 1]
        if isinstance(step, Skip):
            places[number] = following | places[number + 1 + step.over]
        else:
            places[number] = step.back(text, following)
    return places
