"""Events for a server that sends each response from a thread of its own, as under WSGI."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Self

from ..protocol import sse
from ..running.process_loop import process_loop
from .event_stream import EventStream


class ThreadEvents:
    """The events of a stream of the process's loop, one by one, for a thread that waits for each.

    The first comes at once: servers send the head of a response with it.
    """

    def __init__(self, events: EventStream, closed: Callable[[], object]) -> None:
        """Take what is called once nothing more is sent, for ``closed``."""
        self._events = events
        self._closed = closed
        self._has_begun = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        chunk = process_loop().run(self._next)
        if chunk is None:
            raise StopIteration
        return chunk

    async def _next(self) -> bytes | None:
        if not self._has_begun:
            self._has_begun = True
            return self._events.take() or sse.KEEP_ALIVE
        return await anext(self._events, None)

    def close(self) -> None:
        """Send nothing more: the response has ended, or its client has gone."""
        self._events.close()
        self._closed()

    def __del__(self) -> None:
        # Where something replaces the response, nobody closes it.
        if not sys.is_finalizing():
            self.close()
