"""A session of the legacy era: what waits in it, and how it ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..protocol import headers as names
from ..protocol.messages import Response
from .errors import OutcomeUnknown, UnexpectedAnswer
from .exchange import Exchange, log
from .server import Server
from .waiting import Scope

# 2025-11-25, basic/transports, "Session Management": visible ASCII.
_ID: Final = re.compile(r"[\x21-\x7e]{1,1024}")


class Session:
    """One session, from ``initialize`` on. Nothing of it is ever carried over into the next."""

    def __init__(self, session_id: str | None, server: Server) -> None:
        if session_id is not None and not _ID.fullmatch(session_id):
            raise UnexpectedAnswer("The server's session id has characters that none may have")
        self.id = session_id
        self.server = server
        self.lost = False
        self.stream: asyncio.Task[None] | None = None
        """Reads the session's own stream."""
        self.streamless = False
        """Whether the server has no such stream."""
        self.streaming = asyncio.Event()
        """Set while that stream is open, or when it is clear that it never will be."""
        self._scopes: set[Scope] = set()
        self._exchanges: dict[int, tuple[Exchange, asyncio.Future[Response]]] = {}

    @property
    def headers(self) -> dict[str, str]:
        """What every request of the session carries."""
        version = {names.PROTOCOL_VERSION: self.server.revision.name}
        return version if self.id is None else {**version, names.SESSION_ID: self.id}

    def lose(self, drain: float) -> None:
        """Mark the session as lost. What waits in it has ``drain`` seconds to get its answer.

        A stream that is open may hold it, and so it is not cut off: but nobody waits for ever for
        a server that has forgotten them.
        """
        if self.lost:
            return
        self.lost = True
        if self.stream is not None:
            asyncio.get_running_loop().call_later(drain, self.stream.cancel)
        for scope in self._scopes:
            scope.end(OutcomeUnknown("The session ended while the request ran"), after=drain)

    @contextmanager
    def waiting(self, exchange: Exchange, scope: Scope) -> Iterator[asyncio.Future[Response]]:
        """Keep the book of what waits; gives the response that may come on the session's stream."""
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._scopes.add(scope)
        self._exchanges[exchange.id] = exchange, answer
        try:
            yield answer
        finally:
            self._scopes.discard(scope)
            del self._exchanges[exchange.id]

    def deliver(self, response: Response) -> None:
        """Give a response from the session's own stream to whoever waits for it."""
        known = None if isinstance(response.id, str) else self._exchanges.get(response.id)
        if known is None or known[1].done():
            log.warning("Dropped a response to %r, for which nobody waits", response.id)
            return
        known[1].set_result(response)

    def exchange_of(self, token: object) -> Exchange | None:
        """Return the request to which a progress token belongs."""
        known = self._exchanges.get(token) if isinstance(token, int) else None
        return known[0] if known else None
