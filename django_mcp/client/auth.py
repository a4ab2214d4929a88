"""How the client shows who it is: a token, a function that gives one, or what httpx offers."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable

import httpx

from . import usercode

TokenSource = Callable[[], str | Awaitable[str]]
"""Gives a bearer token; plain or a coroutine function."""
Auth = str | TokenSource | httpx.Auth
"""A bearer token, a function that gives one, or any authentication of httpx's."""

# RFC 6750, section 2.1. Anything else could end the header and begin another one.
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")


class BearerAuth(httpx.Auth):
    """Sends a bearer token; where a function gives it, asks that again once after a 401."""

    def __init__(self, source: str | TokenSource) -> None:
        self._source = source
        self._token = _checked(source) if isinstance(source, str) else ""

    async def async_auth_flow(
        self, request: httpx.Request
    ) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Show the token that was good the last time, and a fresh one if it is so no longer."""
        fresh = not self._token
        if fresh:
            await self._ask()
        request.headers["Authorization"] = f"Bearer {self._token}"
        response = yield request
        if response.status_code == 401 and not fresh and not isinstance(self._source, str):
            await self._ask()
            request.headers["Authorization"] = f"Bearer {self._token}"
            yield request

    async def _ask(self) -> None:
        self._token = _checked(await usercode.run(self._source))  # type: ignore[arg-type]


def _checked(token: object) -> str:
    # The message does not show the token: it would end in a log.
    if not isinstance(token, str) or not _TOKEN.fullmatch(token.strip()):
        raise ValueError("This is not a bearer token: it has characters that no token may have.")
    return token.strip()


def httpx_auth(auth: Auth | None, url: str) -> httpx.Auth | None:
    """Return what httpx takes; without ``auth``, what the URL has before its host."""
    if isinstance(auth, httpx.Auth):
        return auth
    if auth is not None:
        return BearerAuth(auth)
    parsed = httpx.URL(url)
    return httpx.BasicAuth(parsed.username, parsed.password) if parsed.username else None
