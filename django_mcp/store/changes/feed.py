"""Connections of this process that are notified of changes, and what there is for them.

A look asks once for everything that has changed, however many connections there are, and however
often something has changed since the last look; what is new to GET streams is then written to them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db import InterfaceError, OperationalError

from ...current_partition import current_partition
from ...protocol.topics import Topic
from . import change_log, fanout
from .change_log import ChangesSince, TopicKey
from .fanout import GetStreamListener

POLL_SECONDS: Final = 0.5
"""Seconds between two looks if nobody wakes it."""
INTERVAL_SECONDS: Final = 0.05
"""Least seconds between two looks, so that a storm of changes becomes a single one of each."""


@dataclass(slots=True, eq=False)
class ChangeListener:
    """A connection that lasts for the sake of changes alone (2026-07-28).

    ``deliver`` takes messages; it is called from the ledger's thread and must return at once.
    ``ready`` says whether it takes more: what has changed waits in its rows, where it is one.
    """

    server: str
    wanted: Mapping[TopicKey, Sequence[str]]
    """What it is notified of, with the messages that say so: one for each spelling of a URI."""
    seen: int
    """The number of the last change that it has been notified of."""
    deliver: Callable[[Sequence[str]], None]
    ready: Callable[[], bool]
    partition: str = field(default_factory=current_partition)
    """Where its rows are."""

    def take(self, news: ChangesSince) -> None:
        """Deliver what is new to it."""
        found = self.wanted.keys() & news.changed.keys()
        numbers = {key: news.changed[key] for key in found if news.changed[key] > self.seen}
        if numbers:
            keys = sorted(numbers, key=numbers.__getitem__)
            self.deliver([body for key in keys for body in self.wanted[key]])
        self.seen = max(self.seen, news.last)


class ChangeFeed:
    """The changes of one process: what it notifies of, and what it has to publish."""

    def __init__(self, wake_everybody: Callable[[], None]) -> None:
        self._wake_everybody = wake_everybody
        self._lock = threading.Lock()
        self._listeners: dict[ChangeListener, None] = {}
        self._get_streams: dict[GetStreamListener, None] = {}
        self._unwritten: dict[str, dict[Topic, None]] = {}
        self._is_due = False
        self._looked = float("-inf")

    def __bool__(self) -> bool:
        return bool(self._listeners or self._get_streams or self._unwritten)

    def add(self, listener: ChangeListener | GetStreamListener) -> None:
        """Serve a connection. From any thread; what is there already is found by the next look."""
        if isinstance(listener, ChangeListener):
            self._listeners[listener] = None
        else:
            self._get_streams[listener] = None
        self._is_due = True

    def remove(self, listener: ChangeListener | GetStreamListener) -> None:
        """Forget a connection. From any thread."""
        if isinstance(listener, ChangeListener):
            self._listeners.pop(listener, None)
        else:
            self._get_streams.pop(listener, None)

    def publish_later(self, server: str, topics: Iterable[Topic]) -> None:
        """Write soon that topics have changed, for a thread that cannot. From any thread."""
        with self._lock:
            self._unwritten.setdefault(server, {}).update(dict.fromkeys(topics))

    def look_soon(self) -> None:
        """Look soon: something has changed. From any thread."""
        self._is_due = True

    @property
    def pause(self) -> float:
        """Seconds until there is something to do."""
        return max(
            0.0,
            self._looked + (INTERVAL_SECONDS if self._is_due else POLL_SECONDS) - time.monotonic(),
        )

    def tick(self) -> bool:
        """Do what is due; return whether streams have got messages that are to be read."""
        self._write()
        if self.pause:
            return False
        self._is_due = False
        self._looked = time.monotonic()
        return self._look()

    def _look(self) -> bool:
        listeners, get_streams = list(self._listeners), list(self._get_streams)
        fanout.refresh(get_streams)
        ready = [each for each in listeners if each.ready()]
        # 2025-11-25, basic/lifecycle, "Initialization": before notifications/initialized a server
        # sends pings and logs alone. Whoever never says it must not keep what is new from others.
        waiting = [each for each in get_streams if each.ready and each.initialized]
        numbers: dict[str, int] = {}
        everyone: list[ChangeListener | GetStreamListener] = [*ready, *waiting]
        for each in everyone:
            numbers[each.server] = min(each.seen, numbers.get(each.server, each.seen))
        if not numbers:
            return False
        news = change_log.after(numbers)
        for listener in ready:
            if listener.server in news:
                listener.take(news[listener.server])
        written = fanout.write_changes(waiting, news)
        read = sum(len(each.changed) for each in news.values())
        if read >= change_log.PAGE or written >= fanout.STREAMS_AT_ONCE:
            self._is_due = True  # for there is more
        return written > 0

    def _write(self) -> None:
        with self._lock:
            unwritten, self._unwritten = self._unwritten, {}
        is_wanted = False
        while unwritten:
            server, topics = unwritten.popitem()
            try:
                is_wanted = change_log.write(server, topics) or is_wanted
            except Exception as error:
                if isinstance(error, (OperationalError, InterfaceError)):
                    unwritten[server] = topics  # for better times
                for each, rest in unwritten.items():
                    self.publish_later(each, rest)
                raise
        if is_wanted:
            self._wake_everybody()
