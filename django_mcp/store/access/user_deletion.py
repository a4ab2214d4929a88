"""Users who are deleted: whatever they have here goes with them, though their clients write.

Django collects what refers to a user, then deletes what it has collected. A client that writes in
between leaves rows which it knows nothing of, so that the deletion would fail. Therefore all that
the user has is locked before, and goes, with what has been written by then; whoever writes waits,
and finds that it has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.db.models.signals import pre_delete

from ...models import OutgoingMessage, PendingRequest, Session, Stream, Subscription
from ...signals import senders
from ..database import alias, in_batches
from ..sessions.session_cache import forget_rows


def watch_users() -> None:
    """Delete from now on what users have before they are, in the admin or anywhere else."""
    for sender in senders(get_user_model()):
        pre_delete.connect(_leave, sender=sender, dispatch_uid="django_mcp")


def _leave(instance: Model, **rest: Any) -> None:
    user = instance.pk
    sessions = _rows(Session).filter(user=user)
    with transaction.atomic(using=alias()):
        _lock_living(user, _keys(sessions))
        # After what refers to it, as writers do, who lock it when they insert.
        _locked_keys(_users().filter(pk=user))
        # From here on nobody can begin anything for the user, but they could until now.
        all_sessions = _locked_keys(sessions)
        forget_rows(sessions)
        _forget_requests(Q(user=user))
        for batch in in_batches(all_sessions):
            _forget_sessions(batch)


def _lock_living(user: Any, sessions: Sequence[Any]) -> None:
    # By key, and in the order in which writers lock them.
    for batch in in_batches(sessions):
        _locked_keys(_rows(Session).filter(pk__in=batch))
    running = _rows(PendingRequest).filter(user=user, state=PendingRequest.State.RUNNING)
    for batch in in_batches(_keys(running)):
        _locked_keys(_rows(PendingRequest).filter(pk__in=batch))
    for batch in in_batches(sessions):
        _locked_keys(_rows(Stream).filter(session__in=batch, closed=None))


def _forget_sessions(sessions: Sequence[Any]) -> None:
    _forget_requests(Q(session__in=sessions))
    _forget(Subscription, session__in=sessions)
    for streams in in_batches(_locked_keys(_rows(Stream).filter(session__in=sessions))):
        _forget(OutgoingMessage, stream__in=streams)
        _forget(Stream, pk__in=streams)
    _forget(Session, pk__in=sessions)


def _forget_requests(which: Q) -> None:
    rows = _rows(PendingRequest).filter(which)
    # Questions before the calls that asked them.
    for requests in (rows.exclude(parent=None), rows.filter(parent=None)):
        for batch in in_batches(_locked_keys(requests)):
            _forget(Subscription, request__in=batch)
            _forget(PendingRequest, pk__in=batch)


def _forget(model: type[Model], **which: Any) -> None:
    # Not delete(), which would look for what refers to the rows.
    _rows(model).filter(**which)._raw_delete(alias())


def _locked_keys(rows: QuerySet[Any]) -> list[Any]:
    # Read as they are now, also where the site has chosen REPEATABLE READ. SQLite locks no rows:
    # there nobody else writes while this does.
    # In one order for all who lock several: PostgreSQL would take them as they lie.
    return _keys(rows.order_by("pk").select_for_update())


def _keys(rows: QuerySet[Any]) -> list[Any]:
    return list(rows.values_list("pk", flat=True))


def _rows(model: type[Model]) -> QuerySet[Any]:
    return model._default_manager.using(alias())


def _users() -> QuerySet[Any]:
    return get_user_model()._base_manager.using(alias())
