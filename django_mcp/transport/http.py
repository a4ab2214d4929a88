"""The little of HTTP that the endpoint needs, independent of the door."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings

from ..protocol.headers import Headers

if TYPE_CHECKING:
    from django.http import HttpRequest

    from ..server.registry import MCPServer


class BodyTooLarge(Exception):
    """The body has more bytes than may be read."""


class Request(Protocol):
    """A request as a door hands it in."""

    @property
    def method(self) -> str:
        """The HTTP method, upper case."""

    @property
    def path(self) -> str:
        """The path of the URL, with the script prefix."""

    @property
    def headers(self) -> Headers:
        """The request's headers."""

    @property
    def secure(self) -> bool:
        """Whether the request came over HTTPS, as Django's settings define it."""

    def host(self) -> str:
        """Return the host that the client named; raises ``DisallowedHost``."""

    async def read(self, limit: int) -> bytes:
        """Return the body; raises :class:`BodyTooLarge` once ``limit`` bytes are exceeded."""

    def django(self) -> HttpRequest:
        """Return the request as Django's."""

    async def disconnected(self) -> None:
        """Return when the client has gone; to be called once the body has been read.

        A door whose server cancels the request instead waits for ever.
        """


class Shown(AsyncGenerator[bytes]):
    """Events of a reply that give word once they are no longer shown, for whatever reason.

    A generator that has not started yet runs no ``finally`` when its client goes. The mount calls
    ``aclose``; Django's streaming response, which wraps what it is given, calls ``close``. One that
    is lost between the view and Django, since the client went right then, calls neither.
    """

    def __init__(self, events: AsyncGenerator[bytes], closed: Callable[[], object]) -> None:
        self._events = events
        self.close = weakref.finalize(self, closed)
        """Give word, once. From any thread; and without it when nothing refers to this any more."""
        self.close.atexit = False

    async def asend(self, value: None) -> bytes:
        """Return the next event."""
        return await self._events.asend(value)

    async def athrow(self, *error: Any) -> bytes:
        """See :class:`collections.abc.AsyncGenerator`."""
        return await self._events.athrow(*error)

    async def aclose(self) -> None:
        """Show no more."""
        try:
            await self._events.aclose()
        finally:
            self.close()


@dataclass(frozen=True, slots=True)
class Reply:
    """A response as a door sends it."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    events: AsyncGenerator[bytes] | None = None
    """A stream instead of a body: chunks, each to be sent as soon as it comes."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What stands behind one URL."""

    server: MCPServer
    auth: str | Callable[..., Any] | None = None


def allowed_hosts() -> list[str]:
    """Return ``ALLOWED_HOSTS``, with what Django allows during development."""
    allowed = list(settings.ALLOWED_HOSTS)
    return [".localhost", "127.0.0.1", "[::1]"] if settings.DEBUG and not allowed else allowed
