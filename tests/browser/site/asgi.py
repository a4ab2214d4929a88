"""A site that serves all it has from one process, with the mount in front of everything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from channels.routing import ProtocolTypeRouter
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler

from django_mcp.asgi import mount
from example_project.asgi import django_application

Event = dict[str, Any]


async def echo(
    scope: Event, receive: Callable[[], Awaitable[Event]], send: Callable[[Event], Awaitable[None]]
) -> None:
    """Say what was said."""
    await receive()
    await send({"type": "websocket.accept"})
    while (event := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": event["text"]})


site = ProtocolTypeRouter({"http": ASGIStaticFilesHandler(django_application), "websocket": echo})
application = mount(site)
