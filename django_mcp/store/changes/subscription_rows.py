"""Who is notified when a resource changes: sessions, and requests that listen, as rows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from ...conf import get_settings
from ...models import ChangeCounter, Subscription
from ...protocol.errors import SessionNotFound
from ...protocol.lifecycle import SessionInfo
from ...protocol.topics import Topic, too_many_subscriptions
from ..database import alias, in_batches, reporting_outages, with_retries
from ..parent_rows import lock_live_sessions
from .change_log import key_of


def subscribe(server: str, session: SessionInfo, resource: Topic) -> None:
    """Tell a session from now on when a resource changes; once is as good as twice.

    Raises :class:`SessionNotFound` if it has ended, and an error if it has too many already.
    """
    with reporting_outages():
        with_retries(lambda: _subscribe(server, session, resource))


def unsubscribe(session: SessionInfo, resource: Topic) -> None:
    """Tell a session no more of a resource."""
    with reporting_outages():
        _rows().filter(session__pk=session.id, uri_digest=key_of(resource).digest).delete()


def subscription(server: str, resource: Topic, **subscriber: Any) -> Subscription:
    """Return a row that is still to be saved; ``subscriber`` names a session or a request."""
    return Subscription(
        server=server,
        uri=resource.uri,
        uri_digest=key_of(resource).digest,
        **subscriber,
    )


def of_sessions(sessions: Iterable[str], digests: Sequence[str]) -> Iterable[Subscription]:
    """Yield the subscriptions of some sessions to any of some resources."""
    keys = [uuid.UUID(session) for session in sessions]
    for batch in in_batches(digests):
        yield from _rows().filter(session__in=keys, uri_digest__in=batch)


def end(subscriptions: Sequence[int]) -> None:
    """Remove the subscriptions with these keys."""
    for batch in in_batches(subscriptions):
        _rows().filter(pk__in=batch).delete()


def _subscribe(server: str, session: SessionInfo, resource: Topic) -> None:
    with transaction.atomic(using=alias()):
        # The session's row stays locked, so that no two of its subscriptions pass the cap.
        if not lock_live_sessions([session.id]):
            raise SessionNotFound
        mine = _rows().filter(session__pk=session.id)
        if mine.filter(uri_digest=key_of(resource).digest).exists():
            return
        cap = get_settings().max_subscriptions
        if mine.count() >= cap:
            raise too_many_subscriptions(cap)
        seen = ChangeCounter.last(server)
        row = subscription(server, resource, session_id=session.id, changes_seen=seen)
        row.save(force_insert=True, using=alias())


def _rows() -> QuerySet[Subscription]:
    return Subscription.objects.using(alias())
