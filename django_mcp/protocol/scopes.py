"""Scopes of OAuth: names for what the credentials of a client are good for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

#: RFC 6749, section 3.3.
_SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")

NOT_OURS: Final = frozenset({"offline_access"})
"""2026-07-28, basic/authorization, "Refresh Tokens": no server asks for them, nor needs them."""


def check_scope(scope: Any) -> Any:
    """Return a scope that something may need; raises ``ValueError`` for what is none."""
    if not isinstance(scope, str) or not _SCOPE.fullmatch(scope):
        raise ValueError(
            f"{scope!r} is not a scope. Write a name of printable ASCII without spaces, quotation "
            'marks and backslashes, as in "orders:write"'
        )
    if scope in NOT_OURS:
        raise ValueError(
            f"{scope!r} is between clients and authorization servers; nothing here can need it"
        )
    return scope


def with_included(scopes: Iterable[str], hierarchy: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return scopes, and what they include.

    >>> sorted(with_included(["write"], {"write": ["read"], "read": ["list"]}))
    ['list', 'read', 'write']
    """
    found: set[str] = set()
    left = list(scopes)
    while left:
        scope = left.pop()
        if scope not in found:
            found.add(scope)
            left += hierarchy.get(scope, ())
    return frozenset(found)
