"""Endpoints without Django's handler: ``application = mount(get_asgi_application())``.

The mount takes the HTTP requests whose path the URLconf gives to an :class:`MCPView` and answers
them without Django's handler, its middleware and a thread per stream; everything else it passes on.
What middleware would have done for these requests, the endpoint does: host, origin, HTTPS, CORS and
authentication. A system check names the middleware that is passed by.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from django.conf import settings
from django.core.handlers.asgi import get_script_prefix
from django.urls import Resolver404, ResolverMatch, URLResolver, get_resolver, set_script_prefix
from django.urls.resolvers import LocalePrefixPattern
from django.utils import translation

from .conf import get_settings
from .http.endpoint import respond
from .http.event_stream import EventStream
from .http.languages import language_of
from .http.lifespan import Lifespan
from .http.mount_request import MountRequest
from .http.partition_of_request import NOT_HERE
from .http.replies import Reply
from .http.request import Endpoint
from .routing import Chain, find_endpoints, rest_of
from .running.shutdown import is_closing
from .running.user_code import LoopRunner
from .server.file_links import FILE

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_CLOSE: Final = (b"connection", b"close")
Found = tuple[Endpoint, ResolverMatch]


def mount(application: Callable[..., Awaitable[None]]) -> Application:
    """Return an ASGI application that serves MCP endpoints and passes the rest on."""

    async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
        is_http, prefix, found = scope["type"] == "http", "", None
        if is_http:
            prefix = get_script_prefix(scope).rstrip("/")
            found = find_endpoint(_path_info(scope["path"], prefix) if prefix else scope["path"])
        if found is None:
            if scope["type"] == "lifespan":
                await Lifespan(receive, send).run(application, scope)
            else:
                await application(scope, receive, _closing(send, scope) if is_http else send)
            return
        if prefix:
            set_script_prefix(prefix + "/")  # as Django keeps it
        # What lasts is to hold neither the request nor the rest of the reply.
        endpoint, match = found
        request = MountRequest(scope, receive, match)
        answering = respond(request, endpoint, LoopRunner())
        if (language := language_of(request)) is None:
            reply = await answering
        else:
            with translation.override(language):
                reply = await answering
        del request, answering
        if reply is NOT_HERE:
            # Nothing of its body has been read. Django may have something else at this host.
            await application(scope, receive, _closing(send, scope))
            return
        events = await _send(reply, scope, send)
        if events is not None:
            await _Sender(events, send).show(receive)

    mounted.is_mcp_mount = True  # type: ignore[attr-defined]
    return mounted


def find_endpoint(path_info: str) -> Found | None:
    """Return what the root URLconf serves at a path, if it is an undecorated :class:`MCPView`.

    Whatever depends on more than the path - the language, a URLconf per request, a decorator that
    checks something - is for Django to find out, and meets the view. Asking the few patterns that
    can lead to an endpoint first keeps the cost off every other page of the site.
    """
    return _find(get_resolver(settings.ROOT_URLCONF), path_info)


# The caches are keyed by the resolver itself, which clear_url_caches() replaces.
@lru_cache(maxsize=256)
def _find(resolver: URLResolver, path_info: str) -> Found | None:
    if all(rest_of(path_info, chain) is None for chain in _chains(resolver)):
        return None
    try:
        match = resolver.resolve(path_info)
    except Resolver404:
        return None
    if FILE in match.kwargs:
        return None  # Django streams files
    view, endpoint = getattr(match.func, "mcp_endpoint", (None, None))
    return (endpoint, match) if endpoint is not None and view is match.func else None


@lru_cache(maxsize=8)
def _chains(resolver: URLResolver) -> tuple[Chain, ...]:
    found = (chain for chain, _ in find_endpoints(resolver))
    return tuple(chain for chain in found if not any(_has_language(each) for each in chain))


def _has_language(pattern: Any) -> bool:
    return isinstance(pattern, LocalePrefixPattern)


def _path_info(path: str, prefix: str) -> str:
    if path == prefix or path.startswith(prefix + "/"):
        return path[len(prefix) :] or "/"
    return path


def _can_be_last(scope: Scope) -> bool:
    """Return whether this can be the last response on its connection; HTTP/2 has no such header."""
    return bool(scope["http_version"].startswith("1"))


def _closing(send: Send, scope: Scope) -> Send:
    """Return what sends a response of somebody else's, if need be as the last on its connection."""
    if not (is_closing() and _can_be_last(scope)):
        return send

    async def send_last(event: MutableMapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            event["headers"] = [*event.get("headers", ()), _CLOSE]
        await send(event)

    return send_last


async def _send(reply: Reply, scope: Scope, send: Send) -> EventStream | None:
    """Send a reply; or, of one that is a stream, the head: then return its events."""
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in reply.headers.items()
    ]
    if reply.status != 204 and reply.events is None:
        headers.append((b"content-length", b"%d" % len(reply.body)))
    if is_closing() and _can_be_last(scope):
        headers.append(_CLOSE)
    try:
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        if reply.events is None:
            await send({"type": "http.response.body", "body": reply.body})
    except BaseException:
        # A server may cancel the whole before there was an event: Daphne does.
        if reply.events is not None:
            reply.events.close()
        raise
    return reply.events


class _Sender:
    """Sends events, by a task that is there only while there is something to send.

    So an idle stream is nothing but the server's own call of the application, which waits until
    the client has gone.
    """

    __slots__ = ("_events", "_send", "_sending", "_waiting")

    def __init__(self, events: EventStream, send: Send) -> None:
        self._events = events
        self._send = send
        self._sending: asyncio.Task[None] | None = None
        self._waiting: asyncio.Timeout | None = None

    async def show(self, receive: Receive) -> None:
        """Send events until they end, the client has gone or reads no more.

        A server closes the connection of a response that is not complete.
        """
        try:
            await self._until_gone(receive)
        finally:
            try:
                complete = await self._stop()
            finally:
                self._events.close()
        if complete:
            # Bounded, for it waits until the client has read what was sent before.
            with suppress(TimeoutError):
                async with asyncio.timeout(get_settings().write_timeout_seconds):
                    await self._send({"type": "http.response.body", "body": b""})

    async def _until_gone(self, receive: Receive) -> None:
        try:
            async with asyncio.timeout(None) as self._waiting:
                self._events.on_ready(self._wake)
                self._wake()
                while (await receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            pass  # nothing more is sent: see _send_all
        finally:
            self._waiting = None

    def _wake(self) -> None:
        if self._sending is None:
            self._sending = asyncio.ensure_future(self._send_all())

    async def _send_all(self) -> None:
        """Send what there is now; after the last event, end the waiting for the client."""
        is_over = True
        try:
            while (chunk := self._events.take()) is not None:
                await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
            is_over = self._events.is_over
        finally:
            if not is_over:
                self._sending = None
            elif self._waiting is not None:
                self._waiting.reschedule(0)

    async def _stop(self) -> bool:
        """Stop sending; return whether everything has been sent."""
        sending = self._sending
        if sending is None:
            return False
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        return not sending.cancelled()
