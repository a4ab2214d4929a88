"""What user code receives: the caller, the client and the request, whichever the era."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..protocol.lifecycle import LOG_LEVELS, SessionInfo
from .calling import CallStopped
from .questions.interview import Interview

if TYPE_CHECKING:
    from django.http import HttpRequest

    from .exchange import Exchange


class Context(Interview):
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
        session = self._exchange.session
        # What the client said may be remembered for other calls: here and below they get a copy.
        return session and replace(session, sender=deepcopy(session.sender))

    @property
    def client_info(self) -> dict[str, Any]:
        """What the client calls itself: ``name``, ``version``... Unverified; empty if unsaid."""
        return deepcopy(self._exchange.sender.info or {})

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """The capabilities that the client declared."""
        return deepcopy(self._exchange.sender.capabilities)

    @property
    def protocol_version(self) -> str:
        """The protocol revision of this request, for example ``"2025-11-25"``."""
        return self._exchange.revision.name

    @property
    def meta(self) -> dict[str, Any]:
        """The request's ``_meta``, as the client sent it."""
        return self._exchange.request.meta

    @property
    def cancelled(self) -> bool:
        """Whether to stop: the client has cancelled the call, or nobody can get its result any
        more. Look at it in long loops; an asynchronous function is cancelled by itself.
        """
        return self._exchange.peer.stopped

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the call is, if it has asked to hear that.

        ``progress`` must grow; what does not is dropped. Call it as often as you like: not every
        value is sent, but the last one always is.
        """
        self._go_on()
        self._exchange.progress.report(progress, total, message)

    async def aprogress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Do as :meth:`progress`, in asynchronous code."""
        self.progress(progress, total, message)

    def log(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants messages of that ``level``.

        ``level`` is one of RFC 5424: ``debug``, ``info``, ``notice``, ``warning``, ``error``,
        ``critical``, ``alert``, ``emergency``. ``data`` is text or anything that JSON can hold.
        """
        if level not in LOG_LEVELS:
            raise ValueError(f"{level!r} is no log level; use one of {', '.join(LOG_LEVELS)}")
        self._go_on()
        if not self._wants(level):
            return
        params = {"level": level, "data": data}
        params |= {} if logger is None else {"logger": logger}
        self._exchange.peer.tell("notifications/message", params)

    async def alog(self, level: str, data: Any, *, logger: str | None = None) -> None:
        """Do as :meth:`log`, in asynchronous code."""
        self.log(level, data, logger=logger)

    def release_stream(self) -> bool:
        """Let the client come back for the result, instead of holding its connection open.

        Return whether that is possible: revision 2025-11-25, over a stream. Elsewhere nothing
        happens, and the connection stays.
        """
        return self._exchange.peer.release()

    def _go_on(self) -> None:
        if self._exchange.peer.stopped:
            raise CallStopped

    def _wants(self, level: str) -> bool:
        # Legacy: the session's level; 2026-07-28, server/utilities/logging: without a level in the
        # request itself nothing may be sent.
        session, sender = self._exchange.session, self._exchange.sender
        least = sender.log_level if session is None else session.log_level
        return least is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)
