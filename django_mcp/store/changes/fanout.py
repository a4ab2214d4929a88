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

from ...conf import get_settings
from ...models import OutgoingMessage, Session, Stream, Subscription
from ...principal import Principal
from ...protocol.messages import encode, notification
from ...protocol.topics import LISTS, Kind, Topic
from ..access.access_watch import is_ours, users_of
from ..database import alias, is_outage
from ..delivery.records import Message
from ..delivery.stream_readers import Reader
from . import subscription_rows
from .change_log import Key, News

logger = logging.getLogger("django_mcp.store")

AT_ONCE: Final = 100
"""Most streams that are written to in one transaction."""

Numbered = tuple[int, str]
"""A message, after the number of the change that it tells of."""


@dataclass(slots=True, eq=False)
class OwnStream:
    """A connection that shows a session's own stream (the legacy revisions)."""

    reader: Reader
    session: str
    server: str
    lists: frozenset[Kind]
    """The lists that the server has."""
    seen: int
    """The number of the last change that has been folded in, or was of no interest."""
    initialized: bool = False
    """Whether the session is known to be ready: that it stays until it ends."""
    principal: Principal | None = None
    """Whose it is."""
    may_read: Callable[[str, Any], bool] | None = None
    """Says of a URI and a user whether the one may be read by the other, if not all are by all."""
    epoch: int = field(init=False)

    def __post_init__(self) -> None:
        self.epoch = self.reader.epoch

    @property
    def ready(self) -> bool:
        """Whether there is a client, and it keeps up with what is there already."""
        return self.reader.ready and not self.reader.gone

    def see(self, number: int) -> None:
        """Note that changes up to a number are done with."""
        self.seen = max(self.seen, number)


_Update = tuple[OwnStream, int, Subscription]
"""Whom a subscription lets hear of a change, and the number of that."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """What one stream gets, in the order of the changes."""

    own: OwnStream
    seen: int
    """Its row is at this number, or at one since which nothing was of interest to it."""
    last: int
    """The number to which its row moves."""
    messages: Sequence[Numbered]


def refresh(own: Iterable[OwnStream]) -> None:
    """Begin anew where a connection delivers that did not before: others have, meanwhile."""
    begun = {each.reader.stream: each for each in own if each.epoch != each.reader.epoch}
    if not begun:
        return
    rows = _streams().filter(pk__in=list(begun))
    for stream, seen in rows.values_list("pk", "changes_seen"):
        begun[stream].epoch, begun[stream].seen = begun[stream].reader.epoch, seen


def fold(own: Sequence[OwnStream], news: Mapping[str, News]) -> int:
    """Queue what concerns each stream; return how many streams have got something.

    About as many as :data:`AT_ONCE`, since others wait for this thread too; the rest is still to be
    found by the next look.
    """
    # In one order for all processes, which lock the rows as they come.
    own = sorted((each for each in own if each.server in news), key=lambda each: each.reader.stream)
    found = _found(own, news)
    for each in own:
        if not found[each]:
            each.see(news[each.server].last)
    rest = [each for each in own if found[each]]
    queued = 0
    while rest and queued < AT_ONCE:
        part, rest = rest[:AT_ONCE], rest[AT_ONCE:]
        shown = _show([_fold(each, each.seen, found[each], news) for each in part])
        behind = {each: found[each] for each in part if each not in shown}
        queued += len(shown) + _queue(list(_folds(behind, news)))
    return queued


def _found(own: Sequence[OwnStream], news: Mapping[str, News]) -> dict[OwnStream, list[Numbered]]:
    found: dict[OwnStream, list[Numbered]] = defaultdict(list)
    for each in own:
        for kind in each.lists:
            number = news[each.server].changed.get(Key(kind), 0)
            if number > each.seen:
                found[each].append((number, _LIST_CHANGED[kind]))
    for server in {each.server for each in own}:
        mine = [each for each in own if each.server == server]
        for each, number, row in _readable(list(_updated(mine, news[server]))):
            found[each].append((number, _body(Topic(Kind.RESOURCE, row.uri))))
    return found


def _readable(updates: Sequence[_Update]) -> Iterator[_Update]:
    """Yield what may still be read by who is to be told of it, and end the other subscriptions."""
    asked = [own.principal for own, *_ in updates if own.may_read and own.principal]
    users = users_of(asked) if asked else {}
    lost: list[int] = []
    for own, number, row in updates:
        if own.may_read is None or own.principal is None:
            yield own, number, row
            continue
        user = users.get(own.principal.user.pk) if is_ours(own.principal) else own.principal.user
        try:
            if user is not None and own.may_read(row.uri, user):
                yield own, number, row
            else:
                lost.append(row.pk)
        except Exception as error:
            # He is not told of this change; the next is another chance to find out.
            if is_outage(error):
                raise
            logger.exception("Whether a subscriber may read a resource could not be found out")
    subscription_rows.end(lost)


def _updated(own: Sequence[OwnStream], news: News) -> Iterator[_Update]:
    """Yield what has changed of what the sessions of one server are subscribed to."""
    by_session: dict[str, list[OwnStream]] = defaultdict(list)
    for each in own:
        by_session[each.session].append(each)
    digests = [key.digest for key in news.changed if key.digest]
    for row in subscription_rows.of_sessions(by_session, digests):
        number = news.changed[Key(Kind.RESOURCE, row.uri_digest)]
        for each in by_session[str(row.session_id)]:
            if number > max(each.seen, row.changes_seen):
                yield each, number, row


def _show(folds: Sequence[_Fold]) -> set[OwnStream]:
    """Write to streams of which all is shown, and show that, too; return those."""
    folds = [fold for fold in folds if fold.own.initialized]
    if not folds:
        return set()
    with transaction.atomic(using=alias()):
        # Each is asked once more: what is noted as delivered to who has gone is lost on him.
        done = [fold for fold in folds if fold.own.ready and _advance_shown(fold)]
        written = _write({fold: fold.own.reader.cursor + 1 for fold in done})
    for fold in done:
        fold.own.see(fold.last)
        fold.own.reader.show(written[fold])
    return {fold.own for fold in done}


def _folds(behind: Mapping[OwnStream, list[Numbered]], news: Mapping[str, News]) -> Iterable[_Fold]:
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
            each.see(news[each.server].last)
        elif row.session.state == Session.State.READY:
            # 2025-11-25, basic/lifecycle, "Initialization": before notifications/initialized a
            # server sends pings and logs alone.
            each.initialized = True
            yield _fold(each, seen, newer, news)


def _fold(
    own: OwnStream, seen: int, numbered: Sequence[Numbered], news: Mapping[str, News]
) -> _Fold:
    last, messages = news[own.server].last, sorted(numbered)
    fitting = messages[: get_settings().queue_messages]
    return _Fold(own, seen, last if len(fitting) == len(messages) else fitting[-1][0], fitting)


def _queue(folds: Sequence[_Fold]) -> int:
    """Write to several streams, to be read in their turn; return to how many."""
    if not folds:
        return 0
    with transaction.atomic(using=alias()):
        written = _write(_places([fold for fold in folds if _advance(fold)]))
    for fold in written:
        fold.own.see(fold.last)
    return len(written)


def _write(places: Mapping[_Fold, int]) -> dict[_Fold, list[Message]]:
    """Write what streams get, each from a number on that has been taken for it."""
    written = {fold: _messages(fold, first) for fold, first in places.items()}
    OutgoingMessage.objects.using(alias()).bulk_create(
        OutgoingMessage(
            stream_id=fold.own.reader.stream,
            seq=message.seq,
            kind=message.kind,
            body=message.body,
        )
        for fold, messages in written.items()
        for message in messages
    )
    return written


def _messages(fold: _Fold, first: int) -> list[Message]:
    return [
        Message(first + index, OutgoingMessage.Kind.NOTIFICATION, body)
        for index, (_, body) in enumerate(fold.messages)
    ]


def _advance_shown(fold: _Fold) -> bool:
    """Take numbers on a stream of which all is shown, and note them as delivered at once."""
    reader, count = fold.own.reader, len(fold.messages)
    rows = _unfolded(fold).filter(next_seq=reader.cursor + 1)
    return bool(
        rows.update(
            next_seq=reader.cursor + 1 + count,
            delivered=reader.cursor + count,
            changes_seen=fold.last,
        )
    )


def _advance(fold: _Fold) -> bool:
    """Take numbers on a stream of which something is still to be read.

    What a full stream has no room for waits on in the rows of the changes.
    """
    count, room = len(fold.messages), get_settings().queue_messages
    rows = _unfolded(fold).filter(next_seq__lte=F("delivered") + 1 + room - count)
    return bool(rows.update(next_seq=F("next_seq") + count, changes_seen=fold.last))


def _unfolded(fold: _Fold) -> QuerySet[Stream]:
    """Return the stream's row, unless somebody else has folded, or delivers."""
    reader = fold.own.reader
    return _streams().filter(
        pk=reader.stream, epoch=reader.epoch, changes_seen__lte=fold.seen, closed=None
    )


def _places(folds: Sequence[_Fold]) -> dict[_Fold, int]:
    """Return the first of the numbers that each fold has taken."""
    if not folds:
        return {}
    rows = _streams().filter(pk__in=[fold.own.reader.stream for fold in folds])
    following = dict(rows.values_list("pk", "next_seq"))
    return {fold: following[fold.own.reader.stream] - len(fold.messages) for fold in folds}


def _streams() -> QuerySet[Stream]:
    return Stream.objects.using(alias())


def _body(topic: Topic) -> str:
    return encode(notification(topic.notification())).decode()


def list_changes(lists: Iterable[Kind]) -> list[str]:
    """Return the messages that say that lists have changed."""
    return [_LIST_CHANGED[kind] for kind in sorted(lists)]


_LIST_CHANGED: Final = {kind: _body(Topic(kind)) for kind in LISTS}
