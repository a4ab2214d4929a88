"""Answering a POST: in one piece, or on a stream from the first word on."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from django_mcp.http import streamed_post
from django_mcp.models import OutgoingMessage, PendingRequest, Stream
from django_mcp.store.delivery import stream_writer
from django_mcp.store.ledger import ledger
from tests.support.client import Client, StatelessClient
from tests.support.messages import IDS, META_LOG_LEVEL, cancellation, request, tool_call
from tests.support.waiting import in_thread, until

from . import site


@pytest.fixture
def unhurried(monkeypatch):
    """A moment that no machine is too slow for."""
    monkeypatch.setattr(stream_writer, "FIRST_WRITE_DELAY_SECONDS", 60)


def test_a_call_that_says_nothing_is_answered_in_one_piece_and_leaves_no_row(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.call("echo", value="x") as connection:
            assert not connection.is_stream
            assert (await connection.json())["result"]["content"][0]["text"] == "x"

    on_loop(main())
    assert not PendingRequest.objects.exists()
    assert not Stream.objects.exists()


@pytest.mark.parametrize("tool", ["steps", "asteps"])
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_call_that_speaks_streams_its_words_in_order_and_its_response_last(
    application, on_loop, tool, revision
):
    async def main():
        client = await Client(application).open(revision)
        async with client.call(tool, id="me", count=5) as connection:
            assert connection.is_stream
            return await connection.messages()

    *words, last = on_loop(main())
    assert [word["params"]["data"] for word in words] == ["0", "1", "2", "3", "4"]
    assert last["id"] == "me"
    assert last["result"]["content"][0]["text"] == "done"
    request = PendingRequest.objects.get()
    assert (request.state, request.request_id) == ("answered", '"me"')
    assert Stream.objects.get().closed
    seqs = list(OutgoingMessage.objects.order_by("seq").values_list("seq", flat=True))
    assert seqs == [1, 2, 3, 4, 5, 6]
    assert Stream.objects.get().next_seq == 7


@pytest.mark.parametrize("tool", ["quick_steps", "aquick_steps"])
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_call_that_ends_within_a_moment_of_its_words_leaves_no_row(
    application, on_loop, unhurried, tool, revision
):
    async def main():
        client = await Client(application).open(revision)
        async with client.call(tool, id="me", count=5) as connection:
            assert connection.is_stream
            return await connection.messages(), connection.last_id

    (*words, last), last_id = on_loop(main())
    assert [word["params"]["data"] for word in words] == ["0", "1", "2", "3", "4"]
    assert last["id"] == "me"
    assert last["result"]["content"][0]["text"] == "done"
    assert last_id is None
    assert not PendingRequest.objects.exists()
    assert not Stream.objects.exists()


def test_a_batch_of_quick_calls_leaves_no_row(application, on_loop, unhurried):
    def call(number):
        return tool_call("quick_steps", number, label=f"{number}-", count=1)

    async def main():
        client = await Client(application).open("2025-03-26")
        async with client.request("POST", [call(1), call(2)]) as connection:
            return await connection.messages()

    *words, first, second = on_loop(main())
    assert [word["params"]["data"] for word in words] == ["1-0", "2-0"]
    assert [first["id"], second["id"]] == [1, 2]
    assert not PendingRequest.objects.exists()


def test_each_word_arrives_while_the_call_still_runs(application, on_loop):
    async def main():
        client = await Client(application).open()
        site.gates.open("each")
        async with client.call("steps", gate="each", count=2) as connection:
            assert (await connection.message())["params"]["data"] == "0"
            assert await in_thread(PendingRequest.objects.filter(state="running").count) == 1
            site.gates.open("each")
            assert (await connection.message())["params"]["data"] == "1"
            assert "result" in await connection.message()
            assert await connection.event() is None

    on_loop(main())


def test_only_the_newest_revision_primes_its_client(application, on_loop):
    async def first(revision):
        client = await Client(application).open(revision)
        async with client.call("steps") as connection:
            return await connection.event()

    async def main():
        return [await first(each) for each in ("2025-03-26", "2025-06-18", "2025-11-25")]

    *older, newest = on_loop(main())
    assert all(event.data and event.id for event in older)
    assert newest.id
    assert newest.data == b""


def test_a_call_that_lasts_streams_without_a_word(application, on_loop, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "STREAM_AFTER_SECONDS": 0.05}

    async def main():
        client = await Client(application).open()
        async with client.call("wait") as connection:
            assert connection.is_stream
            assert (await connection.event()).data == b""
            site.gates.open()
            assert (await connection.message())["result"]

    on_loop(main())


@pytest.mark.parametrize("request_id", IDS, ids=repr)
def test_an_error_after_the_first_word_is_an_event_with_its_id(application, on_loop, request_id):

    async def main():
        client = await Client(application).open()
        async with client.call("refuse", id=request_id) as connection:
            assert connection.status == 200
            return await connection.messages()

    *_, last = on_loop(main())
    assert (type(last["id"]), last["id"]) == (type(request_id), request_id)
    assert set(last) == {"jsonrpc", "id", "error"}
    assert last["error"]["code"] == 7001
    assert PendingRequest.objects.get().state == "failed"


def test_a_crash_after_the_first_word_is_a_result_and_its_row_has_failed(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.call("crash", id="c") as connection:
            return await connection.messages()

    *_, last = on_loop(main())
    assert (last["id"], last["result"]["isError"]) == ("c", True)
    assert PendingRequest.objects.get().state == "failed"


@pytest.mark.parametrize("request_id", IDS, ids=repr)
def test_in_the_modern_era_too_it_has_its_id(application, on_loop, request_id):

    async def main():
        client = StatelessClient(application)
        call = client.call("refuse", id=request_id, meta={META_LOG_LEVEL: "info"})
        async with call as connection:
            assert connection.is_stream
            return await connection.messages()

    *said, last = on_loop(main())
    assert [each["params"]["data"] for each in said] == ["before"]
    assert (type(last["id"]), last["id"]) == (type(request_id), request_id)
    assert last["error"]["code"] == 7001


@pytest.mark.parametrize("accept", ["application/json", "application/json;q=1, text/*;q=0"])
def test_a_client_that_takes_no_stream_gets_the_response_alone(application, on_loop, accept):
    async def main():
        client = await Client(application, Accept=accept).open()
        async with client.call("steps") as connection:
            assert not connection.is_stream
            return await connection.json()

    assert on_loop(main())["result"]["content"][0]["text"] == "done"


def test_a_batch_that_speaks_is_one_stream_with_a_response_for_each(application, on_loop):
    def call(number):
        return tool_call("steps", number, label=f"{number}-", count=1)

    async def main():
        client = await Client(application).open("2025-03-26")
        batch = [call(1), request("no/such", "no"), request("ping", "p"), call(2)]
        async with client.request("POST", batch) as connection:
            return await connection.messages()

    messages = on_loop(main())
    assert [each["id"] for each in messages if "id" in each] == [1, "no", "p", 2]
    said = [each["params"]["data"] for each in messages if "method" in each]
    assert said == ["1-0", "2-0"]
    assert messages[-1]["id"] == 2


@pytest.mark.parametrize("quick", ["ping", "echo", "unknown"])
def test_a_batch_answers_what_had_ended_before_it_became_a_stream(application, on_loop, quick):
    first = {
        "ping": request("ping", "first"),
        "echo": tool_call("echo", "first", value="x"),
        "unknown": request("no/such", "first"),
    }

    async def main():
        client = await Client(application).open("2025-03-26")
        batch = [first[quick], tool_call("steps", 2, count=2)]
        async with client.request("POST", batch) as connection:
            return await connection.messages()

    messages = on_loop(main())
    assert [each["id"] for each in messages if "id" in each] == ["first", 2]


def test_what_a_column_does_not_take_is_left_out_of_its_row(application, on_loop):
    """On PostgreSQL no text has a NUL; and a name or a method may be longer than its column."""
    asked = [("tools/call", "n\x00" + "x" * 300), ("m\x00" + "y" * 100, "n")]

    async def main():
        client = await Client(application).open("2025-03-26")
        batch = [request(asked[number][0], number, name=asked[number][1]) for number in (0, 1)]
        batch.append(tool_call("steps", 2, count=1))
        async with client.request("POST", batch) as connection:
            ends = [each["id"] for each in await connection.messages() if "id" in each]
        return ends, await in_thread(lambda: list(PendingRequest.objects.values_list("name")))

    ends, names = on_loop(main())
    assert ends == [0, 1, 2]
    assert sorted(names) == [("n",), ("n" + "x" * 254,), ("steps",)]


def test_a_tight_loop_of_progress_costs_little_and_its_last_value_arrives(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.call("count_to", token="t", total=5000) as connection:
            return await connection.messages()

    *words, last = on_loop(main())
    values = [word["params"]["progress"] for word in words]
    assert values == sorted(set(values))
    assert values[-1] == 5000
    assert len(values) < 500
    assert last["result"]


def test_progress_that_was_held_back_arrives_while_the_call_works_in_silence(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.call("pause_after_two", token="t") as connection:
            told = [await connection.message(), await connection.message()]
            site.gates.open("silence")
            await connection.messages()
        return [each["params"]["progress"] for each in told]

    assert on_loop(main()) == [1, 2]


def test_progress_only_grows(application, on_loop):
    async def main():
        client = await Client(application).open()
        for _ in range(6):
            site.gates.open("progress")
        async with client.call("back_and_forth", token=0) as connection:
            return await connection.messages()

    values = [each["params"]["progress"] for each in on_loop(main())[:-1]]
    assert values == sorted(set(values))
    assert values[-1] == 5


def test_without_a_token_there_is_no_progress(application, on_loop):
    async def main():
        client = await Client(application).open()
        async with client.call("count_to") as connection:
            assert not connection.is_stream
            assert (await connection.json())["result"]

    on_loop(main())


@pytest.mark.parametrize(
    ("level", "heard"), [("debug", 3), ("info", 3), ("warning", 0), ("emergency", 0)]
)
def test_the_session_says_how_severe_a_message_must_be(application, on_loop, level, heard):
    async def main():
        client = await Client(application).open()
        async with client.post("logging/setLevel", level=level):
            pass
        async with client.call("steps") as connection:
            return await connection.messages() if connection.is_stream else [None]

    assert len(on_loop(main())) == heard + 1


def test_a_call_of_a_batch_that_is_cancelled_before_it_begins_does_not_run(application, on_loop):
    async def main():
        client = await Client(application).open("2025-03-26")
        batch = [tool_call("wait", 1), tool_call("steps", 2, gate="never")]
        async with client.request("POST", batch) as connection:
            await site.gates.reached()
            await client.send(cancellation(2))
            await until(PendingRequest.objects.filter(cancel_requested=True).count, 1)
            (cancelled,) = [each for each in ledger().requests.running() if each.request_id == 2]
            await until(lambda: cancelled._reason is not None, True)
            site.gates.open()
            return await connection.messages()

    first, second = on_loop(main())
    assert first["result"]
    assert (second["id"], second["error"]["code"]) == (2, -32800)
    assert not site.gates.entered["never"].acquire(blocking=False)


def test_a_client_that_goes_as_its_call_is_written_leaves_no_reader(
    application, on_loop, monkeypatch
):
    """The one happens on the loop, the other on the thread of the ledger."""
    seen = []

    class Reader(streamed_post.StreamReader):
        def __init__(self, **given: Any) -> None:
            (post,) = seen
            going = threading.Thread(target=post._disconnect)
            going.start()
            going.join(0.2)  # unless it has to wait for its turn
            super().__init__(**given)

    original = streamed_post.StreamedPost._connect_reader

    def connect(self: Any) -> None:
        seen[:] = [self]
        original(self)

    monkeypatch.setattr(streamed_post, "StreamReader", Reader)
    monkeypatch.setattr(streamed_post.StreamedPost, "_connect_reader", connect)

    async def main():
        client = await Client(application).open()
        async with client.call("speak_and_wait", gate="gone"):
            await until(lambda: bool(seen), True)
            await until(lambda: ledger().readers.all(), [])
            assert ledger().requests.running(), "the end of the call removes it, too"
            site.gates.open("gone")

    on_loop(main())


@pytest.mark.parametrize("client_class", [Client, StatelessClient])
def test_nothing_is_kept_for_a_client_that_has_gone(
    application, on_loop, monkeypatch, client_class
):
    """Its call may go on, and say as much as it likes."""
    queues = []

    class Queue(streamed_post.SendQueue):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            queues.append(self)

    monkeypatch.setattr(streamed_post, "SendQueue", Queue)

    async def main():
        client = client_class(application)
        meta = None
        if client_class is Client:
            await client.open()
        else:
            meta = {META_LOG_LEVEL: "info"}
        async with client.call("speak_and_wait", gate="gone", meta=meta) as connection:
            await connection.message()
        (queue,) = queues
        await until(lambda: queue._closed, True)
        site.gates.open("gone")
        await until(lambda: "gone" in site.gates.left, True)
        assert not queue.waiting()

    on_loop(main())
