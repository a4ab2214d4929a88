"""Calls that speak while a transaction of the site's is open."""

from __future__ import annotations

import asyncio
import logging

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from django_mcp.store.ledger import ledger
from tests.support.client import Client

from . import site


def is_held_back() -> bool:
    """Whether the transaction has the only lock for writing, so that words wait for its end."""
    return connection.vendor == "sqlite"


async def pass_through(gate):
    await site.gates.reached(gate)
    site.gates.open(gate)


def complaints(caplog):
    return [each for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("fails", [False, True], ids=["committed", "rolled back"])
def test_what_is_said_in_a_transaction_is_heard_whatever_becomes_of_it(
    application, on_loop, caplog, fails
):

    async def main():
        client = await Client(application).open()
        waiting = is_held_back() and asyncio.create_task(pass_through("inside"))
        async with client.call("in_a_transaction", fails=fails) as connection:
            said = await connection.message()
            if waiting:
                await waiting
            else:
                await pass_through("inside")
            # The call goes on, so the word has not merely come with the response.
            await pass_through("outside")
            return said, await connection.messages()

    said, rest = on_loop(main())
    assert said["params"]["data"] == "inside"
    assert [set(each) for each in rest] == [{"jsonrpc", "id", "result"}]
    assert Group.objects.exists() is not fails
    assert complaints(caplog) == []


def test_an_open_transaction_keeps_no_other_request_waiting(application, on_loop):
    async def main():
        client = await Client(application).open()
        other = await Client(application).open()

        async def call():
            async with client.call("in_a_transaction", fails=False) as connection:
                return await connection.messages()

        calling = asyncio.create_task(call())
        await site.gates.reached("inside")
        for each in (client, other):
            answer = await each.result("echo", value="meanwhile")
            assert answer["content"][0]["text"] == "meanwhile"
        site.gates.open("inside")
        await pass_through("outside")
        return await calling

    *words, last = on_loop(main())
    assert [word["params"]["data"] for word in words] == ["inside"]
    assert "result" in last


@pytest.mark.usefixtures("atomic_requests")
def test_what_is_said_under_atomic_requests_is_heard(application, on_loop, caplog):

    async def main():
        client = await Client(application).open()
        waiting = is_held_back() and asyncio.create_task(pass_through("inside"))
        async with client.call("throughout") as connection:
            said = await connection.message()
            if waiting:
                await waiting
            else:
                await pass_through("inside")
            return said, await connection.messages()

    said, rest = on_loop(main())
    assert said["params"]["data"] == "inside"
    assert [set(each) for each in rest] == [{"jsonrpc", "id", "result"}]
    assert complaints(caplog) == []


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite has but one lock")
def test_a_locked_database_does_not_hold_up_the_ledger(application, on_loop, caplog):
    async def main():
        client = await Client(application).open()
        waiting = asyncio.create_task(client.result("in_a_transaction", fails=False))
        await site.gates.reached("inside")
        # The ledger has tried to write the word, and is to do other things meanwhile. If it waited
        # as patiently as the site's own connections do, this would take longer than the bound.
        ran = asyncio.Event()
        loop = asyncio.get_running_loop()
        ledger().run(lambda: loop.call_soon_threadsafe(ran.set))
        await asyncio.wait_for(ran.wait(), connection.settings_dict["OPTIONS"]["timeout"] / 2)
        site.gates.open("inside")
        await pass_through("outside")
        await waiting

    on_loop(main())
    assert complaints(caplog) == []


def test_a_session_is_used_although_the_loop_s_own_thread_has_a_transaction(application, on_loop):
    """As in a test whose runner keeps one open around the loop: nothing of ours is done on it."""

    async def main():
        client = await Client(application).open()
        connection.in_atomic_block = True
        try:
            async with client.call("echo", value="x") as answer:
                return await answer.json()
        finally:
            connection.in_atomic_block = False

    assert on_loop(main())["result"]["content"][0]["text"] == "x"
