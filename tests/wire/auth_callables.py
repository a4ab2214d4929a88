"""Callables for ``AUTH``, good and bad."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from django_mcp.auth import Principal, Refusal


def by_header(request: HttpRequest) -> Principal | Refusal:
    """Let in the user whom ``X-User`` names, as the client of ``X-Client``."""
    name = request.headers.get("X-User")
    if name is None:
        return Refusal("Say who you are", challenge='Bearer realm="wire"')
    if name == "nobody":
        return Refusal("Not you", status=403, challenge='Bearer error="insufficient_scope"')
    user = get_user_model().objects.get(username=name)
    return Principal(user, request.headers.get("X-Client", ""))


def broken(request: HttpRequest) -> Principal:
    """Fail, as code of a site may."""
    raise RuntimeError("a secret of the site")


def odd(request: HttpRequest) -> Any:
    """Return what no ``AUTH`` may return."""
    return "anna"


def closed(request: HttpRequest) -> Refusal | None:
    """Let nobody in, without a word about how one would get in; 403 for those who ask for it."""
    return Refusal(status=403) if request.headers.get("X-User") else None


def accented(request: HttpRequest) -> Refusal:
    """Refuse with a challenge that no header can carry as it stands."""
    return Refusal("Nobody", challenge='Bearer realm="Přístup €"')


def slowed(request: HttpRequest) -> Refusal:
    """Refuse for a while."""
    return Refusal("Later", status=429, headers={"Retry-After": "7"})


class AsynchronousObject:
    """An ``AUTH`` that is an object, and asynchronous."""

    async def __call__(self, request: HttpRequest) -> Principal:
        """Let everybody in."""
        return Principal(AnonymousUser())


def curious(request: HttpRequest) -> Principal:
    """Look at more than the headers, as most callables do, and let everybody in."""
    assert request.META["REQUEST_METHOD"] == request.method
    assert request.COOKIES is not None
    return Principal(AnonymousUser())


async def asynchronous(request: HttpRequest) -> Principal:
    """Let everybody in, asynchronously."""
    return Principal(AnonymousUser())
