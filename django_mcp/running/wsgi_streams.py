"""How many threads of a WSGI server may wait for streams: each stream holds one, and the last one
that is free decides whether anybody else is served.
"""

from __future__ import annotations

import threading
from typing import Final

from ..conf import get_settings
from ..forks import PerProcess


class WSGIStreams:
    """The streams of one process under WSGI, ``WSGI_STREAMS`` at most. Safe from any thread."""

    def __init__(self) -> None:
        # Also for what is collected, and given back, while the very thread counts.
        self._lock = threading.RLock()
        self._open = 0

    def take(self) -> bool:
        """Count one more, if there is room for it; return whether there is."""
        with self._lock:
            has_room = self._open < get_settings().wsgi_streams
            self._open += has_room
            return has_room

    def give_back(self) -> None:
        """Count one less."""
        with self._lock:
            self._open -= 1


wsgi_streams: Final = PerProcess(WSGIStreams)
"""Returns the streams of this process."""
