"""What is added to ``_meta`` of every request that this process sends, such as its trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

additions: Final[list[Callable[[], Mapping[str, Any]]]] = []
"""Each is asked for each sending, in the context of whoever sends. What a caller gives in ``_meta``
comes before it."""


def added() -> dict[str, Any]:
    """Return what is to be added now."""
    found: dict[str, Any] = {}
    for addition in additions:
        found.update(addition())
    return found
