"""A bare ASGI application that answers the same to everything, and to GET with an idle stream."""

from __future__ import annotations

from typing import Any

BODY = b'{"value": 4242424242}'
START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))],
}
STREAM = {**START, "headers": [(b"content-type", b"text/event-stream")]}


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Read the body, as any endpoint must, and answer."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    if scope["method"] == "GET":
        await send(STREAM)
        await send({"type": "http.response.body", "body": b": \n\n", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    await send(START)
    await send({"type": "http.response.body", "body": BODY})
