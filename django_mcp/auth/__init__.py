"""Who may use an endpoint: the callables for ``DJANGO_MCP["AUTH"]``.

``AUTH`` takes the ``HttpRequest`` and returns a :class:`Principal` (or simply a user), or a
:class:`Refusal`. It is required: an endpoint without it refuses everybody. ``logins`` finds out
which of those who came in by a session of Django's have logged out since.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from django.http import HttpRequest

from .any_of import any_of
from .logins import ended_logins, login_of
from .principal import Guard, Principal
from .refusal import Refusal
from .resource import ProtectedResource

__all__ = [
    "Guard",
    "Principal",
    "ProtectedResource",
    "Refusal",
    "any_of",
    "django_user",
    "nonblocking",
    "public",
    "without_oauth",
]

F = TypeVar("F", bound=Callable[..., Any])


def nonblocking(auth: F) -> F:
    """Mark a callable for ``AUTH`` that asks neither a database nor anybody else.

    The mount calls it on the event loop. Any other synchronous callable gets a thread, which costs
    more than most of what such a callable does: comparing a key, checking a signature.
    """
    auth.nonblocking = True  # type: ignore[attr-defined]
    return auth


def without_oauth(auth: F) -> F:
    """Mark a callable for ``AUTH`` that takes no tokens of ``AUTHORIZATION_SERVERS``.

    Where one decides, clients are not told to get such tokens.
    """
    auth.takes_oauth_tokens = False  # type: ignore[attr-defined]
    return auth


def _without_tokens(auth: F) -> F:
    """Mark a callable that lets people in whatever token they show; see :func:`any_of`."""
    auth.reads_authorization = False  # type: ignore[attr-defined]
    return without_oauth(auth)


@nonblocking
@_without_tokens
def public(request: HttpRequest) -> Principal:
    """Let everybody in. Choosing it says that the endpoint is open on purpose."""
    return Principal(_anonymous_user()())


@cache
def _anonymous_user() -> type:
    # Models must not be imported before the apps are loaded, and servers may be made before.
    from django.contrib.auth.models import AnonymousUser  # noqa: PLC0415

    return AnonymousUser


@_without_tokens
def django_user(request: HttpRequest) -> Principal | Refusal:
    """Let in whoever Django's own authentication has recognised: session cookies, for example.

    What is open of somebody ends with the session that he came in by.
    """
    user = request.user
    if user.is_authenticated and user.is_active:
        login = login_of(request)
        recheck = None if login is None else ended_logins
        return Principal(user, scopes=None, credential=login, recheck=recheck)
    return Refusal(
        "Log in to the site first: the cookie of its session opens this endpoint.",
        challenge='Session realm="mcp"',
    )
