"""Logins by authorization servers of others: values of ``AUTH`` for endpoints that are their
resources.

``jwt_auth`` takes signed tokens (JSON Web Tokens), ``introspection_auth`` any that a server can be
asked about; ``UserFromClaim`` finds the user that a token is about. ``tokens`` has what the two
share, ``issuers`` finds out about authorization servers, by ``fetching``. Nothing is imported that
is not used: the extra ``oauth`` has what is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .introspection import introspection_auth
    from .jwt import jwt_auth
    from .users import UserFromClaim

__all__ = ["UserFromClaim", "introspection_auth", "jwt_auth"]

_MODULES = {"UserFromClaim": "users", "introspection_auth": "introspection", "jwt_auth": "jwt"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
