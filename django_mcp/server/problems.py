"""What is wrong with the arguments of a call, in words for whoever made it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from functools import partial
from itertools import islice
from typing import Any, Final

from pydantic import ValidationError

from ..protocol.bounded import NOT_LOOKED_AT

MAX_PROBLEMS: Final = 10
"""How many of the problems with a call's arguments are told at once."""

_LENGTH: Final = 100


class Problems:
    """Problems, of which only as many are put into words as are told."""

    def __init__(self) -> None:
        self._told: list[str] = []
        self._left = 0

    def __str__(self) -> str:
        more = [f"And {self._left} more like these."] if self._left else []
        return " ".join(self._told + more)

    def add(self, problem: Callable[[], str]) -> None:
        """Count a problem, and put it into words if it is among the first."""
        if len(self._told) < MAX_PROBLEMS:
            self._told.append(problem())
        else:
            self._left += 1

    def note(self, error: ValidationError, *, beside: Set[str] = frozenset()) -> None:
        """Add what pydantic has found, other than ``beside`` if there is anything else."""
        found = error.errors(include_url=False, include_context=False)
        looked_at = [details for details in found if details["type"] != NOT_LOOKED_AT]
        others = [details for details in looked_at if beside.isdisjoint(details["loc"][:1])]
        for details in others or looked_at:
            self.add(partial(_in_words, details))


def cut(text: str, length: int = _LENGTH) -> str:
    """Return the beginning of a text, however long it is."""
    return text if len(text) <= length else f"{text[:length]}..."


def glance(value: Any) -> str:
    """Return the beginning of what ``repr`` gives, without making all of it."""
    return cut("".join(islice(_pieces(value), _LENGTH + 1)))


def _in_words(details: Any) -> str:
    where = ".".join(cut(str(part)) for part in details["loc"])
    expected = cut(details["msg"], 1000)
    if not where:
        return f"{expected}."
    if details["type"] == "missing":
        return f"{where}: this argument is required."
    return f"{where}: {expected} (given: {glance(details['input'])})."


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _listed("{", ((key, each) for key, each in value.items()), "}")
    elif isinstance(value, list):
        yield from _listed("[", ((None, each) for each in value), "]")
    elif isinstance(value, str):
        yield repr(value[: _LENGTH + 1])
    else:
        yield repr(value)


def _listed(begin: str, items: Iterator[tuple[str | None, Any]], end: str) -> Iterator[str]:
    yield begin
    for number, (key, each) in enumerate(items):
        if number:
            yield ", "
        if key is not None:
            yield from _pieces(key)
            yield ": "
        yield from _pieces(each)
    yield end
