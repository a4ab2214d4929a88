"""Sessions: open, find, touch, end. The only code that reads or writes their rows."""

from __future__ import annotations

import hashlib
import secrets
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from ..clock import DatabaseNow
from ..conf import get_settings
from ..models import PendingRequest, Session
from ..protocol.errors import SessionNotFound, Unavailable
from ..protocol.lifecycle import Sender
from ..protocol.versions import BY_NAME, Revision
from ..server.ports import Principal, SessionInfo
from .changes import last_number
from .database import alias, available, insist

LIVE = (Session.State.OPENED, Session.State.READY)
EVICTED_AT_ONCE = 50
"""Most sessions that one ``initialize`` ends to make room."""


def digest(secret: str) -> str:
    """Return what is stored of an ``Mcp-Session-Id``."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def live_sessions() -> QuerySet[Session]:
    """Return the sessions that have neither ended nor expired.

    One that is busy never expires, whatever its age.
    """
    return _unended().filter(_fresh() | _busy())


def expired_sessions() -> QuerySet[Session]:
    """Return the sessions that nobody has ended and nobody can use any more."""
    return _unended().filter(~(_fresh() | _busy()))


def end_sessions(sessions: QuerySet[Session]) -> int:
    """End those of ``sessions`` that are live; return how many that were."""
    with available():
        return sessions.filter(state__in=LIVE).update(
            state=Session.State.ENDED, ended=DatabaseNow()
        )


def is_ready(session: SessionInfo) -> bool:
    """Return whether the client has sent ``notifications/initialized``, to whatever worker."""
    rows = Session.objects.using(alias()).filter(pk=session.id, state=Session.State.READY)
    with available():
        return rows.exists()


def note_use(requests: Mapping[str, int]) -> None:
    """Note that sessions have been used, each by so many requests."""
    by_number: dict[int, list[str]] = defaultdict(list)
    for session, number in requests.items():
        by_number[number].append(session)
    for number, used in by_number.items():
        living = Session.objects.using(alias()).filter(pk__in=used, state__in=LIVE)
        living.update(last_active=DatabaseNow(), request_count=F("request_count") + number)


@dataclass(frozen=True, slots=True)
class SessionStore:
    """The sessions of one server. Implements :class:`django_mcp.server.ports.Sessions`."""

    server: str

    def find(self, secret: str, principal: Principal) -> SessionInfo:
        """Return the live session that ``secret`` names, if it is the principal's own.

        Unknown, expired, ended and foreign sessions are told apart by nobody.
        """
        with available():
            session = self._owned(principal).filter(key_digest=digest(secret)).first()
        if session is None:
            raise SessionNotFound
        return _info(session)

    def touch(self, info: SessionInfo) -> None:
        """Note that the session has been used; raises if it has ended in the meantime."""
        self._update(info, last_active=DatabaseNow(), request_count=F("request_count") + 1)

    def open(
        self, principal: Principal, revision: Revision, sender: Sender
    ) -> tuple[SessionInfo, str]:
        """Open a session, ending the longest idle ones where a cap has been reached."""
        info = sender.info or {}
        secret = secrets.token_urlsafe(32)
        age = timedelta(seconds=get_settings().session_max_age_seconds)
        with available():
            self._make_room(principal)
            session = Session.objects.using(alias()).create(
                key_digest=digest(secret),
                server=self.server,
                user_id=_user_key(principal),
                client_id=principal.client_id,
                revision=revision.name,
                client_name=str(info.get("name", ""))[:255],
                client_info=info,
                client_capabilities=sender.capabilities,
                expires=DatabaseNow() + age,
                # What changes from now on is told to the client, as soon as it listens.
                changes_seen=last_number(self.server),
            )
        return _info(session), secret

    def mark_initialized(self, session: SessionInfo) -> None:
        """Move the session from opened to ready, unless somebody already did."""
        with available():
            rows = Session.objects.using(alias()).filter(pk=session.id)
            opened = rows.filter(state=Session.State.OPENED)
            # MySQL may come by the index on the state, and meet who has come by the key.
            insist(lambda: opened.update(state=Session.State.READY))

    def set_log_level(self, session: SessionInfo, level: str) -> None:
        """Keep the level that the client asked for."""
        self._update(session, log_level=level)

    def end(self, secret: str, principal: Principal) -> None:
        """End a session at its client's wish; raises if it is not there to be ended."""
        with available():
            mine = Session.objects.using(alias()).filter(pk=self.find(secret, principal).id)
        if not end_sessions(mine):
            raise SessionNotFound

    def _owned(self, principal: Principal) -> QuerySet[Session]:
        return live_sessions().filter(
            server=self.server, user_id=_user_key(principal), client_id=principal.client_id
        )

    def _update(self, info: SessionInfo, **values: Any) -> None:
        with available():
            rows = Session.objects.using(alias()).filter(pk=info.id, state__in=LIVE)
            if not insist(lambda: rows.update(**values)):
                raise SessionNotFound

    def _make_room(self, principal: Principal) -> None:
        settings = get_settings()
        if principal.user_id:
            _evict(self._of_user(principal), settings.max_sessions_per_user)
        # Counting all sessions is not free. Near a large cap one open in so many counts, which
        # lets the number exceed the cap by about a thousandth.
        if secrets.randbelow(1 + settings.max_sessions // 1000) == 0:
            _evict(live_sessions(), settings.max_sessions)

    def _of_user(self, principal: Principal) -> QuerySet[Session]:
        return live_sessions().filter(user_id=_user_key(principal))


def _evict(sessions: QuerySet[Session], cap: int) -> None:
    surplus = sessions.order_by().count() + 1 - cap
    if surplus <= 0:
        return
    idle = sessions.filter(~_busy()).order_by("last_active").values_list("pk", flat=True)
    chosen = list(idle[: min(surplus, EVICTED_AT_ONCE)])
    ended = end_sessions(Session.objects.using(alias()).filter(~_busy(), pk__in=chosen))
    if not ended:
        raise Unavailable("Too many sessions are busy; try again later", retry_after=30)


def _unended() -> QuerySet[Session]:
    return Session.objects.using(alias()).filter(state__in=LIVE)


def _fresh() -> Q:
    idle = timedelta(seconds=get_settings().session_idle_seconds)
    return Q(last_active__gt=DatabaseNow() - idle, expires__gt=DatabaseNow())


def _busy() -> Exists:
    # A lease that has run out is that of a process that died: what it ran protects nothing.
    leased = Q(lease_until=None) | Q(lease_until__gt=DatabaseNow())
    running = PendingRequest.objects.filter(
        leased, session=OuterRef("pk"), state=PendingRequest.State.RUNNING
    )
    return Exists(running)


def _user_key(principal: Principal) -> Any:
    return getattr(principal.user, "pk", None)


def _info(session: Session) -> SessionInfo:
    return SessionInfo(
        id=str(session.pk),
        revision=BY_NAME[session.revision],
        sender=Sender(session.client_info, session.client_capabilities, session.log_level),
        initialized=session.state == Session.State.READY,
        log_level=session.log_level,
    )
