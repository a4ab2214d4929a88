"""Calls that speak, and last for longer than the moment in which they are answered in one piece."""

from __future__ import annotations

import time

from django_mcp import Context
from django_mcp.running.peers import StoredPeer, StreamPeer

BOUND = 20


def last(ctx: Context) -> None:
    """Wait until what a call has said is being written, or sent, if it ever is."""
    peer, end = ctx._exchange.peer, time.monotonic() + BOUND
    while _holds_back(peer):
        assert time.monotonic() < end
        time.sleep(0.001)


def _holds_back(peer: object) -> bool:
    if isinstance(peer, StoredPeer):
        return bool(peer._writer.write_at)
    return isinstance(peer, StreamPeer) and bool(peer._queue.waiting())
