"""Connections of this process that want to hear of changes, and what there is for them to hear.

One query asks for everything that has changed, however many connections there are, and however
often something has changed since the last time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import InterfaceError, OperationalError

from ...protocol.topics import Topic
from . import change_log, fanout
from .change_log import Key, News
from .fanout import OwnStream

PAUSE: Final = 0.5
"""Seconds between two looks if nobody rings."""
GATHERING: Final = 0.05
"""Least seconds between two looks, so that a storm of changes becomes a single one of each."""


@dataclass(slots=True, eq=False)
class Listener:
    """A connection that lasts for the sake of changes alone (2026-07-28).

    ``deliver`` takes messages; it is called from the ledger's thread and must return at once.
    ``ready`` says whether it takes more: what has changed waits in its rows, where it is one.
    """

    server: str
    wanted: Mapping[Key, Sequence[str]]
    """What it wants to hear of, with the messages that say so: one for each spelling of a URI."""
    seen: int
    """The number of the last change that it has heard of."""
    deliver: Callable[[Sequence[str]], None]
    ready: Callable[[], bool]

    def hear(self, news: News) -> None:
        """Deliver what is new to it."""
        found = self.wanted.keys() & news.changed.keys()
        numbers = {key: news.changed[key] for key in found if news.changed[key] > self.seen}
        if numbers:
            keys = sorted(numbers, key=numbers.__getitem__)
            self.deliver([body for key in keys for body in self.wanted[key]])
        self.seen = max(self.seen, news.last)


class Changes:
    """The changes of one process: what it hears of, and what it has to announce."""

    def __init__(self, ring_everybody: Callable[[], None]) -> None:
        self._ring_everybody = ring_everybody
        self._lock = threading.Lock()
        self._listeners: dict[Listener, None] = {}
        self._own: dict[OwnStream, None] = {}
        self._owed: dict[str, dict[Topic, None]] = {}
        self._rung = False
        self._looked = float("-inf")

    def __bool__(self) -> bool:
        return bool(self._listeners or self._own or self._owed)

    def add(self, listener: Listener | OwnStream) -> None:
        """Serve a connection. From any thread; what is there already is found by the next look."""
        if isinstance(listener, Listener):
            self._listeners[listener] = None
        else:
            self._own[listener] = None
        self._rung = True

    def remove(self, listener: Listener | OwnStream) -> None:
        """Forget a connection. From any thread."""
        if isinstance(listener, Listener):
            self._listeners.pop(listener, None)
        else:
            self._own.pop(listener, None)

    def announce(self, server: str, topics: Iterable[Topic]) -> None:
        """Write soon that topics have changed, for a thread that cannot. From any thread."""
        with self._lock:
            self._owed.setdefault(server, {}).update(dict.fromkeys(topics))

    def ring(self) -> None:
        """Look soon: something has changed. From any thread."""
        self._rung = True

    @property
    def pause(self) -> float:
        """Seconds until there is something to do."""
        return max(0.0, self._looked + (GATHERING if self._rung else PAUSE) - time.monotonic())

    def tick(self) -> bool:
        """Do what is due; return whether streams have got messages that are to be read."""
        self._write()
        if self.pause:
            return False
        self._rung = False
        self._looked = time.monotonic()
        return self._look()

    def _look(self) -> bool:
        listeners, own = list(self._listeners), list(self._own)
        fanout.refresh(own)
        ready = [each for each in listeners if each.ready()]
        waiting = [each for each in own if each.ready]
        numbers: dict[str, int] = {}
        everyone: list[Listener | OwnStream] = [*ready, *waiting]
        for each in everyone:
            numbers[each.server] = min(each.seen, numbers.get(each.server, each.seen))
        if not numbers:
            return False
        news = change_log.after(numbers)
        for listener in ready:
            if listener.server in news:
                listener.hear(news[listener.server])
        folded = fanout.fold(waiting, news)
        read = sum(len(each.changed) for each in news.values())
        if read >= change_log.PAGE or folded >= fanout.AT_ONCE:
            self._rung = True  # for there is more
        return folded > 0

    def _write(self) -> None:
        with self._lock:
            owed, self._owed = self._owed, {}
        told = False
        while owed:
            server, topics = owed.popitem()
            try:
                told = change_log.write(server, topics) or told
            except Exception as error:
                if isinstance(error, (OperationalError, InterfaceError)):
                    owed[server] = topics  # for better times
                for each, rest in owed.items():
                    self.announce(each, rest)
                raise
        if told:
            self._ring_everybody()
