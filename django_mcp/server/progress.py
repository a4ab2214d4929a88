"""Progress of one call: it only grows, and a tight loop of it costs next to nothing."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from .calling import CallStopped

INTERVAL: Final = 0.1
"""Seconds between two notifications at the least; the last value always arrives."""


class Progress:
    """Tells the client how far a call is, if it has asked to hear that.

    2025-11-25, basic/utilities/progress: only with a token, the value must increase, and nothing
    comes after the response. Safe to use from any thread.
    """

    def __init__(self, token: Any, tell: Callable[[str, dict[str, Any]], None]) -> None:
        known = isinstance(token, (str, int)) and not isinstance(token, bool)
        self._token = token if known else None
        self._tell = tell
        self._lock = threading.Lock()
        self._last: float | None = None
        self._told = float("-inf")
        self._held: dict[str, Any] | None = None

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell now, or hold it until enough time has passed or the call ends."""
        if self._token is None:
            return
        with self._lock:
            if self._last is not None and progress <= self._last:
                return
            self._last = progress
            self._held = {"progressToken": self._token, "progress": progress}
            self._held |= {} if total is None else {"total": total}
            self._held |= {} if message is None else {"message": message}
        if time.monotonic() - self._told >= INTERVAL:
            self.flush()

    def flush(self) -> None:
        """Tell what is held."""
        with self._lock:
            held, self._held = self._held, None
            if held is None:
                return
            self._told = time.monotonic()
            self._tell("notifications/progress", held)

    def pulse(self) -> None:
        """Tell what is held, if the call goes on. Never raises :class:`CallStopped`."""
        with contextlib.suppress(CallStopped):
            self.flush()

    def finish(self) -> None:
        """Tell what is held, and nothing more from now on."""
        if self._token is not None:
            self.pulse()
            self._token = None
