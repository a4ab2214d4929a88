"""Arguments as clients send them that mean null, or nothing, and write something else.

Cursor fills optional inputs with ``""``, Claude Code with ``"null"``, and the adapters of crewai
with null where there is a default of another type.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any, Final

from pydantic import ValidationError

MAX_NULLS: Final = 100
"""In how many places it is tried whether null was meant."""

_MEANT_AS_NULL: Final = ("", "null")

Path = tuple[str | int, ...]


def with_nulls(
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
