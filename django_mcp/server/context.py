"""What user code receives: the caller, the client and the request, whichever the era."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .ports import SessionInfo

if TYPE_CHECKING:
    from django.http import HttpRequest

    from .exchange import Exchange


class Context:
    """The call at hand. Annotate a parameter with it, under any name, and it is passed in."""

    __slots__ = ("_exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __repr__(self) -> str:
        exchange = self._exchange
        return f"<Context {exchange.request.method} {exchange.revision.name} {self.user}>"

    @property
    def user(self) -> Any:
        """The Django user on whose behalf the client acts; ``AnonymousUser`` where none."""
        return self._exchange.principal.user

    @property
    def client_id(self) -> str:
        """The authenticated client that acts for the user; empty where ``AUTH`` names none."""
        return self._exchange.principal.client_id

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes that the credentials carry."""
        return self._exchange.principal.scopes

    @property
    def request(self) -> HttpRequest:
        """The HTTP request, with ``user`` set to the caller."""
        request: HttpRequest = self._exchange.http_request()
        return request

    @property
    def session(self) -> SessionInfo | None:
        """The MCP session, or ``None`` in the modern era, which has none."""
        return self._exchange.session

    @property
    def client_info(self) -> dict[str, Any]:
        """What the client calls itself: ``name``, ``version``... Unverified; empty if unsaid."""
        return self._exchange.sender.info or {}

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """The capabilities that the client declared."""
        return self._exchange.sender.capabilities

    @property
    def protocol_version(self) -> str:
        """The protocol revision of this request, for example ``"2025-11-25"``."""
        return self._exchange.revision.name

    @property
    def meta(self) -> dict[str, Any]:
        """The request's ``_meta``, as the client sent it."""
        return self._exchange.request.meta
