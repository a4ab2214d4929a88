"""What the server of this process does when it is asked to stop, as far as that is known.

ASGI does not say. Most close their listening sockets and idle connections, and finish what is in
flight. That is told by what has set the signal's handler before us.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
from collections.abc import Iterable
from typing import Any, Final

ACCEPTING: Final = 100
"""In so many turns of the loop all that has connected should be accepted."""


class Server:
    """A server of which nothing else is known."""

    breaks_off = False
    """Whether it ends at once, whatever is in flight."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is in flight, as far as it lets anybody know."""
        return True

    @property
    def has_connections(self) -> bool:
        """Whether connections may be open."""
        return True

    async def stop_listening(self) -> None:
        """Take no more connections, if it can be made to."""


class Uvicorn(Server):
    """Uvicorn, also as a worker of gunicorn's: it finishes what is in flight."""

    def __init__(self, server: Any) -> None:
        self._server = server

    @property
    def has_connections(self) -> bool:
        """Whether any is open, as the server counts them."""
        return bool(self._server.server_state.connections)

    async def stop_listening(self) -> None:
        """Close the sockets, once those who wait at them have been let in."""
        for each in self._server.servers:
            await _accepted(each.sockets)
            each.close()


class Daphne(Server):
    """Daphne, which ends with Twisted's reactor: at once."""

    breaks_off = True

    def __init__(self, reactor: Any) -> None:
        self._ports = [each for each in reactor.getReaders() if hasattr(each, "stopListening")]

    @property
    def is_idle(self) -> bool:
        """Whether every response that has begun has been sent."""
        return not any(map(_is_answering, self._requests()))

    async def stop_listening(self) -> None:
        """Close the ports, once those who wait at them have been let in."""
        for port in self._ports:
            await _accepted([port])
            port.stopListening()

    def _requests(self) -> Iterable[dict[str, Any]]:
        """Yield the requests that are known: no WebSockets, which last."""
        for port in self._ports:
            server = getattr(port.factory, "server", None)
            for protocol, request in list(getattr(server, "connections", {}).items()):
                if hasattr(protocol, "responseHeaders"):
                    yield request


def server_behind(handler: Any) -> Server:
    """Return the server that has set this handler of a signal."""
    owner = getattr(handler, "__self__", None)
    if hasattr(owner, "servers") and hasattr(owner, "should_exit"):
        return Uvicorn(owner)
    reactor = sys.modules.get("twisted.internet.reactor")
    if getattr(reactor, "running", False):
        return Daphne(reactor)
    return Server()


def _is_answering(request: dict[str, Any]) -> bool:
    application = request.get("application_instance")
    return application is not None and not application.done()


async def _accepted(sockets: Iterable[Any]) -> None:
    """Wait until what has connected is accepted: the system resets what still waits for it."""
    quiet = 0
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            selector.register(each.fileno(), selectors.EVENT_READ)
        for _ in range(ACCEPTING):
            quiet = 0 if selector.select(0) else quiet + 1
            if quiet == 2:  # asyncio takes one turn more for what it has accepted
                return
            await asyncio.sleep(0)
