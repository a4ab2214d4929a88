"""How long, how often and how much: the numbers of a client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of a client. Seconds, unless the name says something else."""

    max_timeout: float = 600.0
    """The longest that a call lasts, whatever progress it reports and whatever it asks."""
    connect_timeout: float = 10.0
    """How long opening a connection may take."""
    idle_timeout: float = 300.0
    """How long an open stream may be silent before the client takes it for dead and reconnects."""
    message_bytes: int = 4 * 1024 * 1024
    """The largest message that is read, in bytes."""
    message_values: int = 100_000
    """How many values it may hold: members of objects and items of arrays, at any depth."""
    list_bytes: int = 16 * 1024 * 1024
    """The largest list that is read, in bytes of all its pages."""
    list_values: int = 400_000
    """How many values they may hold."""
    rounds: int = 8
    """How often one call may come back with questions (2026-07-28)."""
    questions: int = 32
    """How many questions of the server are worked on at once, or come together (2026-07-28)."""
    pages: int = 1000
    """How many pages of a list are read."""
    retries: int = 2
    """How often a request is sent again that the server did not process."""
    reconnects: int = 5
    """How often in a row a broken stream is asked for without a word from it."""
    drain: float = 1.0
    """How long calls of a lost session still wait for what their old streams hold."""
    backoff: float = 0.5
    """The pause before the second attempt where the server names none; it doubles from there."""
    max_backoff: float = 30.0
    """The longest such pause."""
    close_timeout: float = 5.0
    """How long closing may take, the end of the session at the server included."""

    def pause(self, failures: int) -> float:
        """Return how long to wait after so many failures in a row."""
        return min(self.max_backoff, self.backoff * 2.0 ** min(max(failures - 1, 0), 30))
