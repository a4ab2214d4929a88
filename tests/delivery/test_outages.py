"""The database goes away, breaks connections off, and does not always say what it has done."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from django.db import DEFAULT_DB_ALIAS, IntegrityError, OperationalError, connection, connections
from django.http import HttpRequest

from django_mcp import endpoint
from django_mcp.auth import Principal
from django_mcp.models import OutgoingMessage, PendingRequest, Stream
from django_mcp.store import ledger as ledger_module
from django_mcp.store.delivery import outbox
from tests.store.visiting import Visit
from tests.support.client import Client, StatelessClient
from tests.support.messages import IDS, modern
from tests.support.sites import urlconf
from tests.support.waiting import in_thread, until

from . import site
from .conftest import at_the_mount
from .outages import ERRORS, Database, break_connections


@pytest.fixture
def database(monkeypatch):
    return Database(monkeypatch)


@pytest.fixture
def _impatient(monkeypatch):
    """Send directly, at once, what cannot be written."""
    monkeypatch.setattr(ledger_module, "SEND_UNWRITTEN_SECONDS", 0)


def states():
    return sorted(PendingRequest.objects.values_list("state", flat=True))


def texts(messages):
    return [
        each["params"]["data"] if "params" in each else each["result"]["content"][0]["text"]
        for each in messages
    ]


@at_the_mount
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("mislaid", [(1,), (2,), (3,), (4,), (1, 2, 3, 4)], ids=str)
def test_a_commit_whose_answer_is_lost_is_not_taken_for_another_ones(
    application, on_loop, database, mislaid, error
):
    """Written again it would find its own numbers taken, as if somebody had settled the call."""

    async def main():
        client = await Client(application).open()
        database.mislay(*mislaid, error=error)
        site.gates.open("each")
        async with client.call("steps", count=3, gate="each") as connection:
            found = [await connection.message()]
            for _ in range(2):
                site.gates.open("each")
                found.append(await connection.message())
            return found + await connection.messages()

    assert texts(on_loop(main())) == ["0", "1", "2", "done"]
    assert states() == ["answered"]
    rows = OutgoingMessage.objects.order_by("seq").values_list("seq", flat=True)
    assert list(rows) == [1, 2, 3, 4]
    assert Stream.objects.get().next_seq == 5


def test_what_is_said_while_a_commit_is_in_doubt_is_written_after_it(database, monkeypatch):
    """Even if the call says nothing more: nobody else would have it written."""
    books = ledger_module.Ledger()
    monkeypatch.setattr(books, "wake", lambda: None)  # it is looked at by hand
    monkeypatch.setattr(threading.current_thread(), "name", "mcp-ledger")
    call = Visit().begin()
    call.post._submit = books.submit
    database.mislay(1)
    call.say("first").post.want_rows()
    books._write()
    call.say("second")
    while books.is_writing:
        books._write()
    assert ["first" in each for each in call.bodies()] == [True, False]


def deadlock():
    return OperationalError(1213, "Deadlock found when trying to get lock")


def lock_timeout():
    return OperationalError(1205, "Lock wait timeout exceeded")


def serialization_failure():
    error = OperationalError("could not serialize access due to concurrent update")
    error.__cause__ = Exception()
    error.__cause__.sqlstate = "40001"
    return error


@at_the_mount
@pytest.mark.parametrize("kind", [deadlock, lock_timeout, serialization_failure])
def test_transactions_that_others_broke_off_are_made_again_and_the_function_is_not(
    application, on_loop, database, kind, caplog
):

    async def main():
        client = await Client(application).open()
        call = client.call("speak_and_wait", gate="once")
        database.collide(*(kind() for _ in range(5)))
        starting = asyncio.ensure_future(call.__aenter__())
        await until(states, ["running"])
        assert database.has_collided
        database.collide(*(kind() for _ in range(5)))
        site.gates.open("once")
        found = await (await starting).messages()
        await call.__aexit__(None, None, None)
        return found

    with caplog.at_level(logging.WARNING, "django_mcp.store"):
        assert texts(on_loop(main())) == ["before", "after", "done"]
    assert database.has_collided
    assert site.gates.left == ["once"]
    assert states() == ["answered"]
    assert not caplog.records


@at_the_mount
@pytest.mark.parametrize("error", ERRORS)
def test_what_several_calls_say_in_one_transaction_is_kept_once(
    application, on_loop, database, error
):
    async def main():
        client = await Client(application).open()
        opened = [client.call("steps", count=1, gate="all", label=f"{n}-") for n in range(4)]
        starting = [asyncio.ensure_future(each.__aenter__()) for each in opened]
        for _ in opened:
            await site.gates.reached("all")
        database.mislay(1, 2, error=error)
        for _ in opened:
            site.gates.open("all")
        found = [await (await each).messages() for each in starting]
        for each in opened:
            await each.__aexit__(None, None, None)
        return found

    found = on_loop(main())
    assert [texts(each) for each in found] == [[f"{n}-0", f"{n}-done"] for n in range(4)]
    assert states() == ["answered"] * 4


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.usefixtures("_impatient")
def test_a_result_that_cannot_be_stored_is_delivered_on_its_connection(
    application, on_loop, database, error
):
    async def main():
        client = await Client(application).open()
        async with client.call("speak_and_wait") as connection:
            first = await connection.message()
            before = connection.last_id
            with database.away(error):
                site.gates.open()
                rest = await connection.messages()
        await until(states, ["answered"])
        async with client.listen(before) as again:
            assert await again.messages() == rest
        return [first, *rest]

    assert texts(on_loop(main())) == ["before", "after", "done"]


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("request_id", IDS[:3], ids=repr)
def test_the_result_of_a_call_that_could_not_become_a_row_is_delivered_on_its_connection(
    application, on_loop, database, settings, request_id
):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STREAM_AFTER_SECONDS": 0.05}

    async def main():
        client = await Client(application).open()
        starting = client.call("wait", id=request_id)
        entering = asyncio.ensure_future(starting.__aenter__())
        await site.gates.reached()
        with database.away():
            # It has become long by now, though it has no row yet.
            await until_attempts(database, 2)
            site.gates.open()
            connection = await entering
            assert connection.is_stream
            event = await connection.event()
            assert event.id is None
            message = json.loads(event.data)
            assert await connection.event() is None
        await starting.__aexit__(None, None, None)
        await until(states, ["answered"])
        return message

    message = on_loop(main())
    assert (type(message["id"]), message["id"]) == (type(request_id), request_id)
    assert texts([message]) == ["waited"]


@pytest.mark.usefixtures("_impatient")
def test_nobody_gets_the_id_of_an_event_that_is_not_stored(application, on_loop, database):
    """Who came back with it, to whatever worker, would be told that there is no such event."""

    async def main():
        client = await Client(application).open()
        starting = client.call("steps", count=2, gate="step")
        entering = asyncio.ensure_future(starting.__aenter__())
        await site.gates.reached("step")
        with database.away():
            site.gates.open("step")
            await until_attempts(database, 3)
            assert not entering.done()
        connection = await entering
        before = [await connection.event(), await connection.event()]
        with database.away():
            site.gates.open("step")
            rest = [await connection.event(), await connection.event()]
        await until(states, ["answered"])
        async with client.listen(connection.last_id) as again:
            replayed = await again.messages()
        await starting.__aexit__(None, None, None)
        return before, rest, replayed

    before, rest, replayed = on_loop(main())
    assert [(bool(each.id), each.data != b"") for each in before] == [(True, False), (True, True)]
    assert [each.id for each in rest] == [None, None]
    assert [json.loads(each.data) for each in rest] == replayed
    assert texts(replayed) == ["1", "done"]


def test_what_was_said_during_an_outage_waits_for_its_end(application, on_loop, database):
    """Nothing is skipped, nothing comes twice, and the sockets stay."""

    async def main():
        client = await Client(application).open()
        async with client.listen() as own, client.call("speak_and_wait") as connection:
            first = await connection.message()
            with database.away():
                site.gates.open()
                await until_attempts(database, 3)
                assert not own._ended
            rest = await connection.messages()
            async with client.call("steps", count=1) as another:
                assert texts(await another.messages()) == ["0", "done"]
            assert not own._ended
        return [first, *rest]

    assert texts(on_loop(main())) == ["before", "after", "done"]
    assert states() == ["answered", "answered"]


async def until_attempts(database, number):
    wanted = database.attempts + number
    await until(lambda: database.attempts >= wanted, True)


@pytest.mark.parametrize("request_id", IDS, ids=repr)
def test_requests_during_an_outage_are_refused_with_their_id(
    application, on_loop, database, request_id
):
    async def main():
        client = await Client(application).open()
        with database.away():
            async with client.call("echo", id=request_id) as connection:
                return connection.status, connection.headers, await connection.json()

    status, headers, body = on_loop(main())
    assert status == 503
    assert int(headers["retry-after"]) > 0
    assert (type(body["id"]), body["id"]) == (type(request_id), request_id)
    assert body["error"]["code"] == -32603


def test_an_outage_is_logged_once(application, on_loop, database, caplog):
    async def main():
        client = await Client(application).open()
        async with client.call("speak_and_wait") as connection:
            await connection.message()
            with database.away():
                site.gates.open()
                await until_attempts(database, 5)
            await connection.messages()

    with caplog.at_level(logging.WARNING, "django_mcp.store"):
        on_loop(main())
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "cannot be used" in record.message


def test_a_connection_that_breaks_once_is_no_outage(monkeypatch, caplog):
    monkeypatch.setattr(ledger_module, "connections", Mock())
    books = ledger_module.Ledger()
    with caplog.at_level(logging.DEBUG, "django_mcp.store"):
        for _ in range(4):
            books._log_failure(OperationalError("planted"))
    levels = [each.levelno for each in caplog.records]
    assert levels == [logging.DEBUG, logging.ERROR, logging.DEBUG, logging.DEBUG]


def test_the_function_is_not_run_again(application, on_loop, database):
    async def main():
        client = await Client(application).open()
        database.mislay(1, 2, 3)
        site.gates.open("once")
        async with client.call("speak_and_wait", gate="once") as connection:
            return await connection.messages()

    assert texts(on_loop(main())) == ["before", "after", "done"]
    assert site.gates.left == ["once"]


def test_a_question_that_times_out_during_an_outage_has_timed_out(application, on_loop, database):
    async def main():
        client = await Client(application).open(elicitation={})
        async with client.call("question", seconds=0.5) as connection:
            await connection.message()
            with database.away():
                await until_attempts(database, 4)
            return await connection.messages()

    assert texts(on_loop(main())[-1:]) == ["no answer"]
    assert PendingRequest.objects.get(direction="to").state == "timed_out"


def test_a_question_put_and_given_up_during_an_outage_is_open_to_nobody_after_it(
    application, on_loop, database
):
    """It had no row yet. Where the call's end is written with it, it never has one."""

    async def main():
        client = await Client(application).open(elicitation={})
        async with client.call("question_when_told", seconds=1) as connection:
            await connection.message()
            with database.away():
                site.gates.open("ask")
                await until(lambda: "asked" in site.gates.left, True)
                await until_attempts(database, 4)
            return await connection.messages()

    assert texts(on_loop(main())[-1:]) == ["no answer"]
    assert not PendingRequest.objects.filter(direction="to").exclude(state="timed_out").exists()


def test_a_job_that_the_database_does_not_take_keeps_no_other_waiting(database, caplog):
    """It would fail again; one that fell into an outage is done after it."""
    done = []

    def insert_twice():
        done.append("refused")
        raise IntegrityError("duplicate key")

    def ask():
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute("SELECT 1")
        done.append("asked")

    books = ledger_module.Ledger()
    with database.away():
        for job in (ask, insert_twice, ask):
            books._jobs.append(job)
        books._run_jobs()
        assert done == []
    books._run_jobs()
    assert done == ["asked", "refused", "asked"]
    assert not books.is_writing
    assert [each.levelname for each in caplog.records if "job" in each.message] == ["ERROR"]


@pytest.mark.parametrize("method", ["tools/call", "subscriptions/listen"])
def test_the_modern_era_needs_the_database_for_nothing_but_what_it_keeps(
    application, on_loop, database, method
):
    async def main():
        client = Client(application)
        with database.away():
            params = {"name": "echo", "arguments": {"value": "x"}}
            if method == "subscriptions/listen":
                params = {"notifications": {"toolsListChanged": True}}
            message, headers = modern(method, **params)
            async with client.request("POST", message, **headers) as connection:
                return connection.status, await connection.json()

    status, body = on_loop(main())
    assert body["id"] == 1
    if method == "tools/call":
        assert (status, texts([body])) == (200, ["x"])
    else:
        assert (status, body["error"]["code"]) == (503, -32603)


@at_the_mount
def test_what_the_database_does_not_take_ends_with_an_error(
    application, on_loop, database, monkeypatch
):
    """A message that is too large for it, above all: nobody may wait for it for ever."""
    monkeypatch.setattr(ledger_module, "SEND_UNWRITTEN_SECONDS", float("inf"))
    database.refuses = "poison"

    async def main():
        client = await Client(application).open()
        async with client.call("steps", id="me", count=1, label="poison") as connection:
            return await connection.messages()

    (error,) = on_loop(main())
    assert (error["id"], error["error"]["code"]) == ("me", -32603)
    assert states() == ["answered"]
    assert Stream.objects.get().closed


@at_the_mount
def test_a_call_whose_very_row_is_not_taken_ends_and_holds_up_no_other(
    application, on_loop, database
):
    database.refuses = "steps"

    async def main():
        client = await Client(application).open()
        async with client.call("steps", id="me", count=100) as connection:
            ended = await connection.json()
        async with client.call("asteps", count=1) as connection:
            return ended, await connection.messages()

    ended, others = on_loop(main())
    assert ended["id"] == "me"
    assert "error" in ended
    assert texts(others) == ["0", "done"]
    assert not ledger_module.ledger().is_writing


@pytest.mark.usefixtures("_impatient")
def test_whose_connection_is_open_hears_it_nevertheless(application, on_loop, database):
    database.refuses = "poison"

    async def main():
        client = await Client(application).open()
        async with client.call("steps", count=1, label="poison ") as connection:
            messages = await connection.messages()
        async with client.call("steps", count=1, label="fine ") as connection:
            return messages, await connection.messages()

    poison, fine = on_loop(main())
    assert texts(poison) == ["poison 0", "poison done"]
    assert texts(fine) == ["fine 0", "fine done"]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no server that could")
def test_connections_that_the_server_has_ended_cost_nobody_anything(application, on_loop, caplog):
    """Such as a restart leaves behind, or a proxy that tidies up."""
    before = connection.settings_dict["CONN_MAX_AGE"]
    connection.settings_dict["CONN_MAX_AGE"] = None

    async def main():
        client = await Client(application).open()
        async with client.listen() as own, client.call("speak_and_wait") as waiting:
            first = await waiting.message()
            statuses = []
            for _ in range(6):
                await in_thread(break_connections)
                async with client.call("echo") as quick:
                    statuses.append(quick.status)
                async with client.call("steps", count=1) as speaking:
                    statuses.append(texts(await speaking.messages()))
            await in_thread(break_connections)
            site.gates.open()
            assert texts([first, *await waiting.messages()]) == ["before", "after", "done"]
            assert not own._ended
        return statuses

    try:
        assert on_loop(main()) == [200, ["0", "done"]] * 6
        assert not caplog.records
    finally:
        connection.settings_dict["CONN_MAX_AGE"] = before
        connection.close()


def stranger(request: HttpRequest) -> Principal:
    """Let in somebody whose key no column for the site's users has a form for."""
    return Principal(SimpleNamespace(pk="auth0|x", is_active=True), "\ud800")


@at_the_mount
def test_what_the_database_has_no_form_for_keeps_nothing_from_others(
    application, on_loop, settings, caplog
):
    """A call that is no row for the site goes on without one."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STREAM_AFTER_SECONDS": 0.001}
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=site.server), endpoint("strange", server=site.server, auth=stranger)
    )

    async def main():
        async with asyncio.timeout(20):
            strange = asyncio.ensure_future(
                StatelessClient(application, path="/strange").result("wait", gate="strange")
            )
            await site.gates.reached("strange")
            await until(lambda: "takes nothing of a call" in caplog.text, True)
            client = await Client(application).open()
            async with client.call("steps", count=1) as connection:
                others = await connection.messages()
            site.gates.open("strange")
            return others, await strange

    others, answer = on_loop(main())
    assert texts(others) == ["0", "done"]
    assert answer["content"][0]["text"] == "waited"
    assert states() == ["answered"]


@at_the_mount
def test_a_call_that_cannot_be_kept_costs_its_client_no_session(
    application, on_loop, monkeypatch, settings
):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STREAM_AFTER_SECONDS": 0.001}
    monkeypatch.setattr(outbox, "_stream", Mock(side_effect=ValueError("planted")))

    async def main():
        client = await Client(application).open()
        async with client.call("wait", id="mine", gate="kept") as connection:
            answer = await connection.json()
        site.gates.open("kept")
        monkeypatch.undo()
        async with client.call("echo", value="goes on") as connection:
            return connection.status, answer, await connection.json()

    status, answer, following = on_loop(main())
    assert (answer["id"], answer["error"]["code"]) == ("mine", -32603)
    assert status == 200
    assert following["result"]
