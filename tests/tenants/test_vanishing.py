"""Tenants come and go while a process runs, and the database of one may be away."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from django_mcp.partitions import enter_partition
from django_mcp.store.ledger import ledger
from tests.support.waiting import in_thread, until

from . import offers
from .tenancy import DATABASES, NUMBER, SCHEMAS, item, leave, legacy, make_company, modern, people

pytestmark = pytest.mark.parametrize("streaming", ["mount"], indirect=True)
LOCKED = ("pendingrequest", "session", "stream")
schemas_only = pytest.mark.skipif(not SCHEMAS, reason="of django-tenants")
databases_only = pytest.mark.skipif(not DATABASES, reason="of databases")


def come() -> None:
    leave()
    make_company("initech")
    with enter_partition("initech"):
        people().create_user("anna at initech", pk=NUMBER)
        item().create(name="initech's")
    leave()


def go() -> None:
    from .companies.models import Company  # noqa: PLC0415

    leave()
    Company.objects.get(schema_name="initech").delete(force_drop=True)


@schemas_only
def test_a_tenant_that_is_made_is_served_and_one_that_is_gone_keeps_nobody(
    streaming, on_loop, monkeypatch
):
    # Whoever is visited in a round has books, for a while.
    monkeypatch.setattr(ledger(), "_round_at", float("inf"))

    async def main() -> None:
        other = await legacy(streaming, "acme").open()
        await in_thread(come)
        client = await legacy(streaming, "initech").open()
        assert (await client.value("facts"))["items"] == "initech's"
        listener = modern(streaming, "initech")
        async with (
            other.call("await_", gate="other") as first,
            client.call("await_", gate="mine") as second,
            listener.listen(toolsListChanged=True) as third,
        ):
            await third.message()
            await in_thread(go)
            # Its calls end, one way or another, and its connections with them.
            await second.messages()
            await third.messages()
            offers.gates["other"].set()
            assert (await first.messages())[-1]["result"]["structuredContent"]["where"] == "acme"
        async with modern(streaming, "initech").call("facts") as answer:
            assert answer.status == 404
        assert (await other.value("facts"))["where"] == "acme"
        await until(lambda: [books.partition for books in ledger().books()], ["acme"])

    on_loop(main())


@schemas_only
def test_a_tenant_whose_tables_are_locked_holds_up_nobody_for_long(streaming, on_loop):
    """As while they are migrated."""

    def lock() -> Any:
        end = time.monotonic() + 30
        locking = connections["default"].copy("default")
        locking.inc_thread_sharing()
        locking.ensure_connection()
        locking.set_autocommit(False)
        tables = ", ".join(f"globex.django_mcp_{name}" for name in LOCKED)
        while True:
            # All at once or none: who waits for one while it has others is a deadlock's half.
            try:
                with locking.cursor() as cursor:
                    cursor.execute(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE NOWAIT")
            except OperationalError:
                locking.rollback()
                assert time.monotonic() < end
            else:
                return locking

    async def main() -> None:
        client = await legacy(streaming, "acme").open()
        stuck = await legacy(streaming, "globex").open()
        async with stuck.call("await_", gate="stuck") as second:
            locking = await asyncio.to_thread(lock)
            try:
                await asyncio.sleep(1)  # by now the bookkeeping waits for the lock
                begun = time.monotonic()
                for number in range(3):
                    async with client.call("steps", gate=f"open {number}") as answer:
                        assert answer.is_stream  # so it has got its rows
                        offers.gates[f"open {number}"].set()
                        await answer.messages()
                assert time.monotonic() - begun < 4
            finally:
                await asyncio.to_thread(locking.rollback)
                await asyncio.to_thread(locking.close)
            offers.gates["stuck"].set()
            assert (await second.messages())[-1]["result"]["structuredContent"]["where"] == "globex"

    on_loop(main())


@databases_only
def test_a_database_that_hangs_holds_up_nobody_else(streaming, on_loop, monkeypatch):
    is_away = threading.Event()
    original = DatabaseWrapper.create_cursor

    def create_cursor(self: Any, name: str | None = None) -> Any:
        if self.alias == "globex" and is_away.is_set():
            time.sleep(1.5)
            raise OperationalError("planted")
        return original(self, name)

    monkeypatch.setattr(DatabaseWrapper, "create_cursor", create_cursor)

    async def main() -> None:
        client = await legacy(streaming, "acme").open()
        away = await legacy(streaming, "globex").open()
        async with away.call("await_", gate="away") as second:
            is_away.set()
            await asyncio.sleep(1)  # by now the bookkeeping has met it
            for number in range(4):
                begun = time.monotonic()
                async with client.call("steps", gate=f"open {number}") as answer:
                    assert answer.is_stream
                    offers.gates[f"open {number}"].set()
                    await answer.messages()
                assert time.monotonic() - begun < 1
            async with modern(streaming, "globex").call("facts") as refused:
                assert refused.status == 503
            is_away.clear()
            offers.gates["away"].set()
            assert (await second.messages())[-1]["result"]["structuredContent"]["where"] == "globex"

    on_loop(main())
