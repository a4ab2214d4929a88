"""Sessions: open, find, touch, end."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F, QuerySet
from django.views.decorators.debug import sensitive_variables

from ...auth import Principal
from ...clock import DatabaseHour, DatabaseNow
from ...conf import get_settings
from ...models import ChangeCounter, Session
from ...protocol.errors import SessionNotFound, Unavailable
from ...protocol.lifecycle import Sender, SessionInfo
from ...protocol.versions import Revision
from ..database import alias, reporting_outages, with_retries
from ..parent_rows import LIVE, lock_live_sessions, refusing_deleted_user
from . import session_cache
from .ended import note_ended
from .ended import watchers as ended_watchers
from .finding import digest, read_sessions, session_info, text_of
from .liveness import expired_sessions, has_running_calls, idle_sessions, live_sessions
from .session_cache import CachedSession, forget_rows

EVICTED_AT_ONCE: Final = 50
"""Most sessions that one ``initialize`` ends to make room."""
CANDIDATE_SESSIONS: Final = 2 * EVICTED_AT_ONCE
"""Of so many, those first whose hour of last use is the oldest, the longest idle ones are ended."""
ATTEMPTS: Final = 3
"""How often it looks for such that nobody uses or ends in the same moment."""


def end_expired(keys: Sequence[Any]) -> int:
    """End those of the sessions with these keys that have expired; return how many that were."""
    return len(_end_those(keys, expired_sessions))


def end_sessions(sessions: QuerySet[Session]) -> int:
    """End those of ``sessions`` that are live; return how many that were."""
    live = sessions.filter(state__in=LIVE)
    with reporting_outages():
        keys = list(live.values_list("pk", flat=True)) if ended_watchers else []
        ended = with_retries(lambda: live.update(**_ending()))
        # Also if there was none: an attempt before may have ended it, and its answer was lost.
        forget_rows(sessions)
    if ended:
        note_ended(keys)
    return ended


def is_ready(session: SessionInfo) -> bool:
    """Return whether the client has sent ``notifications/initialized``, to whatever worker."""
    rows = Session.objects.using(alias()).filter(pk=session.id, state=Session.State.READY)
    with reporting_outages():
        return with_retries(rows.exists)


@sensitive_variables("secret")
def find_session(server: str, secret: str, principal: Principal) -> SessionInfo:
    """Return the live session that ``secret`` names, if it is the principal's own.

    Unknown, expired, ended and foreign sessions are told apart by nobody.
    """
    key = digest(secret)
    return check_owner(server, read_sessions([key]).get(key), principal)


def recall_session(server: str, secret: str, principal: Principal) -> SessionInfo | None:
    """Return what :func:`find_session` would, if this process remembers it.

    Asks nobody, so that an event loop may.
    """
    cache = session_cache.process_memory()
    found = None if cache is None else cache.get(digest(secret))
    return None if found is None else check_owner(server, found, principal)


def check_owner(server: str, found: CachedSession | None, principal: Principal) -> SessionInfo:
    """Return a session that was found, if it was and is the principal's own."""
    user = text_of(_user_key(principal)) if principal.user_id else ""
    if found is None or found.owner != (server, user, principal.client_id):
        raise SessionNotFound
    return found.info


def touch_session(info: SessionInfo) -> None:
    """Note that the session has been used; raises if it has ended in the meantime."""
    number = F("request_count") + 1
    _update(info, last_active=DatabaseNow(), used_hour=DatabaseHour(), request_count=number)


def open_session(
    server: str, principal: Principal, revision: Revision, sender: Sender
) -> tuple[SessionInfo, str]:
    """Open a session, ending the longest idle ones where a cap has been reached: those of the
    same caller first, and of the anonymous only for the anonymous.

    Raises if the user has been deleted in the meantime.
    """
    info = sender.info or {}
    secret = secrets.token_urlsafe(32)
    age = timedelta(seconds=get_settings().session_max_age_seconds)
    session = Session(
        key_digest=digest(secret),
        server=server,
        user_id=_user_key(principal),
        client_id=principal.client_id,
        revision=revision.name,
        client_name=str(info.get("name", ""))[:255],
        client_info=info,
        client_capabilities=sender.capabilities,
        expires=DatabaseNow() + age,
    )
    with reporting_outages(), refusing_deleted_user(principal):
        with_retries(lambda: _make_room(principal))
        # The client is notified of what changes from now on, as soon as it listens.
        session.changes_seen = ChangeCounter.last(server)
        session.save(using=alias(), force_insert=True)
    said = (session.client_info, session.client_capabilities)
    opened = session_info(session.pk, revision.name, *said, session.log_level, session.state)
    return opened, secret


def mark_initialized(session: SessionInfo) -> None:
    """Move the session from opened to ready, unless somebody already did."""
    with reporting_outages():
        rows = Session.objects.using(alias()).filter(pk=session.id)
        opened = rows.filter(state=Session.State.OPENED)
        # MySQL may come by the index on the state, and meet who has come by the key.
        with_retries(lambda: opened.update(state=Session.State.READY))


def set_log_level(session: SessionInfo, level: str) -> None:
    """Keep the level that the client asked for."""
    _update(session, log_level=level)
    with reporting_outages():
        forget_rows(Session.objects.using(alias()).filter(pk=session.id))


def end_session(server: str, key: str, principal: Principal) -> None:
    """End the session with the digest ``key`` at its client's wish; raises if there is none."""
    with reporting_outages():
        found = check_owner(server, read_sessions([key]).get(key), principal)
        mine = Session.objects.using(alias()).filter(pk=found.id)
    if not end_sessions(mine):
        raise SessionNotFound


def _update(info: SessionInfo, **values: Any) -> None:
    with reporting_outages():
        rows = Session.objects.using(alias()).filter(pk=info.id, state__in=LIVE)
        if not with_retries(lambda: rows.update(**values)):
            raise SessionNotFound


def _make_room(principal: Principal) -> None:
    settings, anonymous = get_settings(), _anonymous_sessions()
    if principal.is_anonymous:
        share = max(1, int(settings.max_sessions * settings.anonymous_sessions_share))
        groups = [anonymous]
        if _is_counted(share):
            _make_room_in(anonymous, share, groups)
    else:
        own = _sessions_of(principal)
        _make_room_in(own, settings.max_sessions_per_user, [own])
        # The last resort is for whoever has no session yet: each caller gets at one of those
        # that are of no use to anybody, and at no more.
        groups = [own, anonymous, live_sessions()]
    if _is_counted(settings.max_sessions):
        _make_room_in(live_sessions(), settings.max_sessions, groups)


def _is_counted(cap: int) -> bool:
    """Return whether to count this time: near a large cap one open in so many does.

    Counting many sessions is not free. So their number may exceed the cap by about a thousandth.
    """
    return secrets.randbelow(1 + cap // 1000) == 0


def _make_room_in(
    counted: QuerySet[Session], cap: int, groups: Sequence[QuerySet[Session]]
) -> None:
    """End idle sessions where ``counted`` has no room for one more: of the first group with any."""
    for _ in range(ATTEMPTS):
        surplus = counted.order_by().count() + 1 - cap
        if surplus <= 0:
            return
        chosen = _longest_idle(groups, min(surplus, EVICTED_AT_ONCE))
        if not chosen:
            break
        if _end_idle(chosen):
            return
        # They are in use by now, or somebody else has ended them to make room.
    raise Unavailable("Too many sessions are busy; try again later", retry_after=30)


def _longest_idle(groups: Sequence[QuerySet[Session]], number: int) -> dict[Any, datetime]:
    """Return the keys of so many sessions, of the first group with any, and when each was used."""
    for group in groups:
        idle = group.filter(~has_running_calls()).order_by("used_hour", "last_active")
        found = dict(idle.values_list("pk", "last_active")[:CANDIDATE_SESSIONS])
        if found:
            return dict(sorted(found.items(), key=lambda item: item[1])[:number])
    return {}


def _end_idle(chosen: Mapping[Any, datetime]) -> int:
    latest = max(chosen.values())
    ended = _end_those(list(chosen), lambda: idle_sessions().filter(last_active__lte=latest))
    forget_rows(Session.objects.using(alias()).filter(pk__in=ended))
    return len(ended)


def _end_those(keys: Sequence[Any], still: Callable[[], QuerySet[Session]]) -> list[Any]:
    """End those of the sessions with these keys that are ``still`` found once they are locked."""
    if not keys:
        return []
    with transaction.atomic(using=alias()):
        # Locked first, then asked, in the next statement: whoever registers a call meanwhile waits
        # for this, or is seen. In one statement the lock would be waited for with the answer at
        # hand: on PostgreSQL a condition on other tables is not looked at again.
        lock_live_sessions(keys)
        found = list(still().filter(pk__in=keys).values_list("pk", flat=True))
        Session.objects.using(alias()).filter(pk__in=found).update(**_ending())
    note_ended(found)
    return found


def _ending() -> dict[str, Any]:
    """Return what a session's row is when it has ended: nobody asks what its client said."""
    said: dict[str, Any] = {"client_info": {}, "client_capabilities": {}}
    return {"state": Session.State.ENDED, "ended": DatabaseNow(), **said}


def _sessions_of(principal: Principal) -> QuerySet[Session]:
    """Return the live sessions of a user, whichever the client; without a user, of a client."""
    key = _user_key(principal)
    if key is None:
        return live_sessions().filter(user=None, client_id=principal.client_id)
    return live_sessions().filter(user_id=key)


def _anonymous_sessions() -> QuerySet[Session]:
    return live_sessions().filter(user=None, client_id="")


def _user_key(principal: Principal) -> Any:
    # As rows have it: whoever makes a user of a token's claims may have its key as text.
    return Session._meta.get_field("user").to_python(getattr(principal.user, "pk", None))
