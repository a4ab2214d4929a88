"""Progress of one call: it only grows, and a tight loop of it costs next to nothing."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from .errors import CallStopped

INTERVAL_SECONDS: Final = 0.1
"""Least time between two notifications; the last value is always sent."""


class Progress:
    """Notifies the client of how far a call is, if it has sent a progress token.

    2025-11-25, basic/utilities/progress: only with a token, the value must increase, and nothing
    comes after the response. Safe to use from any thread.
    """

    def __init__(self, token: Any, notify: Callable[[str, dict[str, Any]], None]) -> None:
        known = isinstance(token, (str, int)) and not isinstance(token, bool)
        self._token = token if known else None
        self._notify = notify
        self._lock = threading.Lock()
        self._last: float | None = None
        self._sent_at = float("-inf")
        self._unsent: dict[str, Any] | None = None

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Send it now, or once enough time has passed or the call ends."""
        if self._token is None:
            return
        with self._lock:
            if self._last is not None and progress <= self._last:
                return
            self._last = progress
            self._unsent = {"progressToken": self._token, "progress": progress}
            self._unsent |= {} if total is None else {"total": total}
            self._unsent |= {} if message is None else {"message": message}
        if time.monotonic() - self._sent_at >= INTERVAL_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send what is unsent; raises :class:`CallStopped` if the call is to end."""
        with self._lock:
            unsent, self._unsent = self._unsent, None
            if unsent is None:
                return
            self._sent_at = time.monotonic()
            self._notify("notifications/progress", unsent)

    def flush_if_running(self) -> None:
        """Send what is unsent, unless the call is to end."""
        with contextlib.suppress(CallStopped):
            self.flush()

    def finish(self) -> None:
        """Send what is unsent, and nothing more from now on."""
        if self._token is not None:
            self.flush_if_running()
            self._token = None
