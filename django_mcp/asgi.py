"""The fast door: ``application = mount(get_asgi_application())``.

The mount takes the HTTP requests whose path the URLconf gives to an :class:`MCPView` and answers
them without Django's handler, its middleware and a thread per stream; everything else it passes on.
What middleware would have done for these requests, the gate does: host, origin, HTTPS, CORS and
authentication. A system check names the middleware that is passed by.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import aclosing, suppress
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.handlers.asgi import get_script_prefix
from django.urls import Resolver404, URLResolver, get_resolver, set_script_prefix
from django.urls.resolvers import LocalePrefixPattern

from .routing import find_endpoints
from .transport.calls import LoopDoor
from .transport.endpoint import respond
from .transport.http import Endpoint, Reply
from .transport.mounted import MountedRequest

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def mount(application: Callable[..., Awaitable[None]]) -> Application:
    """Return an ASGI application that serves MCP endpoints and passes the rest on."""

    async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
        is_http = scope["type"] == "http"
        endpoint = find_endpoint(_path_info(scope)) if is_http else None
        if endpoint is None:
            await application(scope, receive, send)
            return
        set_script_prefix(get_script_prefix(scope))
        request = MountedRequest(scope, receive)
        reply = await respond(request, endpoint, LoopDoor())
        await _send(reply, request, send)

    mounted.is_mcp_mount = True  # type: ignore[attr-defined]
    return mounted


def find_endpoint(path_info: str) -> Endpoint | None:
    """Return what the root URLconf serves at a path, if it is an undecorated :class:`MCPView`.

    Whatever depends on more than the path - the language, a URLconf per request, a decorator that
    checks something - is for Django to find out, and meets the view. Asking the few patterns that
    can lead to an endpoint first keeps the cost off every other page of the site.
    """
    resolver = get_resolver(settings.ROOT_URLCONF)
    if not any(_matches(chain, path_info) for chain in _chains(resolver)):
        return None
    return _resolve(resolver, path_info)


# Both caches are keyed by the resolver itself, which clear_url_caches() replaces.
@lru_cache(maxsize=8)
def _chains(resolver: URLResolver) -> tuple[tuple[Any, ...], ...]:
    found = (chain for chain, _ in find_endpoints(resolver))
    return tuple(chain for chain in found if not any(_has_language(each) for each in chain))


@lru_cache(maxsize=256)
def _resolve(resolver: URLResolver, path_info: str) -> Endpoint | None:
    try:
        match = resolver.resolve(path_info)
    except Resolver404:
        return None
    view, endpoint = getattr(match.func, "mcp_endpoint", (None, None))
    return endpoint if view is match.func else None


def _has_language(pattern: Any) -> bool:
    return isinstance(pattern, LocalePrefixPattern)


def _matches(chain: tuple[Any, ...], path: str) -> bool:
    rest: str = path
    for pattern in chain:
        match = pattern.match(rest)
        if not match:
            return False
        rest = match[0]
    return True


def _path_info(scope: Scope) -> str:
    path: str = scope["path"]
    prefix = get_script_prefix(scope).rstrip("/")
    if prefix and (path == prefix or path.startswith(prefix + "/")):
        return path[len(prefix) :] or "/"
    return path


async def _send(reply: Reply, request: MountedRequest, send: Send) -> None:
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in reply.headers.items()
    ]
    if reply.status != 204 and reply.events is None:
        headers.append((b"content-length", b"%d" % len(reply.body)))
    start = {"type": "http.response.start", "status": reply.status, "headers": headers}
    if reply.events is None:
        await send(start)
    else:
        # Also where a server cancels the whole before there was an event: Daphne does.
        async with aclosing(reply.events) as events:
            await send(start)
            await _stream(events, request, send)
    await send({"type": "http.response.body", "body": reply.body})


async def _stream(events: AsyncGenerator[bytes], request: MountedRequest, send: Send) -> None:
    """Send events until they end or the client has gone, whichever is first."""
    sending = asyncio.ensure_future(_send_all(events, send))
    gone = asyncio.ensure_future(request.disconnected())
    try:
        await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending


async def _send_all(events: AsyncGenerator[bytes], send: Send) -> None:
    async for chunk in events:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
