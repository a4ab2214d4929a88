"""Who wants to hear when a resource changes: sessions, and requests that listen."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from ...clock import DatabaseNow
from ...conf import get_settings
from ...models import ChangeCounter, PendingRequest, Session, Subscription
from ...protocol.errors import SessionNotFound
from ...protocol.lifecycle import SessionInfo
from ...protocol.topics import Topic, too_many_subscriptions
from ..access.user_deletion import refusing_who_left
from ..database import alias, available, insist
from ..delivery.records import Call
from ..delivery.stream_writer import Post
from ..requests.pending import call_row
from ..sessions.liveness import LIVE
from .change_log import in_batches, key_of, last_number

State = PendingRequest.State


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Those of a server's sessions."""

    server: str

    def subscribe(self, session: SessionInfo, resource: Topic) -> None:
        """Tell a session from now on when a resource changes; once is as good as twice."""
        with available():
            insist(lambda: self._subscribe(session, resource))

    def unsubscribe(self, session: SessionInfo, resource: Topic) -> None:
        """Tell a session no more of a resource."""
        with available():
            _rows().filter(session__pk=session.id, uri_digest=key_of(resource).digest).delete()

    def _subscribe(self, session: SessionInfo, resource: Topic) -> None:
        with transaction.atomic(using=alias()):
            # The session's row stays locked, so that no two of its subscriptions pass the cap.
            living = Session.objects.using(alias()).filter(pk=session.id, state__in=LIVE)
            if not living.update(last_active=DatabaseNow()):
                raise SessionNotFound
            mine = _rows().filter(session__pk=session.id)
            if mine.filter(uri_digest=key_of(resource).digest).exists():
                return
            cap = get_settings().max_subscriptions
            if mine.count() >= cap:
                raise too_many_subscriptions(cap)
            seen = last_number(self.server)
            about = _about(self.server, resource)
            mine.create(session_id=session.id, changes_seen=seen, **about)


def of_sessions(sessions: Iterable[str], digests: Sequence[str]) -> Iterable[Subscription]:
    """Yield the subscriptions of some sessions to any of some resources."""
    keys = [uuid.UUID(session) for session in sessions]
    for batch in in_batches(digests):
        yield from _rows().filter(session__in=keys, uri_digest__in=batch)


def end(subscriptions: Sequence[int]) -> None:
    """Remove the subscriptions with these keys."""
    for batch in in_batches(subscriptions):
        _rows().filter(pk__in=batch).delete()


def begin_listening(call: Call, post: Post, resources: Sequence[Topic], **owned: str) -> int:
    """Give a request that listens its rows; return the number of the last change before it.

    Raises if the user has been deleted in the meantime.
    """
    with available(), refusing_who_left(post.principal):
        return insist(lambda: _begin_listening(call, post, resources, **owned))


def _begin_listening(call: Call, post: Post, resources: Sequence[Topic], **owned: str) -> int:
    with transaction.atomic(using=alias()):
        row = call_row(call, post, state=State.RUNNING, **owned)
        row.save(force_insert=True, using=alias())
        _rows().bulk_create(
            Subscription(request_id=call.id, **_about(post.server, each)) for each in resources
        )
        counters = ChangeCounter.objects.using(alias()).filter(pk=post.server)
        return counters.values_list("serial", flat=True).first() or 0


def end_listening(request: uuid.UUID) -> None:
    """Remove the subscriptions of a request that listens no more."""
    _rows().filter(request__pk=request).delete()


def _about(server: str, resource: Topic) -> dict[str, Any]:
    return {
        "server": server,
        "uri": resource.uri,
        "uri_digest": key_of(resource).digest,
    }


def _rows() -> QuerySet[Subscription]:
    return Subscription.objects.using(alias())
