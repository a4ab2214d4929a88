"""Who asks: bearer tokens, and logins that take several requests, such as those of OAuth.

A login is an ``httpx.Auth``: it sees each response, and may send requests of its own before the
server's is sent again. It is somebody else's code, and what it reads comes from servers that nobody
has vetted. :class:`BoundedAuth` holds both within the client's rules.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from importlib import import_module
from typing import Any, Final, Protocol, cast

import httpx

from . import user_functions
from .bounds import Limits, not_counted
from .errors import MessageTooLarge
from .login_storage import LoginStorage

log = logging.getLogger("django_mcp.client")

TokenSource = Callable[[], str | Awaitable[str]]
"""Gives a bearer token; plain or a coroutine function."""


class AuthFlow(Protocol):
    """What ``httpx.Auth`` and ``httpx2.Auth`` have in common."""

    def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
        """Yield what is to be sent, and receive the response to it."""


Auth = str | TokenSource | httpx.Auth | AuthFlow
"""A bearer token, a function that gives one, or an ``Auth`` of httpx's or httpx2's."""

REFUSED: Final = (401, 403, 407)
"""Statuses after which a request has not run, so that a login may have it sent again."""

# RFC 6750, section 2.1. Anything else could end the header and begin another one.
_BEARER_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
# RFC 6750, section 3, and for the names that a scope may have RFC 6749, section 3.3.
_ASKED_SCOPE: Final = re.compile(
    r'\bscope\s*=\s*"([\x20\x21\x23-\x5b\x5d-\x7e]{1,1000})"', re.IGNORECASE
)


def asked_scope(challenge: str) -> str | None:
    """Return the scopes that the value of ``WWW-Authenticate`` asks for, if it names any."""
    found = _ASKED_SCOPE.search(challenge)
    return found[1] if found else None


class BearerAuth(httpx.Auth):
    """Sends a bearer token; where a function gives it, asks that again once after a 401.

    Raises ``ValueError`` for a token with characters that none may have.
    """

    def __init__(self, source: str | TokenSource) -> None:
        self._source = source
        self._token = _checked_token(source) if isinstance(source, str) else ""

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Send the token that was good the last time, and a fresh one after a 401."""
        is_fresh = not self._token
        if is_fresh:
            await self._refresh()
        request.headers["Authorization"] = f"Bearer {self._token}"
        response = yield request
        if response.status_code == 401 and not is_fresh and not isinstance(self._source, str):
            await self._refresh()
            request.headers["Authorization"] = f"Bearer {self._token}"
            yield request

    async def _refresh(self) -> None:
        assert not isinstance(self._source, str)
        self._token = _checked_token(await user_functions.run(self._source))


def _checked_token(token: object) -> str:
    # The message does not show the token: it would end in a log.
    if not isinstance(token, str) or not _BEARER_TOKEN.fullmatch(token.strip()):
        raise ValueError("This is not a bearer token: it has characters that no token may have.")
    return token.strip()


def httpx_auth(auth: Auth | None, url: httpx.URL) -> httpx.Auth | None:
    """Return what shows httpx who asks at ``url``; without ``auth``, what the URL itself says.

    Raises ``ValueError`` for a token that is none, and for a login that belongs to another server.
    """
    if auth is None:
        return httpx.BasicAuth(url.username, url.password) if url.username else None
    if isinstance(auth, str):
        return BearerAuth(auth)
    context = getattr(auth, "context", None)
    _check_server(context, url)
    storage = getattr(context, "storage", None)
    if isinstance(storage, LoginStorage):
        storage.attach(context)
    if isinstance(auth, httpx.Auth):
        return auth
    if hasattr(auth, "async_auth_flow"):
        return Httpx2Auth(cast("AuthFlow", auth))
    return BearerAuth(auth)


def _check_server(context: object, url: httpx.URL) -> None:
    """Refuse the OAuth provider of another server, whose token this one would be shown.

    2026-07-28, basic/authorization, "Token Handling": a client sends a server no tokens but those
    that were issued for it. The official SDK's providers keep the URL that they are for.
    """
    named = getattr(context, "server_url", None)
    if not isinstance(named, str):
        return
    meant = httpx.URL(named)
    beginning = meant.path.rstrip("/") + "/"
    if _origin(meant) != _origin(url) or not f"{url.path.rstrip('/')}/".startswith(beginning):
        raise ValueError(
            f"This login is for the server {without_secrets(meant)}, and the client's URL is"
            f" {without_secrets(url)}. Its token would be shown to the wrong server: give each"
            " server a provider, and a storage, of its own."
        )


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def without_secrets(url: httpx.URL) -> httpx.URL:
    """Return a URL as it may be shown."""
    return url.copy_with(username=None, password=None, query=None, fragment=None)


class BoundedAuth(httpx.Auth):
    """Runs a login within the limits of a client.

    The login's own requests have the time-outs of the client's, and what comes back to them is
    bounded. Of the answer of a server that has taken the request up it gets status and headers
    alone, and nothing that it sends thereafter is sent: a stream is not to be read by two, and what
    may have run is not to run again. The time that it takes to think, or that a person takes to
    agree, does not count as the server's.
    """

    def __init__(self, auth: httpx.Auth, limits: Limits) -> None:
        self._auth = auth
        self._limits = limits

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Pass on what the login sends, and what is answered."""
        async with aclosing(self._auth.async_auth_flow(request)) as flow:
            method, place = request.method, place_of(request.url)
            with not_counted():
                outgoing = await anext(flow)
            while True:
                is_call = outgoing.method == method and place_of(outgoing.url) == place
                self._prepare(outgoing, request)
                response = yield outgoing
                is_final = is_call and response.status_code not in REFUSED
                shown = _headers_of(response) if is_final else self._bounded(response)
                try:
                    with not_counted():
                        outgoing = await flow.asend(shown)
                except StopAsyncIteration:
                    return
                if is_final:
                    return

    def _prepare(self, outgoing: httpx.Request, request: httpx.Request) -> None:
        outgoing.extensions.setdefault("timeout", request.extensions.get("timeout", {}))
        for name in ("Accept-Encoding", "User-Agent"):
            if name in request.headers:
                outgoing.headers.setdefault(name, request.headers[name])

    def _bounded(self, response: httpx.Response) -> httpx.Response:
        stream, most = cast("httpx.AsyncByteStream", response.stream), self._limits.message_bytes
        if is_compressed(response):
            log.warning("The compressed answer of %s is not read", response.request.url.host)
            most = 0
        response.stream = _BoundedStream(stream, most)
        return response


def place_of(url: httpx.URL) -> httpx.URL:
    """Return a URL without its query: a login may add a key there."""
    return url.copy_with(query=None, fragment=None)


def _headers_of(response: httpx.Response) -> httpx.Response:
    return httpx.Response(response.status_code, headers=response.headers, request=response.request)


def is_compressed(response: httpx.Response) -> bool:
    """Return whether a body could unfold to any size; none is asked for that could."""
    return response.headers.get("content-encoding") not in (None, "identity")


class _BoundedStream(httpx.AsyncByteStream):
    """A body of so many bytes at most; with none allowed it is not read at all."""

    def __init__(self, stream: httpx.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        if not self._most:
            return
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._most:
                raise MessageTooLarge(f"The answer has more than {self._most} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class Httpx2Auth(httpx.Auth):
    """Runs an ``httpx2.Auth`` in httpx: the official SDK's OAuth providers are such ones.

    httpx2 is httpx under another name, with classes of its own. It is imported only here, where
    whoever made the login has imported it before.
    """

    def __init__(self, auth: AuthFlow) -> None:
        self._auth = auth
        self._httpx2: Any = import_module("httpx2")

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Translate what the login sends, and what is answered."""
        async with aclosing(self._auth.async_auth_flow(await self._theirs(request))) as flow:
            theirs = await anext(flow)
            while True:
                response = yield httpx.Request(
                    theirs.method,
                    str(theirs.url),
                    headers=theirs.headers.raw,
                    content=await theirs.aread(),
                )
                try:
                    theirs = await flow.asend(await self._answer(theirs, response))
                except StopAsyncIteration:
                    return

    async def _theirs(self, request: httpx.Request) -> Any:
        return self._httpx2.Request(
            request.method,
            str(request.url),
            headers=request.headers.raw,
            content=await request.aread(),
        )

    async def _answer(self, theirs: Any, response: httpx.Response) -> Any:
        answer = self._httpx2.Response(
            response.status_code,
            headers=response.headers.raw,
            content=await response.aread(),
            request=theirs,
        )
        if response.next_request is not None:
            # Whether a redirect may be followed is for the login to say: the client follows none.
            answer.next_request = await self._theirs(response.next_request)
        return answer
