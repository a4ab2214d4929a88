"""What has changed: one row per list or resource, however often it does.

Each change takes a number from its server's counter, whose row stays locked until the change is
committed: numbers become visible in their order, so that whoever reads on from one misses nothing.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Final

from django.db import connections, transaction
from django.db.models import F, Q, QuerySet

from ...models import Change, ChangeCounter, Subscription
from ...protocol.topics import Topic, TopicKind
from ...protocol.uri_template import canonical
from ..database import alias, in_batches

PAGE: Final = 1000
"""Most changes that are read at once."""


@dataclass(frozen=True, slots=True)
class TopicKey:
    """A topic as rows name it: whichever way a URI is spelled, its digest is one."""

    kind: str
    digest: str = ""


@dataclass(slots=True)
class ChangesSince:
    """What has changed of one server since a number."""

    last: int = 0
    """The number up to which all is known."""
    changed: dict[TopicKey, int] = field(default_factory=dict)
    """What has changed, with the number of its last change."""


def key_of(topic: Topic) -> TopicKey:
    """Return how rows name a topic."""
    if topic.kind is not TopicKind.RESOURCE:
        return TopicKey(topic.kind)
    uri = canonical(topic.name or topic.uri).encode("utf-8", "surrogatepass")
    return TopicKey(topic.kind, hashlib.sha256(uri).hexdigest())


def write(server: str, topics: Iterable[Topic]) -> bool:
    """Note that topics have changed; return whether there is anybody to be notified.

    In a transaction of its own. A resource that nobody is subscribed to costs one query.
    """
    wanted = _wanted(server, {key_of(topic): topic.uri for topic in topics})
    for batch in in_batches(list(wanted.items())):
        with transaction.atomic(using=alias()):
            _write(server, dict(batch))
    return bool(wanted)


def after(numbers: Mapping[str, int]) -> dict[str, ChangesSince]:
    """Return what has changed of each server after a number, a page of it in all."""
    newer = (Q(server=server, serial__gt=number) for server, number in numbers.items())
    rows = Change.objects.using(alias()).filter(reduce(or_, newer)).order_by("server", "serial")
    found: dict[str, ChangesSince] = defaultdict(ChangesSince)
    for server, kind, uri_digest, serial in rows.values_list(
        "server", "kind", "uri_digest", "serial"
    )[:PAGE]:
        found[server].last = serial
        found[server].changed[TopicKey(kind, uri_digest)] = serial
    return dict(found)


def _wanted(server: str, changed: dict[TopicKey, str]) -> dict[TopicKey, str]:
    """Return what is to be notified: lists always, resources if there are subscribers."""
    digests = [key.digest for key in changed if key.digest]
    subscribed: set[str] = set()
    for batch in in_batches(digests):
        rows = Subscription.objects.using(alias()).filter(server=server, uri_digest__in=batch)
        subscribed.update(rows.values_list("uri_digest", flat=True).distinct()[: len(batch)])
    return {key: uri for key, uri in changed.items() if not key.digest or key.digest in subscribed}


def _write(server: str, changed: dict[TopicKey, str]) -> None:
    first = _take_numbers(server, len(changed))
    rows = [
        Change(
            server=server,
            kind=key.kind,
            uri=uri.replace("\x00", ""),
            uri_digest=key.digest,
            serial=number,
        )
        for number, (key, uri) in enumerate(changed.items(), start=first)
    ]
    # MySQL knows by itself which constraint a row violates, and cannot be told.
    named = connections[alias()].features.supports_update_conflicts_with_target
    Change.objects.using(alias()).bulk_create(
        rows,
        update_conflicts=True,
        update_fields=["serial", "changed"],
        unique_fields=["server", "kind", "uri_digest"] if named else None,
    )


def _take_numbers(server: str, count: int) -> int:
    """Take numbers, and keep the counter's row locked until the transaction ends."""
    counter = _counters().filter(pk=server)
    if not counter.update(serial=F("serial") + count):
        _counters().get_or_create(pk=server)
        counter.update(serial=F("serial") + count)
    last: int = counter.values_list("serial", flat=True).get()
    return last - count + 1


def _counters() -> QuerySet[ChangeCounter]:
    return ChangeCounter.objects.using(alias())
