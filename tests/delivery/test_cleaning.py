"""Whoever is in use cleans up a little, and who comes too late is told so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_mcp.clock import DatabaseHour, DatabaseNow
from django_mcp.models import PendingRequest, Session, Stream
from django_mcp.store import ledger, sweep
from tests.store.visiting import Visit
from tests.support.client import Client
from tests.support.waiting import in_thread, until

from .abandoned import Abandoned


def _expire(visit: Visit) -> None:
    rows = Session.objects.filter(pk=visit.info.id)
    rows.update(last_active=DatabaseNow() - timedelta(days=2), used_hour=DatabaseHour() - 48)


@pytest.fixture
def _sweeping(monkeypatch):
    """Let rounds follow each other soon, and their steps."""
    monkeypatch.setattr(sweep, "ROUND_SECONDS", 0.05)
    monkeypatch.setattr(sweep, "SHARE", 0.5)
    monkeypatch.setattr(ledger, "PAUSE_SECONDS", 0.02)


@pytest.mark.usefixtures("_sweeping")
def test_requests_of_a_session_make_a_process_clean_up(application, on_loop):
    async def main():
        client = await Client(application).open()
        forgotten = await in_thread(Visit)
        await in_thread(_expire, forgotten)
        await client.result("echo")
        await until(lambda: forgotten.row.state, "ended")

    on_loop(main())


@pytest.mark.usefixtures("_sweeping")
def test_clients_that_do_nothing_but_initialize_do_so_as_well(application, on_loop):
    async def main():
        forgotten = await in_thread(Visit)
        await in_thread(_expire, forgotten)
        await Client(application).open(initialized=False)
        await Client(application).open(initialized=False)
        await until(lambda: forgotten.row.state, "ended")

    on_loop(main())


@pytest.mark.usefixtures("_sweeping")
def test_calls_that_leave_rows_do_so_as_well(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.call("steps") as answer:
            await answer.messages()
        await in_thread(_close_long_ago)
        async with client.call("steps") as answer:
            await answer.messages()
        await until(lambda: Stream.objects.filter(cleared=True).count(), 1)

    on_loop(main())


def _close_long_ago() -> None:
    Stream.objects.update(closed=DatabaseNow() - timedelta(days=1))


def test_where_not_even_the_request_is_kept_the_event_is_unknown(application, on_loop):
    """Between the two batches with which it goes and its stream."""

    async def main():
        client = await Client(application).open()
        abandoned = await in_thread(Abandoned, 1)
        await in_thread(_forget, abandoned)
        async with client.listen(abandoned.beginning) as refused:
            return refused.status

    assert on_loop(main()) == 400


def _forget(abandoned: Abandoned) -> None:
    Stream.objects.update(closed=DatabaseNow(), trimmed=9, next_seq=10, cleared=True)
    PendingRequest.objects.filter(pk=abandoned.calls[0].id).delete()
