"""What the package asks of a database, over everything that it does.

Transactions that read the past, as MySQL's do by default, hide nothing from those who wait.
Behind PgBouncer each transaction may have another connection, so nothing may outlast one.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.transaction import Atomic

from django_mcp.models import PendingRequest, Session, Stream
from django_mcp.store.cleanup import cleanup_rules
from tests.store.aging import let_pass
from tests.support.client import StatelessClient
from tests.support.waiting import in_thread, until

from . import site, whole_session

LASTING = re.compile(
    r"\b(?:LISTEN|UNLISTEN|NOTIFY|DECLARE|FETCH|PREPARE|DISCARD|GET_LOCK|LOCK TABLES?)\b"
    r"|advisory_lock|CREATE TEMP|^SET\b|set_config"
)
"""What belongs to a connection and outlasts its transaction."""
LOCKING = re.compile(r"^(?:INSERT|UPDATE|DELETE)\b|\bFOR (?:NO KEY )?UPDATE$")
RANGE = re.compile(r"[<>]|\bBETWEEN\b|\bLIKE\b|\bSELECT\b", re.IGNORECASE)
MOST_KEYS = 500
DJANGOS_OWN = ("BEGIN", "SET SESSION TRANSACTION ISOLATION LEVEL", "SET SQL_AUTO_IS_NULL")
"""What Django says when it opens a connection or a transaction."""


class Record:
    """Every statement of this process, on whatever thread, and how each transaction began."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.beginnings: list[str] = []
        self.cursors: list[str] = []
        self._fresh: set[int] = set()

    def entered(self, connection: BaseDatabaseWrapper) -> None:
        if not connection.in_atomic_block:
            self._fresh.add(id(connection))

    def executed(self, connection: BaseDatabaseWrapper, sql: str) -> None:
        if sql.startswith(DJANGOS_OWN):
            return
        self.statements.append(sql)
        if connection.in_atomic_block and id(connection) in self._fresh:
            self._fresh.discard(id(connection))
            self.beginnings.append(sql)


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    own = Record()
    enter, cursor = Atomic.__enter__, BaseDatabaseWrapper._cursor

    def execute(original: Any) -> Any:
        def recorded(wrapper: Any, sql: Any, params: Any = None) -> Any:
            own.executed(wrapper.db, str(sql))
            return original(wrapper, sql, params)

        return recorded

    def entered(atomic: Atomic) -> None:
        own.entered(transaction.get_connection(atomic.using))
        enter(atomic)

    def opened(connection: BaseDatabaseWrapper, name: str | None = None) -> Any:
        own.cursors += [name] if name else []
        return cursor(connection, name)

    for name in ("execute", "executemany"):
        monkeypatch.setattr(CursorWrapper, name, execute(getattr(CursorWrapper, name)))
    monkeypatch.setattr(Atomic, "__enter__", entered)
    monkeypatch.setattr(BaseDatabaseWrapper, "_cursor", opened)
    return own


async def everything(application: Any) -> None:
    """Do all that leaves statements: in a session, without one, and afterwards."""
    await whole_session.tell(application)
    wish = {"toolsListChanged": True, "resourceSubscriptions": ["thing://1"]}
    async with StatelessClient(application).listen(**wish) as listening:
        assert "acknowledged" in (await listening.message())["method"]
        await in_thread(site.server.notify_tools_changed)
        assert "tools/list_changed" in (await listening.message())["method"]
    running = PendingRequest.objects.filter(state="running")
    await until(running.count, 0)
    await in_thread(_clean)
    assert not await in_thread(Session.objects.exists)


def _clean() -> None:
    let_pass(days=8)
    for kind in [*cleanup_rules(), *cleanup_rules()]:
        kind.forget_all(MOST_KEYS)
    assert not Stream.objects.exists()


@pytest.mark.usefixtures("repeatable_read")
def test_whoever_waits_sees_what_others_have_committed(application, on_loop, request):
    """Also where the site wants each request in a transaction, and those to read the past."""
    if connection.vendor != "sqlite":  # where a tool in a transaction is heard when it has ended
        request.getfixturevalue("atomic_requests")
    on_loop(everything(application))


def test_nothing_outlasts_a_transaction(application, on_loop, record):
    on_loop(everything(application))
    assert len(record.statements) > 50
    assert [each for each in record.statements if LASTING.search(each)] == []
    assert record.cursors == []


def test_a_transaction_begins_with_what_it_writes_or_locks(application, on_loop, record):
    """So it reads what was there when it got its lock, whatever the isolation level."""
    on_loop(everything(application))
    assert record.beginnings
    assert [each for each in record.beginnings if not LOCKING.search(each)] == []


def test_rows_are_deleted_by_key_and_not_by_age(application, on_loop, record):
    """A range would lock the gaps between its rows, where others insert."""
    on_loop(everything(application))
    deletions = [each for each in record.statements if each.startswith("DELETE")]
    assert len(deletions) > 5
    for each in deletions:
        _, _, condition = each.partition(" WHERE ")
        assert condition
        assert not RANGE.search(condition), each
        assert condition.count("%s") <= MOST_KEYS
