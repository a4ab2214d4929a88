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


OF_OPENID: Final = frozenset({"openid", "profile", "email", "address", "phone"})
"""OpenID Connect Core, sections 3.1.2.1 and 5.4: of the login itself, whatever a token is for."""
AS_IT_IS: Final = "{scope}"
"""The format of scopes that are asked for by the names that tokens have."""


def check_scope_format(text: str) -> str:
    """Return how scopes are asked for; raises ``ValueError`` for what does not say it."""
    tried = as_asked(["a"], text, "https://a.example")[0]
    if "{scope}" not in text or set(tried) & set("{}") or not _SCOPE.fullmatch(tried):
        raise ValueError(
            f"{text!r} does not say how a scope is asked for. Write what stands around its name, "
            'as in "{resource}/{scope}"'
        )
    return text


def as_asked(scopes: Iterable[str], scope_format: str, resource: str) -> list[str]:
    """Return scopes as a client is to ask for them, where tokens for ``resource`` name them alone.

    >>> as_asked(["read", "openid"], "{resource}/{scope}", "https://shop.example.com/mcp")
    ['https://shop.example.com/mcp/read', 'openid']
    """
    around = scope_format.replace("{resource}", resource)
    return [each if each in OF_OPENID else around.replace("{scope}", each) for each in scopes]


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
