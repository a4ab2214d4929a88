"""Recovery: an end for the requests that a process left behind when it died.

Any process that is awake does it, for any other. Nothing is run a second time. A client in a
session is told that the outcome is unknown, on the stream on which it waits or to which it comes
back; one without a session has seen its connection break.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.db import transaction
from django.db.models import F, Q, QuerySet

from ...clock import DatabaseNow
from ...models import OutgoingMessage, PendingRequest, Stream
from ...protocol.errors import taken_for_dead
from ...protocol.messages import encode, error_response
from ..database import alias, with_retries
from ..delivery.request_rows import (
    LISTEN,
    LOOKS_PER_LEASE,
    RENEWALS_PER_LEASE,
    Direction,
    State,
    end_questions,
    lease_seconds,
)
from .listening import end_listening

logger = logging.getLogger("django_mcp.store")

PAGE: Final = 100
"""Most streams that are ended at once."""


class Heartbeat:
    """How long this process's own bookkeeping has succeeded without a break.

    After an outage of the database longer than a lease, all leases have run out although their
    processes live. Who has not been able to renew its own cannot tell the dead from the living.
    """

    def __init__(self) -> None:
        self._since = self._last = float("-inf")

    def beat(self) -> None:
        """Note that the bookkeeping has succeeded."""
        now = time.monotonic()
        if now - self._last > lease_seconds() / RENEWALS_PER_LEASE:
            self._since = now
        self._last = now

    @property
    def is_trusted(self) -> bool:
        """Whether it has succeeded for as long as a lease lasts."""
        return self._last - self._since >= lease_seconds()


class Recovery:
    """What one process does about the requests of the dead. Called by the ledger's thread."""

    def __init__(self) -> None:
        self._heartbeat = Heartbeat()
        self._looked = float("-inf")
        self._due = False
        self._waiting = False

    def __bool__(self) -> bool:
        """Whether there is, or may be, something to end as soon as this process may."""
        return self._due or self._waiting

    def note_activity(self) -> None:
        """Let this process look, for the database is in use. From any thread."""
        self._due = True

    def tick(self) -> list[str]:
        """End what is due; return the channels of those who show its streams."""
        if not self or time.monotonic() - self._looked < lease_seconds() / LOOKS_PER_LEASE:
            return []
        self._looked, self._due = time.monotonic(), False
        self._waiting = _requests().filter(_expired()).exists()
        self._heartbeat.beat()
        if not (self._waiting and self._heartbeat.is_trusted):
            return []
        return end_abandoned()


@dataclass(frozen=True, slots=True)
class _Abandoned:
    """Requests of one owner on one stream; or one request without a stream."""

    requests: tuple[uuid.UUID, ...]
    owner: str
    stream: uuid.UUID | None


def end_abandoned(since: timedelta = timedelta()) -> list[str]:
    """End requests whose leases ran out so long ago; return the channels of those who show them.

    The lease alone says whose process is dead, so call it only where it can be trusted.
    """
    expired = _expired(since)
    readers = []
    for each in _find(expired):
        reader = with_retries(partial(_end_requests, each, expired))
        readers += [reader] if reader else []
    _end_questions(expired)
    return readers


def _find(expired: Q) -> Iterable[_Abandoned]:
    rows = _requests().filter(expired, direction=Direction.FROM_CLIENT).order_by("lease_until")
    on_streams: dict[tuple[str, uuid.UUID], list[uuid.UUID]] = {}
    found: Any = rows.values_list("pk", "owner", "stream_id")[:PAGE]
    for key, owner, stream in found:
        if stream is None:
            yield _Abandoned((key,), owner, None)
        else:
            on_streams.setdefault((owner, stream), []).append(key)
    for (owner, stream), keys in on_streams.items():
        yield _Abandoned(tuple(keys), owner, stream)


def _end_questions(expired: Q) -> None:
    """End questions whose calls have ended without them."""
    rows = _requests().filter(expired, direction=Direction.TO_CLIENT)
    rows = rows.exclude(parent__state=State.RUNNING)
    keys = list(rows.values_list("pk", flat=True)[:PAGE])
    _requests().filter(expired, pk__in=keys).update(state=State.CANCELLED, ended=DatabaseNow())


def _end_requests(abandoned: _Abandoned, expired: Q) -> str | None:
    with transaction.atomic(using=alias()):
        ended = [key for key in abandoned.requests if _end(key, expired)]
        if not ended:
            return None  # its owner lives after all, or somebody else was faster
        if abandoned.stream is not None:
            # A batch: what its owner began later has a younger lease, and the same fate.
            living = Q(state=State.RUNNING, direction=Direction.FROM_CLIENT, owner=abandoned.owner)
            others = _requests().filter(living, stream=abandoned.stream)
            ended += [key for key in others.values_list("pk", flat=True) if _end(key, living)]
        end_questions(ended)
        rows = _requests().filter(pk__in=ended).order_by("pk")
        facts = list(rows.values_list("pk", "request_id", "method", "server"))
        for key, _, method, _ in facts:
            if method == LISTEN:
                end_listening(key)
        reader = None
        if abandoned.stream is not None:
            reader = _close(abandoned.stream, [text for _, text, _, _ in facts])
    for _, text, method, server in facts:
        logger.warning("%s: %s %s ended with its process", server, method, text)
    return reader


def _end(request: uuid.UUID, condition: Q) -> bool:
    rows = _requests().filter(condition, pk=request)
    return bool(rows.update(state=State.FAILED, ended=DatabaseNow()))


def _close(stream: uuid.UUID, request_ids: list[str]) -> str | None:
    """Let a stream end with an error for each request; return the channel of its reader."""
    streams = Stream.objects.using(alias()).filter(pk=stream)
    # Its owner counts in memory. Whoever is first has the number; a late message of the owner's
    # finds it taken, or the stream closed.
    opened = streams.filter(closed=None)
    if not opened.update(next_seq=F("next_seq") + len(request_ids), closed=DatabaseNow()):
        return None
    following, reader = streams.values_list("next_seq", "reader").get()
    error = taken_for_dead()
    OutgoingMessage.objects.using(alias()).bulk_create(
        OutgoingMessage(
            stream_id=stream,
            seq=following - len(request_ids) + index,
            kind=OutgoingMessage.Kind.RESPONSE,
            body=encode(error_response(json.loads(text), error)).decode(),
        )
        for index, text in enumerate(request_ids)
    )
    return str(reader)


def _expired(since: timedelta = timedelta()) -> Q:
    return Q(state=State.RUNNING, lease_until__lt=DatabaseNow() - since)


def _requests() -> QuerySet[PendingRequest]:
    return PendingRequest.objects.using(alias())
