"""The little of HTTP that the endpoint needs, independent of the door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from ..protocol.headers import SESSION_ID, Headers

if TYPE_CHECKING:
    from django.http import HttpRequest

    from ..server.registry import MCPServer
    from .streams import Shown


SESSION_ID_VARIABLE: Final = f"HTTP_{SESSION_ID.upper().replace('-', '_')}"
"""The ``Mcp-Session-Id`` among the variables of a Django request."""


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

    @property
    def address(self) -> str:
        """The network address of whoever opened the connection; empty where it is not known."""

    def host(self) -> str:
        """Return the host that the client named; raises ``DisallowedHost``."""

    async def read(self, limit: int, caller: Callable[[], str]) -> bytes:
        """Return the body; raises :class:`BodyTooLarge` once ``limit`` bytes are exceeded.

        ``caller`` tells whose it is, where one has to wait for it.
        """

    def keeping(self, body: bytes, caller: Callable[[], str]) -> AbstractAsyncContextManager[None]:
        """Count a body that has come, and waits to be read, with those that are still coming."""

    def django(self) -> HttpRequest:
        """Return the request as Django's."""

    async def disconnected(self) -> None:
        """Return when the client has gone; to be called once the body has been read.

        A door whose server cancels the request instead waits for ever.
        """


@dataclass(frozen=True, slots=True)
class Reply:
    """A response as a door sends it."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    events: Shown | None = None
    """A stream instead of a body: chunks, each to be sent as soon as it comes."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What stands behind one URL."""

    server: MCPServer
    auth: str | Callable[..., Any] | None = None


def allowed_hosts() -> tuple[str, ...]:
    """Return ``ALLOWED_HOSTS``, with what Django allows during development."""
    allowed = settings.ALLOWED_HOSTS
    if not allowed and settings.DEBUG:
        return (".localhost", "127.0.0.1", "[::1]")
    return tuple(allowed)


@lru_cache(maxsize=64)
def is_host_among(host: str, allowed: tuple[str, ...]) -> bool:
    """Return whether ``host``, perhaps with a port, is one of those in the form of
    ``ALLOWED_HOSTS``.
    """
    return validate_host(split_domain_port(host)[0], allowed)
