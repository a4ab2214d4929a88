"""A request at the mount, and the Django request that it becomes if somebody asks for one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import lru_cache
from importlib import import_module
from io import BytesIO
from typing import Any

from django.conf import settings
from django.contrib import auth
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.utils.datastructures import CaseInsensitiveMapping
from django.utils.functional import SimpleLazyObject, cached_property

from ..protocol.errors import ErrorCode
from .http import BodyTooLarge, allowed_hosts, is_host_among
from .replies import refuse

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ScopeHeaders:
    """The headers of an ASGI scope; repeated ones are joined, as WSGI and Django join them.

    Names are lower case (ASGI, "HTTP & WebSocket", "Connection Scope").
    """

    __slots__ = ("_values",)

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        raw = list(raw)
        self._values = dict(raw)
        if len(self._values) != len(raw):
            self._values = _joined(raw)

    def get(self, name: str, /) -> str | None:
        """Return the value of the header ``name``."""
        value = self._values.get(_scope_name(name))
        return None if value is None else value.decode("latin-1")

    def as_mapping(self) -> CaseInsensitiveMapping[str]:
        """Return them as ``HttpRequest.headers`` are."""
        return CaseInsensitiveMapping(
            {name.decode("latin-1"): text.decode("latin-1") for name, text in self._values.items()}
        )


def _joined(raw: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    values: dict[bytes, bytes] = {}
    for name, text in raw:
        # A routing header that came twice must match nothing: who reads which of the two?
        joint = b"\n" if name.startswith(b"mcp-") else b","
        values[name] = values[name] + joint + text if name in values else text
    return values


# Those that the package asks for, and the parameters of tools that are mirrored.
@lru_cache(maxsize=1024)
def _scope_name(name: str) -> bytes:
    return name.lower().encode("latin-1", "replace")


class MountedRequest:
    """An ASGI request as the endpoint sees it."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope = scope
        self._receive = receive
        self._django: LightRequest | None = None
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = ScopeHeaders(scope["headers"])

    @property
    def secure(self) -> bool:
        """Whether the request came over HTTPS, by the scope or ``SECURE_PROXY_SSL_HEADER``."""
        proxy = settings.SECURE_PROXY_SSL_HEADER
        if proxy:
            name, expected = proxy
            value = self.headers.get(name.removeprefix("HTTP_").replace("_", "-"))
            if value is not None:
                return value.split(",", 1)[0].strip() == expected
        return bool(self._scope.get("scheme") == "https")

    @property
    def address(self) -> str:
        """See :class:`django_mcp.transport.http.Request`."""
        client = self._scope.get("client")
        return str(client[0]) if client else ""

    def host(self) -> str:
        """Return what ``HttpRequest.get_host`` would, without building one."""
        host = self.headers.get("X-Forwarded-Host") if settings.USE_X_FORWARDED_HOST else None
        host = host or self.headers.get("Host") or ""
        if not is_host_among(host, allowed_hosts()):
            raise DisallowedHost(f"Invalid HTTP_HOST header: {host!r}.")
        return host

    async def read(self, limit: int) -> bytes:
        """Collect the body, counting as it comes."""
        chunks: list[bytes] = []
        left = limit
        while True:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                raise refuse(400, "The body ended early", code=ErrorCode.PARSE_ERROR)
            chunk = event.get("body", b"")
            left -= len(chunk)
            if left < 0:
                raise BodyTooLarge
            chunks.append(chunk)
            if not event.get("more_body", False):
                return self._keep(b"".join(chunks))

    async def disconnected(self) -> None:
        """See :class:`django_mcp.transport.http.Request`."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def django(self) -> HttpRequest:
        """Return the request as Django's: always the same, and cheap until it is looked at."""
        if self._django is None:
            self._django = LightRequest(self._scope, self.headers)
        return self._django

    def _keep(self, body: bytes) -> bytes:
        # AUTH has looked at the Django request before there was a body.
        self.django()._body = body
        return body


class LightRequest(ASGIRequest):
    """An ``HttpRequest`` that costs nothing until an attribute is asked for.

    Most callables for ``AUTH`` look at a header at most. No middleware has run: ``session`` and
    ``user`` are what ``SessionMiddleware`` and ``AuthenticationMiddleware`` would have set.
    """

    def __init__(self, scope: Scope, headers: ScopeHeaders) -> None:
        self.scope = scope
        self._given = headers
        self._whole = False

    def __getattr__(self, name: str) -> Any:
        if self.__dict__.get("_whole", True):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._become_whole()
        return getattr(self, name)

    @cached_property
    def headers(self) -> Any:
        """What ``HttpRequest.headers`` is, without the environment that it is made from."""
        return self._given.as_mapping()

    def _become_whole(self) -> None:
        given = dict(self.__dict__)
        self._whole = True
        ASGIRequest.__init__(self, self.scope, BytesIO())
        lazy: dict[str, Any] = {
            "session": SimpleLazyObject(self._load_session),
            "user": SimpleLazyObject(lambda: auth.get_user(self)),
        }
        # What was set before stays: the caller that AUTH named, above all.
        self.__dict__.update(lazy | given, _whole=True)

    def _load_session(self) -> Any:
        store = import_module(settings.SESSION_ENGINE).SessionStore
        return store(self.COOKIES.get(settings.SESSION_COOKIE_NAME))
