"""Processes of the version before work on beside those of this one, with statements of their own.

It knows of no hour of last use, and notes that in a column which nothing has an index of any more.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection

from django_mcp.clock import DatabaseNow
from django_mcp.models import PendingRequest, Session
from django_mcp.protocol.errors import SessionNotFound
from django_mcp.store.parent_rows import LIVE
from django_mcp.store.sessions import session_rows

from .aging import forget, let_pass, prune
from .visiting import NOBODY, SERVER, Visit

pytestmark = pytest.mark.django_db

COLUMNS = (
    *("id", "key_digest", "server", "user_id", "client_id", "revision", "client_name"),
    *("client_info", "client_capabilities", "log_level", "state", "request_count", "changes_seen"),
    *("created", "last_active", "expires", "ended"),
)
NOW = {
    "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')",
    "postgresql": "STATEMENT_TIMESTAMP()",
    "mysql": "UTC_TIMESTAMP(6)",
}[connection.vendor]


def execute(sql: str, *values: object) -> int:
    """Run a statement; return how many rows it has changed."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.rowcount


class OldVisit:
    """A client's session, at a process of the version before."""

    def __init__(self) -> None:
        self.secret, self.key = str(uuid4()), uuid4()
        given = (self._key, self._digest, SERVER, None, "", "2025-11-25", "old", "{}", "{}")
        values = [*given, "info", "ready", 0, 0]
        later = f"{NOW} + INTERVAL '30' DAY"
        if connection.vendor == "sqlite":
            later = "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', '30 days')"
        places = ", ".join(["%s"] * len(values))
        names = ", ".join(COLUMNS)
        execute(
            f"INSERT INTO django_mcp_session ({names}) "
            f"VALUES ({places}, {NOW}, {NOW}, {later}, NULL)",
            *values,
        )

    @property
    def _key(self) -> str:
        return str(self.key) if connection.features.has_native_uuid_field else self.key.hex

    @property
    def _digest(self) -> str:
        return hashlib.sha256(self.secret.encode()).hexdigest()

    @property
    def row(self) -> Session:
        return Session.objects.get(pk=self.key)

    def use(self) -> int:
        """Note a request, or lock the session to add something below it."""
        return execute(
            f"UPDATE django_mcp_session SET last_active = {NOW}, request_count = request_count + 1 "
            "WHERE state IN (%s, %s) AND id IN (%s)",
            *LIVE,
            self._key,
        )

    def end(self) -> int:
        return execute(
            f"UPDATE django_mcp_session SET state = %s, ended = {NOW} "
            "WHERE id = %s AND state IN (%s, %s)",
            "ended",
            self._key,
            *LIVE,
        )


def test_its_sessions_are_found_and_used_by_both():
    old = OldVisit()
    found = session_rows.find_session(SERVER, old.secret, NOBODY)
    assert old.row.used_hour == 0
    assert old.use() == 1
    session_rows.touch_session(found)
    assert old.use() == 1
    assert old.row.request_count == 3
    assert old.row.used_hour > 0
    assert old.end() == 1
    with pytest.raises(SessionNotFound):
        session_rows.find_session(SERVER, old.secret, NOBODY)


def test_the_last_use_decides_when_they_expire():
    """Whatever the hour says, which it does not write."""
    old, new = OldVisit(), Visit()
    let_pass(hours=23)
    assert prune() == {}
    old.use()
    let_pass(hours=2)
    assert prune() == {"expired sessions, which end": 1}
    assert (old.row.state in LIVE, new.row.state in LIVE) == (True, False)
    let_pass(hours=23)
    assert forget("expired sessions, which end") == 1
    assert old.row.state not in LIVE


def test_a_session_of_this_version_that_the_other_has_used_since_does_not_expire():
    visit = Visit()
    let_pass(hours=23)
    old = OldVisit()
    old.key = visit.row.pk
    old.use()
    let_pass(hours=2)
    assert prune() == {}
    assert visit.row.state in LIVE


def test_the_last_use_decides_who_makes_room(settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MAX_SESSIONS": 3, "ANONYMOUS_SESSIONS_SHARE": 1}
    in_use, unused, new = OldVisit(), Visit(), Visit()
    Session.objects.filter(pk=unused.row.pk).update(last_active=DatabaseNow() - timedelta(hours=3))
    in_use.use()
    Visit()
    living = [each.row.state in LIVE for each in (in_use, unused, new)]
    assert living == [True, False, True]


def test_what_it_has_ended_and_cancelled_goes():
    old = OldVisit()
    PendingRequest.objects.create(
        session_id=old.key,
        server=SERVER,
        request_id="1",
        method="notifications/cancelled",
        state="cancelled",
        ended=DatabaseNow(),
    )
    old.end()
    let_pass(days=8)
    assert prune() == {"requests": 1, "ended sessions": 1}
