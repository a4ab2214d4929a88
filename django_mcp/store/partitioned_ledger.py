"""The ledger of a process whose rows lie in several partitions: books for each of them.

To everybody else it is a :class:`~django_mcp.store.ledger.Ledger`. What it is given says where it
belongs, since it was made there; what says nothing belongs to the present partition.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final

from django.db import Error

from ..auth import Guard, Principal
from ..conf import get_settings
from ..current_partition import current_partition
from ..partitions import Partitions, here, partitions
from ..protocol.messages import RequestId
from ..protocol.topics import Topic
from .access.access_watch import AccessWatch
from .bookkeeper import Bookkeeper, active_books
from .changes.fanout import GetStreamListener
from .changes.feed import ChangeFeed, ChangeListener
from .delivery.stream_readers import StreamReader, StreamReaders
from .delivery.stream_writer import StreamWriter
from .in_flight.running_requests import RunningRequest, RunningRequests
from .ledger import PAUSE_SECONDS, Ledger
from .partition_books import PartitionBooks
from .sweep import ROUND_SECONDS

logger = logging.getLogger("django_mcp.store")


class PartitionedLedger(Ledger):
    """The bookkeeping of one process, with a thread for each database."""

    def __init__(self) -> None:
        super().__init__()
        self._books: dict[str, PartitionBooks] = {}
        self._bookkeepers: dict[str, Bookkeeper] = {}
        self._everywhere: dict[str, dict[Topic, None]] = {}
        """What has changed in all partitions, by server."""
        self._announce_at = float("-inf")
        self._planning = threading.Lock()
        self._is_round_due = False
        # Processes that were started together do not go round together.
        self._round_at = time.monotonic() + random.uniform(0, ROUND_SECONDS)
        self.access_watch = _AccessWatches(self)
        self.requests = _Requests(self)
        self.readers = _Readers(self)
        self.changes = _Changes(self)

    def books_of(self, partition: str) -> PartitionBooks:
        """Return the books of a partition, which there are from then on. From any thread."""
        found = self._books.get(partition)
        if found is not None:
            return found
        if not partition:
            raise RuntimeError(
                'This was not done in a partition; see DJANGO_MCP["PARTITION"] and enter_partition.'
            )
        bookkeeper = self._bookkeeper_of(partition)
        made = PartitionBooks(
            partition, self.process_id, self.doorbell, bookkeeper.wake, self._note_use
        )
        return self._books.setdefault(partition, made)

    def found_books(self, partition: str) -> list[PartitionBooks]:
        """Return the books of a partition, if there are any."""
        found = self._books.get(partition)
        return [] if found is None else [found]

    def books(self) -> list[PartitionBooks]:
        """Return all that there are. From any thread."""
        return list(self._books.values())

    def submit(self, writer: StreamWriter) -> None:
        """Write what ``writer`` has to write, once it is due."""
        self.books_of(writer.partition).submit(writer)

    def touch(self, session_id: str) -> None:
        """Note that a session of the present partition has been used."""
        self.books_of(current_partition()).touch(session_id)

    def note_activity(self) -> None:
        """Recover what dead processes left, and clean: the database is in use. From any thread."""
        self.books_of(current_partition()).note_activity()

    def add_request(self, running: RunningRequest) -> None:
        """Watch a call in flight. From any thread."""
        self.books_of(running.partition).add_request(running)

    def run(self, job: Callable[[], None], partition: str | None = None) -> None:
        """Run something small that needs the database, soon, with nobody waiting for it."""
        self.books_of(current_partition() if partition is None else partition).run(job)

    def write_use(self) -> None:
        """Write soon how sessions have been used, which otherwise waits for others to come."""
        for books in self.books():
            books.write_use()

    def look_now(self, partition: str | None = None) -> None:
        """Look at once: there is something to read."""
        # The doorbell does not say where.
        every = self._active() if partition is None else [self.books_of(partition)]
        for books in every:
            books.look_now()

    def publish_later(self, server: str, topics: Iterable[Topic], partition: str = "") -> None:
        """Write soon that topics have changed, for a thread that cannot do so itself."""
        if partition:
            self.books_of(partition).publish_later(server, topics)
            return
        with self._lock:
            self._everywhere.setdefault(server, {}).update(dict.fromkeys(topics))
        self._bookkeeper_in(get_settings().database).wake()

    def wake(self) -> None:
        """Begin to listen. The threads are woken by what they are given."""
        self._start()

    def tick(self) -> None:
        """Do everything that is due, by hand in tests."""
        for bookkeeper in list(self._bookkeepers.values()):
            bookkeeper.tick(at_once=True)

    def close(self) -> None:
        """Write what waits, end the threads and close the connections; tests want that."""
        self._closing = True
        self.doorbell.close()
        for bookkeeper in list(self._bookkeepers.values()):
            bookkeeper.close()

    @property
    def is_writing(self) -> bool:
        """Whether there is something that is still to be written."""
        return any(books.is_writing for books in self.books())

    def _start(self) -> None:
        with self._lock:
            if not (self._started or self._closing):
                self.doorbell.start()
                self._started = True

    def _active(self) -> list[PartitionBooks]:
        return active_books(list(self._bookkeepers.values()))

    def _look_for_changes(self) -> None:
        for books in self._active():
            books.look_for_changes()

    def _bookkeeper_of(self, partition: str) -> Bookkeeper:
        return self._bookkeeper_in(_kind().database(partition))

    def _bookkeeper_in(self, alias: str) -> Bookkeeper:
        self._start()
        made = Bookkeeper(alias, self.books_of, self._go_round, _is_gone, self._forget)
        made.wants_round = self._seconds_until_round
        return self._bookkeepers.setdefault(alias, made)

    def _forget(self, books: PartitionBooks) -> None:
        self._books.pop(books.partition, None)

    # Rounds: every partition is recovered and cleaned now and then, while the process is in use.

    def _note_use(self) -> None:
        self._is_round_due = True

    def _seconds_until_round(self) -> float:
        if self._everywhere:
            return max(0.0, self._announce_at - time.monotonic())
        if not self._is_round_due:
            return float("inf")
        # Looked at twice a second while others are still on their way.
        return max(0.5, self._round_at - time.monotonic())

    def _go_round(self) -> None:
        """Plan visits to all partitions, if it is time. On the thread of any bookkeeper."""
        is_due = self._is_round_due and time.monotonic() >= self._round_at
        is_due = is_due and not any(each.has_visits for each in self._bookkeepers.values())
        if not (is_due or self._everywhere) or not self._planning.acquire(blocking=False):
            return
        try:
            names = list(_kind().all())
            self._announce_everywhere(names)
            if is_due:
                self._is_round_due, self._round_at = False, time.monotonic() + ROUND_SECONDS
                self._plan(names)
        except Error as error:
            self._round_at = time.monotonic() + ROUND_SECONDS
            self._announce_at = time.monotonic() + PAUSE_SECONDS
            logger.warning("Which partitions there are could not be found out: %s", error)
        finally:
            self._planning.release()

    def _plan(self, names: list[str]) -> None:
        for books in self.books():
            if books.partition not in names and books.is_resting:
                self._forget(books)
        random.shuffle(names)
        by_alias: dict[str, list[str]] = defaultdict(list)
        for name in names:
            by_alias[_kind().database(name)].append(name)
        for alias, some in by_alias.items():
            self._bookkeeper_in(alias).plan_visits(some)

    def _announce_everywhere(self, names: Iterable[str]) -> None:
        with self._lock:
            changed, self._everywhere = self._everywhere, {}
        for name in names:
            for server, topics in changed.items():
                self.books_of(name).publish_later(server, topics)


def make_ledger() -> Ledger:
    """Return a ledger of the kind that the settings ask for."""
    return Ledger() if get_settings().partition is None else PartitionedLedger()


def _kind() -> Partitions:
    kind = partitions()
    assert kind is not None
    return kind


def _is_gone(partition: str) -> bool:
    try:
        return partition not in set(_kind().all())
    except Error:
        return False


class _Requests(RunningRequests):
    """The requests in flight of all partitions, each among those of its own."""

    def __init__(self, ledger: PartitionedLedger) -> None:
        self._of, self._found = ledger.books_of, ledger.found_books
        self._everywhere = ledger.books
        self._asked: dict[uuid.UUID, PartitionBooks] = {}

    def __bool__(self) -> bool:
        return any(books.requests for books in self._everywhere())

    def running(self) -> list[RunningRequest]:
        return [each for books in self._everywhere() for each in books.requests.running()]

    def add(self, running: RunningRequest) -> None:
        self._of(running.partition).requests.add(running)

    def remove(self, running: RunningRequest) -> None:
        for books in self._found(running.partition):
            books.requests.remove(running)

    def find_without_row(self, session_id: str, request_id: RequestId) -> RunningRequest | None:
        return self._of(here()).requests.find_without_row(session_id, request_id)

    def watch_question(
        self, question: uuid.UUID, answered: Callable[[dict[str, Any] | None], None]
    ) -> None:
        books = self._asked[question] = self._of(current_partition())
        books.requests.watch_question(question, answered)

    def unwatch_question(self, question: uuid.UUID) -> None:
        books = self._asked.pop(question, None)
        if books is not None:
            books.requests.unwatch_question(question)


class _Readers(StreamReaders):
    """The connections of all partitions, each among those of its own."""

    def __init__(self, ledger: PartitionedLedger) -> None:
        self._of, self._found = ledger.books_of, ledger.found_books
        self._everywhere = ledger.books

    def __bool__(self) -> bool:
        return any(books.readers for books in self._everywhere())

    def add(self, reader: StreamReader) -> None:
        books = self._of(reader.partition)
        books.readers.add(reader)
        books.start_looking()

    def remove(self, reader: StreamReader) -> None:
        for books in self._found(reader.partition):
            books.readers.remove(reader)

    def all(self) -> list[StreamReader]:
        return [each for books in self._everywhere() for each in books.readers.all()]


class _Changes(ChangeFeed):
    """The connections of all partitions that are notified of changes."""

    def __init__(self, ledger: PartitionedLedger) -> None:
        self._of, self._found = ledger.books_of, ledger.found_books
        self._everywhere = ledger.books

    def __bool__(self) -> bool:
        return any(books.changes for books in self._everywhere())

    def add(self, listener: ChangeListener | GetStreamListener) -> None:
        books = self._of(listener.partition)
        books.changes.add(listener)
        books.wake()

    def remove(self, listener: ChangeListener | GetStreamListener) -> None:
        for books in self._found(listener.partition):
            books.changes.remove(listener)


class _AccessWatches(AccessWatch):
    """Everybody with something open, by the partition of what is open."""

    def __init__(self, ledger: PartitionedLedger) -> None:
        self._of, self._found = ledger.books_of, ledger.found_books

    def watch(
        self,
        key: Any,
        principal: Principal,
        end: Callable[[], object],
        guard: Callable[[], Guard | None] = lambda: None,
    ) -> None:
        self._of(key.partition).access_watch.watch(key, principal, end, guard)

    def unwatch(self, key: Any) -> None:
        for books in self._found(key.partition):
            books.access_watch.unwatch(key)


__all__: Final = ["PartitionedLedger", "make_ledger"]
