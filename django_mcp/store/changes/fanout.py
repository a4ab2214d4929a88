"""Changes on their way into the sessions' own streams, where they get their place among the rest.

They wait in their rows, each of them once, until there is a connection to show them on; then they
become messages of the stream. The process of the connection that delivers does that, and moves the
stream's number by compare-and-set, so that nobody does it twice. A connection that has shown all
there was gets them from here, without their being read back.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction
from django.db.models import F, QuerySet

from ...auth import Principal
from ...conf import get_settings
from ...current_partition import current_partition
from ...models import OutgoingMessage, Session, Stream, Subscription
from ...protocol.messages import encode, notification
from ...protocol.topics import LISTS, Topic, TopicKind
from ..access.access_watch import has_site_user, users_of
from ..database import alias, in_batches, is_outage
from ..delivery.records import StoredMessage
from ..delivery.stream_readers import StreamReader
from . import subscription_rows
from .change_log import ChangesSince, TopicKey

logger = logging.getLogger("django_mcp.store")

STREAMS_AT_ONCE: Final = 100
"""Most streams that are written to in one transaction."""

Numbered = tuple[int, str]
"""A message, after the number of the change that it tells of."""


@dataclass(slots=True, eq=False)
class GetStreamListener:
    """A connection that shows a session's own stream (the legacy revisions)."""

    reader: StreamReader
    session: str
    server: str
    lists: frozenset[TopicKind]
    """The lists that the server has."""
    seen: int
    """The number of the last change that has been written, or was of no interest."""
    initialized: bool = False
    """Whether the session is known to be ready: it remains so until it ends."""
    principal: Principal | None = None
    """Whose it is."""
    may_read: Callable[[str, Any], bool] | None = None
    """Says of a URI and a user whether the one may be read by the other, if not all are by all."""
    partition: str = field(default_factory=current_partition)
    """Where its rows are."""
    epoch: int = field(init=False)

    def __post_init__(self) -> None:
        self.epoch = self.reader.epoch

    @property
    def ready(self) -> bool:
        """Whether there is a client, and it keeps up with what is there already."""
        return self.reader.ready and not self.reader.gone

    def note_seen(self, number: int) -> None:
        """Note that changes up to a number are done with."""
        self.seen = max(self.seen, number)


_ResourceUpdate = tuple[GetStreamListener, int, Subscription]
"""Whom a subscription has notified of a change, and the number of that."""


@dataclass(frozen=True, slots=True, eq=False)
class _StreamUpdate:
    """What one stream gets, in the order of the changes."""

    listener: GetStreamListener
    seen: int
    """Its row is at this number, or at one since which nothing was of interest to it."""
    last: int
    """The number to which its row moves."""
    messages: Sequence[Numbered]


def refresh(listeners: Sequence[GetStreamListener]) -> None:
    """Find out what others have done meanwhile: delivered changes, or made a session ready."""
    begun = {each.reader.stream: each for each in listeners if each.epoch != each.reader.epoch}
    for batch in in_batches(list(begun)):
        rows = _streams().filter(pk__in=batch)
        for stream, seen in rows.values_list("pk", "changes_seen"):
            begun[stream].epoch, begun[stream].seen = begun[stream].reader.epoch, seen
    waiting = {each.reader.stream: each for each in listeners if not each.initialized}
    for batch in in_batches(list(waiting)):
        rows = _streams().filter(pk__in=batch, session__state=Session.State.READY)
        for stream in rows.values_list("pk", flat=True):
            waiting[stream].initialized = True


def write_changes(listeners: Sequence[GetStreamListener], news: Mapping[str, ChangesSince]) -> int:
    """Queue what concerns each stream; return how many streams have got something.

    About as many as :data:`STREAMS_AT_ONCE`, since others wait for this thread too; the rest is
    still to be found by the next look.
    """
    # In one order for all processes, which lock the rows as they come.
    listeners = sorted(
        (each for each in listeners if each.server in news), key=lambda each: each.reader.stream
    )
    found = _find_messages(listeners, news)
    for each in listeners:
        if not found[each]:
            each.note_seen(news[each.server].last)
    rest = [each for each in listeners if found[each]]
    queued = 0
    while rest and queued < STREAMS_AT_ONCE:
        part, rest = rest[:STREAMS_AT_ONCE], rest[STREAMS_AT_ONCE:]
        shown = _write_and_show([_update_of(each, each.seen, found[each], news) for each in part])
        behind = {each: found[each] for each in part if each not in shown}
        queued += len(shown) + _write_for_later(list(_updates(behind, news)))
    return queued


def _find_messages(
    listeners: Sequence[GetStreamListener], news: Mapping[str, ChangesSince]
) -> dict[GetStreamListener, list[Numbered]]:
    found: dict[GetStreamListener, list[Numbered]] = defaultdict(list)
    for each in listeners:
        for kind in each.lists:
            number = news[each.server].changed.get(TopicKey(kind), 0)
            if number > each.seen:
                found[each].append((number, _LIST_CHANGED[kind]))
    for server in {each.server for each in listeners}:
        mine = [each for each in listeners if each.server == server]
        for each, number, row in _readable(list(_find_resources(mine, news[server]))):
            found[each].append((number, _body(Topic(TopicKind.RESOURCE, row.uri))))
    return found


def _readable(updates: Sequence[_ResourceUpdate]) -> Iterator[_ResourceUpdate]:
    """Yield what may still be read by who is to be notified, and end the other subscriptions."""
    asked = [each.principal for each, *_ in updates if each.may_read and each.principal]
    users = users_of(asked) if asked else {}
    lost: list[int] = []
    for listener, number, row in updates:
        if listener.may_read is None or listener.principal is None:
            yield listener, number, row
            continue
        user = (
            users.get(listener.principal.user.pk)
            if has_site_user(listener.principal)
            else listener.principal.user
        )
        try:
            if user is not None and listener.may_read(row.uri, user):
                yield listener, number, row
            else:
                lost.append(row.pk)
        except Exception as error:
            # This change is not notified; the next is another chance to find out.
            if is_outage(error):
                raise
            logger.exception("Whether a subscriber may read a resource could not be found out")
    subscription_rows.end(lost)


def _find_resources(
    listeners: Sequence[GetStreamListener], news: ChangesSince
) -> Iterator[_ResourceUpdate]:
    """Yield what has changed of what the sessions of one server are subscribed to."""
    by_session: dict[str, list[GetStreamListener]] = defaultdict(list)
    for each in listeners:
        by_session[each.session].append(each)
    digests = [key.digest for key in news.changed if key.digest]
    for row in subscription_rows.of_sessions(by_session, digests):
        number = news.changed[TopicKey(TopicKind.RESOURCE, row.uri_digest)]
        for each in by_session[str(row.session_id)]:
            if number > max(each.seen, row.changes_seen):
                yield each, number, row


def _write_and_show(updates: Sequence[_StreamUpdate]) -> set[GetStreamListener]:
    """Write to streams whose connections have shown everything, and show it on them at once.

    Returns the connections that got it.
    """
    updates = [update for update in updates if update.listener.initialized]
    if not updates:
        return set()
    with transaction.atomic(using=alias()):
        # Each is asked once more: what is noted as delivered to who has gone is lost on him.
        done = [update for update in updates if update.listener.ready and _advance_shown(update)]
        written = _write({update: update.listener.reader.cursor + 1 for update in done})
    for update in done:
        update.listener.note_seen(update.last)
        update.listener.reader.show(written[update])
    return {update.listener for update in done}


def _updates(
    behind: Mapping[GetStreamListener, list[Numbered]], news: Mapping[str, ChangesSince]
) -> Iterable[_StreamUpdate]:
    """Look how far streams are, and yield what there is to be written to them."""
    if not behind:
        return
    rows = _streams().filter(pk__in=[each.reader.stream for each in behind], closed=None)
    places = {row.pk: row for row in rows.select_related("session")}
    for each, numbered in behind.items():
        row = places.get(each.reader.stream)
        seen = 0 if row is None else row.changes_seen
        newer = [(number, body) for number, body in numbered if number > seen]
        if row is None or row.epoch != each.reader.epoch or not newer:
            # Another connection delivers, or has done so.
            each.note_seen(news[each.server].last)
        elif row.session.state == Session.State.READY:
            yield _update_of(each, seen, newer, news)


def _update_of(
    listener: GetStreamListener,
    seen: int,
    numbered: Sequence[Numbered],
    news: Mapping[str, ChangesSince],
) -> _StreamUpdate:
    last, messages = news[listener.server].last, sorted(numbered)
    fitting = messages[: get_settings().queue_messages]
    return _StreamUpdate(
        listener, seen, last if len(fitting) == len(messages) else fitting[-1][0], fitting
    )


def _write_for_later(updates: Sequence[_StreamUpdate]) -> int:
    """Write to several streams, to be read in their turn; return to how many."""
    if not updates:
        return 0
    with transaction.atomic(using=alias()):
        written = _write(_places([update for update in updates if _advance(update)]))
    for update in written:
        update.listener.note_seen(update.last)
    return len(written)


def _write(places: Mapping[_StreamUpdate, int]) -> dict[_StreamUpdate, list[StoredMessage]]:
    """Write what streams get, each from a number on that has been taken for it."""
    written = {update: _messages(update, first) for update, first in places.items()}
    OutgoingMessage.objects.using(alias()).bulk_create(
        OutgoingMessage(
            stream_id=update.listener.reader.stream,
            seq=message.seq,
            kind=message.kind,
            body=message.body,
        )
        for update, messages in written.items()
        for message in messages
    )
    return written


def _messages(update: _StreamUpdate, first: int) -> list[StoredMessage]:
    return [
        StoredMessage(first + index, OutgoingMessage.Kind.NOTIFICATION, body)
        for index, (_, body) in enumerate(update.messages)
    ]


def _advance_shown(update: _StreamUpdate) -> bool:
    """Take numbers on a stream of which all is shown, and note them as delivered at once."""
    reader, count = update.listener.reader, len(update.messages)
    rows = _row_as_seen(update).filter(next_seq=reader.cursor + 1)
    return bool(
        rows.update(
            next_seq=reader.cursor + 1 + count,
            delivered=reader.cursor + count,
            changes_seen=update.last,
        )
    )


def _advance(update: _StreamUpdate) -> bool:
    """Take numbers on a stream of which something is still to be read.

    What a full stream has no room for waits on in the rows of the changes.
    """
    count, room = len(update.messages), get_settings().queue_messages
    rows = _row_as_seen(update).filter(next_seq__lte=F("delivered") + 1 + room - count)
    return bool(rows.update(next_seq=F("next_seq") + count, changes_seen=update.last))


def _row_as_seen(update: _StreamUpdate) -> QuerySet[Stream]:
    """Return the stream's row, unless somebody else has written, or delivers."""
    reader = update.listener.reader
    return _streams().filter(
        pk=reader.stream, epoch=reader.epoch, changes_seen__lte=update.seen, closed=None
    )


def _places(updates: Sequence[_StreamUpdate]) -> dict[_StreamUpdate, int]:
    """Return the first of the numbers that each update has taken."""
    if not updates:
        return {}
    rows = _streams().filter(pk__in=[update.listener.reader.stream for update in updates])
    following = dict(rows.values_list("pk", "next_seq"))
    return {
        update: following[update.listener.reader.stream] - len(update.messages)
        for update in updates
    }


def _streams() -> QuerySet[Stream]:
    return Stream.objects.using(alias())


def _body(topic: Topic) -> str:
    return encode(notification(topic.notification())).decode()


_LIST_CHANGED: Final = {kind: _body(Topic(kind)) for kind in LISTS}
