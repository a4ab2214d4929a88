"""An HTTP request to an endpoint, whichever way it came in."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from ..protocol.headers import SESSION_ID, acceptable
from ..server.exchange import HTTPRequest
from ..store.database import alias
from .event_stream import Pace

if TYPE_CHECKING:
    from ..auth import Principal, ProtectedResource
    from ..conf import Settings
    from ..server.function_call import Runner
    from ..server.registry import MCPServer


SESSION_ID_VARIABLE: Final = f"HTTP_{SESSION_ID.upper().replace('-', '_')}"
"""The ``Mcp-Session-Id`` among the variables of a Django request."""


WANTED_TOOLS: Final = "mcp_tools"
"""The argument of a view that has what comes after the endpoint's path."""


class BodyTooLarge(Exception):
    """The body has more bytes than may be read."""


class IncomingRequest(HTTPRequest, Protocol):
    """A request as the view or the mount hands it in.

    What nearly every request is asked for is an attribute; ``None`` where the header was not sent.
    """

    method: str
    """The HTTP method, upper case."""
    path: str
    """The path of the URL, with the script prefix."""
    address: str
    """The network address of whoever opened the connection; empty where it is not known."""
    accept: str | None
    content_length: str | None
    content_type: str | None
    origin: str | None
    session_id: str | None
    """The secret ``Mcp-Session-Id``."""
    protocol_version: str | None
    mcp_method: str | None
    mcp_name: str | None
    pace: Pace
    """How streams are sent that answer it."""

    @property
    def secure(self) -> bool:
        """Whether the request came over HTTPS, as Django's settings define it."""

    def host(self) -> str:
        """Return the host that the client named; raises ``DisallowedHost``."""

    async def read(self, limit: int, caller: str) -> bytes:
        """Return the body, of whom limits take for ``caller``.

        Raises :class:`BodyTooLarge` once ``limit`` bytes are exceeded.
        """

    def keeping(self, body: bytes, caller: str) -> AbstractAsyncContextManager[None]:
        """Count a body that has come, and waits to be read, with those that are still coming."""

    async def disconnected(self) -> None:
        """Return when the client has gone; to be called once the body has been read.

        Where the server cancels the request instead, this waits for ever.
        """


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What stands behind one URL."""

    server: MCPServer
    auth: str | Callable[..., Any] | None = None


@dataclass(slots=True, eq=False)
class Caller:
    """Who sends a request to an endpoint, once that is known."""

    request: IncomingRequest
    server: MCPServer
    server_name: str
    principal: Principal
    limit_key: str
    """Whom limits take the caller for: never empty."""
    is_public: bool
    """Whether everybody may use the endpoint, so that nothing depends on who asks."""
    settings: Settings
    """As they were when the request came in."""
    runner: Runner
    """Runs what may block, and the site's functions."""
    resource: ProtectedResource | None = None
    """What tokens for the endpoint are issued for, where others issue some."""
    checks_scopes: bool = False
    """Whether it depends on scopes, or on reading alone, what somebody here may do."""

    @property
    def takes_events(self) -> bool:
        """Whether the client takes a stream for an answer."""
        return acceptable(self.request.accept).events

    def can_stream(self) -> bool:
        """Return whether the answer can be a stream; if so, there is room for it from now on."""
        return self.takes_events and self.runner.reserve_stream()

    def can_be_asked(self) -> bool:
        """Return whether the client can answer something while its request is answered."""
        return self.runner.can_request or self.can_stream()

    @property
    def is_in_transaction(self) -> bool:
        """Whether nobody else sees the protocol's rows, as within the transaction of a test."""
        transactions = self.runner.transactions
        return bool(transactions) and alias() in transactions


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
    domain = split_domain_port(host)[0]
    return bool(domain) and validate_host(domain, allowed)
