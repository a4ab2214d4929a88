"""Server-Sent Events framing (WHATWG HTML, section 9.2)."""

from __future__ import annotations

from typing import Final

MEDIA_TYPE: Final = "text/event-stream"
KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment, which clients skip, and proxies take for traffic."""


def event(data: bytes, event_id: str | None = None) -> bytes:
    """Return one ``message`` event. ``data`` is a single line of JSON, as ``encode`` writes it."""
    line = b"" if event_id is None else b"id: " + event_id.encode() + b"\n"
    return line + b"event: message\ndata: " + data + b"\n\n"


def priming(event_id: str, retry: int) -> bytes:
    """Return an event without data, which gives the client a place to come back to.

    2025-11-25, basic/transports, "Sending Messages to the Server". ``retry`` is in milliseconds.
    """
    return b"id: %s\nretry: %d\ndata: \n\n" % (event_id.encode(), retry)


def pause(retry: int) -> bytes:
    """Return the wish that the client wait before it comes back, in milliseconds."""
    return b"retry: %d\n\n" % retry
