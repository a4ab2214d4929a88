"""Server-Sent Events framing (WHATWG HTML, section 9.2)."""

from __future__ import annotations


def event(data: bytes) -> bytes:
    """Return one ``message`` event. ``data`` is a single line of JSON, as ``encode`` writes it."""
    return b"event: message\ndata: " + data + b"\n\n"
