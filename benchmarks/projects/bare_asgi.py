"""A bare ASGI application that answers the same to everything."""

from __future__ import annotations

from typing import Any

BODY = b'{"value": 4242424242}'
START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))],
}


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Read the body, as any endpoint must, and answer."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    await send(START)
    await send({"type": "http.response.body", "body": BODY})
