"""Arguments that do not fit at once: what may have been meant instead, and what is wrong.

Some clients write something else where they mean null or nothing: Cursor fills optional inputs with
``""``, Claude Code with ``"null"``, and the adapters of crewai with null where there is a default
of another type. Others send a list or an object as the text of its JSON.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from functools import partial
from itertools import islice
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from ..protocol.bounded import NOT_LOOKED_AT, Validating, Validator
from ..protocol.values import MANY_VALUES, exceeds, most_values

MAX_DECODED_CHARACTERS: Final = 1_000_000
"""Length of the strings in the arguments of a call that are parsed as JSON, together."""
MAX_DECODED_VALUES: Final = 100_000
"""Values in one of them."""

MAX_NULLS: Final = 100
"""In how many places it is tried whether null was meant."""
MAX_PROBLEMS: Final = 10
"""How many of the problems with a call's arguments one message names."""

_CUT_CHARACTERS: Final = 100
"""How much of a name or a value a message repeats."""

_MEANT_AS_NULL: Final = ("", "null")

Path = tuple[str | int, ...]


class ArgumentError(ValueError):
    """Arguments that do not fit; the text names each one and what was expected of it."""


def validate_leniently(
    arguments: Mapping[str, Any],
    validator: Validator[Any],
    validating: Validating,
    optional: Collection[str],
) -> BaseModel:
    """Return what is made of arguments that did not fit as they are.

    ``optional`` are the names of those that need not be given. Raises pydantic's
    ``ValidationError`` if they do not fit in any other way either.
    """
    # As JSON even strict models take a date from a string, and the errors speak of arrays and
    # objects.
    model: BaseModel
    try:
        model = validating.validate_json(to_json(arguments))
    except ValidationError as error:
        decoded = _decode_strings(arguments, error)
        if not decoded:
            return _validate_with_nulls(arguments, error, validating, optional)
    else:
        return model
    arguments = {**arguments, **decoded}
    text = to_json(arguments)
    if most_values(text) > MANY_VALUES:
        validating = validator.begin(many=True)
    try:
        model = validating.validate_json(text)
    except ValidationError as error:
        return _validate_with_nulls(arguments, error, validating, optional)
    return model


def argument_error(
    arguments: Mapping[str, Any],
    names: Collection[str],
    optional: Collection[str],
    *,
    strict: bool,
    error: ValidationError | None = None,
) -> ArgumentError:
    """Return what is wrong with ``arguments`` of a function that takes ``names``.

    With ``strict`` no others may be given; ``error`` is what pydantic has found.
    """
    problems, known = _Problems(), frozenset(names)
    taken = ", ".join(names) or "no arguments"
    for name in arguments if strict else ():
        if name not in known:
            problems.add(partial("{}: unknown argument (this takes {}).".format, _cut(name), taken))
    if error is not None:
        # What is null and need not be given is no mistake by itself.
        nulls = {name for name, value in arguments.items() if value is None}
        problems.note(error, beside=nulls & set(optional))
    return ArgumentError(f"Invalid arguments. {problems}")


class _Problems:
    """Problems, of which only as many are put into words as a message names."""

    def __init__(self) -> None:
        self._named: list[str] = []
        self._left = 0

    def __str__(self) -> str:
        more = [f"And {self._left} more like these."] if self._left else []
        return " ".join(self._named + more)

    def add(self, problem: Callable[[], str]) -> None:
        """Count a problem, and put it into words if it is among the first."""
        if len(self._named) < MAX_PROBLEMS:
            self._named.append(problem())
        else:
            self._left += 1

    def note(self, error: ValidationError, *, beside: Set[str] = frozenset()) -> None:
        """Add what pydantic has found, other than ``beside`` if there is anything else."""
        found = error.errors(include_url=False, include_context=False)
        looked_at = [details for details in found if details["type"] != NOT_LOOKED_AT]
        others = [details for details in looked_at if beside.isdisjoint(details["loc"][:1])]
        for details in others or looked_at:
            self.add(partial(_in_words, details))


def _cut(text: str, length: int = _CUT_CHARACTERS) -> str:
    """Return the beginning of a text, however long it is."""
    return text if len(text) <= length else f"{text[:length]}..."


def _glance(value: Any) -> str:
    """Return the beginning of what ``repr`` gives, without making all of it."""
    return _cut("".join(islice(_pieces(value), _CUT_CHARACTERS + 1)))


def _in_words(details: Any) -> str:
    where = ".".join(_cut(str(part)) for part in details["loc"])
    expected = _cut(details["msg"], 1000)
    if not where:
        return f"{expected}."
    if details["type"] == "missing":
        return f"{where}: this argument is required."
    return f"{where}: {expected} (given: {_glance(details['input'])})."


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _listed("{", ((key, each) for key, each in value.items()), "}")
    elif isinstance(value, list):
        yield from _listed("[", ((None, each) for each in value), "]")
    elif isinstance(value, str):
        yield repr(value[: _CUT_CHARACTERS + 1])
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


def _validate_with_nulls(
    arguments: Mapping[str, Any],
    error: ValidationError,
    validating: Validating,
    optional: Collection[str],
) -> BaseModel:
    repaired = _with_nulls(arguments, error, optional)
    if repaired is None:
        raise error
    try:
        model: BaseModel = validating.validate_json(to_json(repaired))
    except ValidationError:
        raise error from None
    return model


def _decode_strings(arguments: Mapping[str, Any], error: ValidationError) -> dict[str, Any]:
    # Some clients send a list or an object as the string of its JSON, and everything that a prompt
    # or a URI gets is a string. Where a string does not fit and its JSON does, that is what was
    # meant.
    decoded: dict[str, Any] = {}
    left = MAX_DECODED_CHARACTERS
    for details in error.errors(include_url=False, include_context=False):
        name = next(iter(details["loc"]), None)
        text = arguments.get(str(name))
        if isinstance(text, str) and _wants_other_json(details["type"], text):
            left -= len(text)
            try:
                decoded[str(name)] = _decode(text) if left >= 0 else text
            except ValueError:
                continue
    return decoded


def _decode(text: str) -> Any:
    if exceeds(text.encode("utf-8", "replace"), MAX_DECODED_VALUES):
        raise ValueError("The string holds too many values")
    return from_json(text, allow_inf_nan=False)


def _wants_other_json(expected: str, text: str) -> bool:
    if text.lstrip()[:1] in ("[", "{"):
        return expected.endswith("_type")
    return expected in ("literal_error", "enum") and text != "null"


def _with_nulls(
    arguments: Mapping[str, Any], error: ValidationError, optional: Collection[str]
) -> dict[str, Any] | None:
    """Return ``arguments`` with null wherever they did not fit and null can be meant.

    One of the ``optional`` arguments that is null, and may not be, is left out. Whether null fits
    is for the next validation to say; ``None`` where there is nothing to try.
    """
    if error.error_count() > MAX_NULLS:
        return None
    repaired = dict(arguments)
    # By identity, for what is copied once; the copies are all part of what is returned.
    copied: set[int] = set()
    for details in error.errors(include_url=False, include_context=False):
        path, value = _find(details["loc"], arguments)
        if value is None and len(path) == 1 and path[0] in optional:
            repaired.pop(str(path[0]), None)
        elif path and isinstance(value, str) and value in _MEANT_AS_NULL:
            _set_null(repaired, path, copied)
        # Other errors may be those of other branches of a union.
    return None if repaired == arguments else repaired


def _find(place: Path, arguments: Any) -> tuple[Path, Any]:
    """Return the path to the value that an error is about, and the value."""
    path: list[str | int] = []
    value = arguments
    for part in place:
        # What is neither a key nor an index names a branch of a union.
        if _holds(value, part):
            path.append(part)
            value = value[part]
    return tuple(path), value


def _holds(value: Any, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, Mapping) and part in value


def _set_null(container: Any, path: Path, copied: set[int]) -> None:
    *above, last = path
    for part in above:
        if id(container[part]) not in copied:
            container[part] = copy.copy(container[part])
            copied.add(id(container[part]))
        container = container[part]
    container[last] = None
