"""A request at the mount, and the Django request that it becomes if somebody asks for one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from importlib import import_module
from io import BytesIO
from typing import Any, Final

from django.conf import settings
from django.contrib import auth
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.urls import ResolverMatch
from django.utils.datastructures import CaseInsensitiveMapping
from django.utils.functional import SimpleLazyObject, cached_property

from ..conf import get_site_settings
from ..protocol.headers import SESSION_ID
from ..server.exchange import WantedTools
from .event_stream import ON_LOOP
from .replies import Refused
from .report_filter import report_filter
from .request import (
    SESSION_ID_VARIABLE,
    WANTED_TOOLS,
    BodyTooLarge,
    allowed_hosts,
    is_host_among,
)
from .request_bodies import Begun, request_bodies

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ScopeHeaders:
    """The headers of an ASGI scope; repeated ones are joined, as WSGI and Django join them.

    Names are lower case (ASGI, "HTTP & WebSocket", "Connection Scope"). Those with an underscore
    are left out, as servers and Django do: for code that reads ``META``, it would be a hyphen.
    """

    __slots__ = ("raw", "values")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self.raw = list(raw)
        values = dict(self.raw)
        if b"_" in b"".join(values):
            self.raw = [each for each in self.raw if b"_" not in each[0]]
            values = dict(self.raw)
        if len(values) != len(self.raw):
            values = _joined(self.raw)
        self.values = {name: value.decode("latin-1") for name, value in values.items()}

    def get(self, name: str, /) -> str | None:
        """Return the value of the header ``name``."""
        return self.values.get(_scope_name(name))

    def as_mapping(self) -> CaseInsensitiveMapping[str]:
        """Return them as ``HttpRequest.headers`` are, without what is secret in them."""
        return CaseInsensitiveMapping(
            {
                name.decode("latin-1"): text
                for name, text in self.values.items()
                if name != _SESSION_ID
            }
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


_SESSION_ID: Final = _scope_name(SESSION_ID)


class MountRequest:
    """An ASGI request as the endpoint sees it."""

    pace = ON_LOOP

    def __init__(self, scope: Scope, receive: Receive, match: ResolverMatch) -> None:
        self._scope = scope
        self._receive = receive
        self._match = match
        self._django: LightRequest | None = None
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        client = scope.get("client")
        self.address = str(client[0]) if client else ""
        self.headers = headers = ScopeHeaders(scope["headers"])
        sent = headers.values.get
        self.accept = sent(b"accept")
        self.content_length = sent(b"content-length")
        self.content_type = sent(b"content-type")
        self.origin = sent(b"origin")
        self.session_id = sent(b"mcp-session-id")
        self.protocol_version = sent(b"mcp-protocol-version")
        self.mcp_method = sent(b"mcp-method")
        self.mcp_name = sent(b"mcp-name")
        self.wanted_tools: WantedTools = (
            match.kwargs.get(WANTED_TOOLS, ""),
            sent(b"x-mcp-toolsets"),
            sent(b"x-mcp-tools"),
            sent(b"x-mcp-readonly"),
        )

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

    def host(self) -> str:
        """Return what ``HttpRequest.get_host`` would, without building one."""
        sent = self.headers.values.get
        is_forwarded = get_site_settings().use_x_forwarded_host
        host = sent(b"x-forwarded-host") if is_forwarded else None
        host = host or sent(b"host") or ""
        if not is_host_among(host, allowed_hosts()):
            raise DisallowedHost(f"Invalid HTTP_HOST header: {host!r}.")
        return host

    async def read(self, limit: int, caller: str) -> bytes:
        """Collect the body, counting as it comes."""
        first = Begun(self._receive())
        if first.is_done and _is_whole(first.value):
            # Most bodies are there with their request: nothing has to be watched.
            body: bytes = first.value.get("body", b"")
            if len(body) > limit:
                raise BodyTooLarge
        else:
            body = await self._rest(first, limit, caller)
        # AUTH has looked at the Django request before there was a body.
        (self._django or self.django())._body = body
        return body

    async def _rest(self, first: Begun[Any], limit: int, caller: str) -> bytes:
        try:
            return await request_bodies().rest(first, self._receive, limit, caller)
        except Refused as refused:
            if self._scope.get("http_version", "").startswith("1"):
                # RFC 9110, section 15.5.9: nothing else can come on this connection.
                refused.headers["Connection"] = "close"
            raise

    def keeping(self, body: bytes, caller: str) -> AbstractAsyncContextManager[None]:
        """Count a body that has come, with those that are still coming."""
        return request_bodies().keeping(len(body), caller)

    async def disconnected(self) -> None:
        """Return when the server says that the client has gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def django(self) -> HttpRequest:
        """Return the request as Django's: always the same, and cheap until it is looked at."""
        if self._django is None:
            self._django = LightRequest(self._scope, self.headers, self._match)
        return self._django


def _is_whole(event: MutableMapping[str, Any]) -> bool:
    return event["type"] == "http.request" and not event.get("more_body", False)


class LightRequest(ASGIRequest):
    """An ``HttpRequest`` that costs nothing until an attribute is asked for.

    Most callables for ``AUTH`` look at a header at most. No middleware has run: ``session`` and
    ``user`` are what ``SessionMiddleware`` and ``AuthenticationMiddleware`` would have set.
    """

    exception_reporter_filter: Any = report_filter

    def __init__(self, scope: Scope, headers: ScopeHeaders, match: ResolverMatch) -> None:
        self.scope = scope
        self.resolver_match = match
        self._given = headers
        self._whole = False

    def __getattr__(self, name: str) -> Any:
        if self.__dict__.get("_whole", True):
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}: no middleware has run "
                "at the mount. Make it in the function that needs it, or have the view serve this."
            )
        self._become_whole()
        return getattr(self, name)

    @cached_property
    def headers(self) -> Any:
        """What ``HttpRequest.headers`` is, without the environment that it is made from."""
        return self._given.as_mapping()

    def _become_whole(self) -> None:
        given = dict(self.__dict__)
        self._whole = True
        # Django leaves names with an underscore out itself, but not from its first 5.2 on.
        ASGIRequest.__init__(self, {**self.scope, "headers": self._given.raw}, BytesIO())
        # Reports of errors would show it.
        self._mcp_session_id = self.META.pop(SESSION_ID_VARIABLE, None)
        lazy: dict[str, Any] = {
            "session": SimpleLazyObject(self._load_session),
            "user": SimpleLazyObject(lambda: auth.get_user(self)),
        }
        # What was set before stays: the caller that AUTH named, above all.
        self.__dict__.update(lazy | given, _whole=True)

    def _load_session(self) -> Any:
        store = import_module(settings.SESSION_ENGINE).SessionStore
        return store(self.COOKIES.get(settings.SESSION_COOKIE_NAME))
