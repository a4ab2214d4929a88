"""How a change gets from the site's code into the database: on commit, once for a transaction."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from django.db import DatabaseError, InterfaceError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from ..partitions import enter_partition, here, partitions
from ..protocol.topics import Topic
from .changes import change_log
from .database import alias, has_loop, with_retries
from .ledger import ledger

logger = logging.getLogger("django_mcp.store")


def publish(server: str, topic: Topic, *, using: str | None) -> None:
    """Tell the clients of all processes that ``topic`` of ``server`` has changed.

    Once what is open in the database is committed; ``using`` is the alias whose transaction it is,
    ``None`` stands for all that are open.
    """
    for found in _announcements:
        found.append(topic.uri or str(topic.kind))
    collected = _collected.get(None)
    if collected is None or not collected.open or not has_loop():
        _publish(server, topic, using)
    else:
        collected.changes.append((server, topic, using))


@contextmanager
def announcements() -> Iterator[list[str]]:
    """Collect what is announced within the block: the kinds of lists, and the URIs of resources.

    For tests: whether or not anybody is subscribed, and before it is committed.
    """
    found: list[str] = []
    _announcements.append(found)
    try:
        yield found
    finally:
        # By identity: two that have collected the same are equal.
        _announcements[:] = [each for each in _announcements if each is not found]


@contextmanager
def deferred() -> Iterator[None]:
    """Make what asynchronous code announces here and now in this thread, when it has ended.

    The thread knows its transactions; the loop on which the code runs does not.
    """
    collected = _DeferredChanges()
    token = _collected.set(collected)
    try:
        yield
    finally:
        _collected.reset(token)
        collected.open = False
        for each in collected.changes:
            _publish(*each)


@dataclass(slots=True)
class _DeferredChanges:
    """What asynchronous code has announced while a thread waits for it."""

    changes: list[tuple[str, Topic, str | None]] = field(default_factory=list)
    open: bool = True
    """Whether the thread still waits: a task may outlive the call that started it."""


class _TransactionChanges:
    """What is announced within one transaction; written once, by whatever commit hook runs first.

    Each announcement leaves a hook, since those of a savepoint vanish with it. What vanished is
    announced all the same if anything else is: a needless look harms nobody, a missing one does.
    """

    def __init__(self) -> None:
        self._topics: dict[tuple[str, str], dict[Topic, None]] = defaultdict(dict)
        self.is_written = False
        """Whether its transaction has ended; an error that somebody keeps may keep it as well."""

    def add(self, server: str, topic: Topic) -> None:
        """Add a topic of the present partition."""
        self._topics[here(), server][topic] = None

    def write(self) -> None:
        """Tell everything that has been added since the last time."""
        self.is_written = True
        topics, self._topics = self._topics, defaultdict(dict)
        for (partition, server), each in topics.items():
            _write(partition, server, each)


# Held by the hooks alone: a transaction that is rolled back drops them, and its changes with them.
_open_changes: WeakValueDictionary[int, _TransactionChanges] = WeakValueDictionary()


def _publish(server: str, topic: Topic, using: str | None) -> None:
    opened = [each for each in _open_connections() if using in (None, each.alias)]
    for connection in opened:
        changes = _open_changes.get(id(connection))
        if changes is None or changes.is_written:
            changes = _open_changes[id(connection)] = _TransactionChanges()
        changes.add(server, topic)
        transaction.on_commit(changes.write, using=connection.alias)
    if not opened:
        _write(here(), server, [topic])


def _write(partition: str, server: str, topics: Collection[Topic]) -> None:
    """Write what has been committed: in a partition, or where there are some, in all of them.

    In the present thread, so that it is there when the caller goes on, or ends; but asynchronous
    code must not touch the database, and a transaction that is still open would keep the counter
    to itself.
    """
    kind = partitions()
    if has_loop() or _is_occupied():
        ledger().publish_later(server, topics, partition)
    elif kind is None:
        _write_here("", server, topics)
    else:
        for each in [partition] if partition else list(kind.all()):
            with enter_partition(each):
                _write_here(each, server, topics)


def _write_here(partition: str, server: str, topics: Collection[Topic]) -> None:
    try:
        if with_retries(lambda: change_log.write(server, topics)):
            ledger().wake_everybody()
    except (OperationalError, InterfaceError) as error:
        # The connection broke, or the database is away: the ledger tries until it is back.
        logger.warning("A change is announced later: %s: %s", server, error)
        ledger().publish_later(server, topics, partition)
    except DatabaseError:
        # What has changed is committed; nobody could undo it if this were raised.
        logger.exception("A change could not be announced: %s", server)


def _open_connections() -> list[BaseDatabaseWrapper]:
    return [each for each in connections.all(initialized_only=True) if each.in_atomic_block]


def _is_occupied() -> bool:
    """Return whether the thread's own connection has a transaction open, other than a test's."""
    if not connections[alias()].in_atomic_block:
        return False
    try:
        with transaction.atomic(using=alias(), durable=True):
            return False
    except RuntimeError:
        return True


_collected: ContextVar[_DeferredChanges] = ContextVar("collected")
_announcements: list[list[str]] = []
