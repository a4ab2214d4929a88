"""Logins by authorization servers: values of ``AUTH`` for endpoints that are their resources.

``jwt_auth`` takes signed tokens (JSON Web Tokens) of servers of others, ``introspection_auth`` any
that a server can be asked about; ``UserFromClaim`` finds the user that a token is about. ``tokens``
has what the two share, ``issuers`` finds out about authorization servers, by ``fetching``: the
extra ``oauth`` has what they need.

``dot_auth`` takes the tokens of the site's own django-oauth-toolkit. With this app in
``INSTALLED_APPS`` beside ``oauth2_provider``, ``dot`` makes that the authorization server of the
site's endpoints, at the URLs in ``urls``: the extra ``oauth-server``. ``allauth`` does the same for
the provider of django-allauth, with its own URLs: the extra ``oauth-allauth``. ``client_documents``
is for sites that are authorization servers, and ``resources`` finds the endpoints that clients ask
them about.

Nothing is imported that is not used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .allauth.adapter import OIDCAdapterMixin
    from .allauth.auth import allauth_auth
    from .dot.auth import dot_auth
    from .introspection import introspection_auth
    from .jwt import jwt_auth
    from .users import UserFromClaim

__all__ = [
    "OIDCAdapterMixin",
    "UserFromClaim",
    "allauth_auth",
    "dot_auth",
    "introspection_auth",
    "jwt_auth",
]

_MODULES = {
    "OIDCAdapterMixin": "allauth.adapter",
    "UserFromClaim": "users",
    "allauth_auth": "allauth.auth",
    "dot_auth": "dot.auth",
    "introspection_auth": "introspection",
    "jwt_auth": "jwt",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
