"""Calls that speak, and last for longer than the moment in which they are answered in one piece."""

from __future__ import annotations

import time

from django_mcp import Context

BOUND = 20


def last(ctx: Context) -> None:
    """Wait until what a call has said is being written, if it ever is."""
    post, end = getattr(ctx._exchange.peer, "_post", None), time.monotonic() + BOUND
    while post is not None and post.due:
        assert time.monotonic() < end
        time.sleep(0.001)
