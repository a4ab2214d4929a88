"""The lifespan of an ASGI application, which gives this process time to end in good order.

The server says ``lifespan.shutdown`` when its connections have ended, and waits for an answer
(ASGI, "Lifespan Protocol"). The application that is mounted has its own lifespan, or none, as
Django's; then it is answered here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ..running import shutdown

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


class Lifespan:
    """One lifespan, shared with the application that is mounted."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._unanswered: str | None = None
        self._is_over = False

    async def run(self, application: Callable[..., Awaitable[None]], scope: Event) -> None:
        """Let ``application`` have its lifespan, and answer for it if it has none."""
        heard = False

        async def receive() -> Event:
            nonlocal heard
            heard = True
            return await self._next()

        try:
            await application(scope, receive, self._answer)
        except Exception:
            if heard:
                raise
        while not self._is_over:
            asked = self._unanswered or (await self._next())["type"]
            await self._answer({"type": f"{asked}.complete"})

    async def _next(self) -> Event:
        event = await self._receive()
        self._unanswered = event["type"]
        if event["type"] == "lifespan.startup":
            shutdown.start()
        elif event["type"] == "lifespan.shutdown":
            # First: what still runs may need what the application gives up now.
            await shutdown.drain()
        return event

    async def _answer(self, event: Event) -> None:
        self._unanswered = None
        self._is_over = event["type"] != "lifespan.startup.complete"
        await self._send(event)
