"""A malicious server: nothing that it sends takes the client's memory, or its time, without end."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from django_mcp.client import (
    CallTimedOut,
    Change,
    Limits,
    MessageTooLarge,
    TooManyQuestions,
    UnexpectedAnswer,
)
from django_mcp.client.catalog import MIRROR_KEYWORD, mirrored_properties
from django_mcp.protocol.sse import LONGEST_ID_BYTES

from .scripted import LegacyServer, ModernServer, Reply, Seen, Server, Stream, as_json, as_stream
from .test_broken_streams import Resuming, holding
from .test_questions import PAGE, ask_in_result, ask_in_session, text

FEW = Limits(message_values=1000, backoff=0)

# Messages


@pytest.mark.parametrize("answer", ["json", "event", "error"])
async def test_a_message_of_too_many_values_is_not_parsed(server: Server, answer: str) -> None:
    def listing(seen: Seen) -> Reply:
        message = seen.result({"tools": [{}] * 1000})
        if answer == "json":
            return as_json(message)
        if answer == "error":
            return as_json(seen.error(-32603, data=[{}] * 1000), 418)
        return as_stream(Stream(message))

    server.handlers["tools/list"] = listing
    async with server.client(limits=FEW) as client:
        expected = UnexpectedAnswer if answer == "error" else MessageTooLarge
        with pytest.raises(expected, match="418" if answer == "error" else "more than 1000 values"):
            await client.list_tools()


async def test_a_million_tools_that_are_none_are_too_many_by_default(server: Server) -> None:
    tools = [{}] * 1_000_000
    server.handlers["tools/list"] = lambda seen: as_json(seen.result({"tools": tools}))
    async with server.client() as client:
        with pytest.raises(MessageTooLarge, match="values"):
            await client.list_tools()


async def test_a_long_table_in_a_text_is_one_value(server: Server) -> None:
    table = "a,b\n" * 5000
    server.handlers["tools/call"] = lambda seen: as_json(seen.result(text(table)))
    async with server.client(limits=FEW) as client:
        assert (await client.call_tool("export")).content[0].text == table


# Lists


def endless(**page: Any) -> Callable[[Seen], Awaitable[Reply]]:
    """Answer a list page by page, each with a new cursor."""
    cursors = itertools.count()

    async def listing(seen: Seen) -> Reply:
        await asyncio.sleep(0)
        return as_json(seen.result({"prompts": [], **page, "nextCursor": str(next(cursors))}))

    return listing


async def test_all_pages_of_a_list_have_the_time_of_one_call(server: Server) -> None:
    answer = endless()

    async def slow(seen: Seen) -> Reply:
        await asyncio.sleep(0.01)
        return await answer(seen)

    server.handlers["prompts/list"] = slow
    async with server.client(timeout=0.2) as client:
        with pytest.raises(CallTimedOut):
            await client.list_prompts()
    assert server.count("prompts/list") < 100


async def test_so_have_the_calls_that_a_call_takes() -> None:
    """A mirrored argument that is not known takes a list, and the call once more."""
    server = ModernServer()

    async def slow(seen: Seen) -> Reply:
        await asyncio.sleep(0.15)
        return as_json(seen.error(-32020))

    server.handlers |= {"tools/call": slow, "tools/list": endless(tools=[])}
    async with server.client(timeout=0.2) as client:
        with pytest.raises(CallTimedOut):
            await client.call_tool("pay")


async def test_a_list_with_too_many_pages_is_said_to_have_them(server: Server) -> None:
    server.handlers["prompts/list"] = endless()
    async with server.client(limits=Limits(pages=3)) as client:
        with pytest.raises(UnexpectedAnswer, match="more than 3 pages"):
            await client.list_prompts()
    assert server.count("prompts/list") == 3


@pytest.mark.parametrize(
    ("limits", "page", "complaint"),
    [
        (Limits(list_bytes=10_000), {"_meta": {"x": "y" * 1000}}, "10000 bytes"),
        (Limits(list_values=1000), {"_meta": {"x": [1] * 100}}, "1000 values"),
    ],
)
async def test_a_list_is_bounded_as_a_whole(
    server: Server, limits: Limits, page: Any, complaint: str
) -> None:
    server.handlers["prompts/list"] = endless(**page)
    async with server.client(limits=limits) as client:
        with pytest.raises(MessageTooLarge, match=f"more than {complaint}"):
            await client.list_prompts()
    assert server.count("prompts/list") == 10


# Ids of events


async def test_an_id_that_is_too_long_to_be_sent_back_is_refused() -> None:
    server = Resuming()
    async with server.client() as client:
        call = asyncio.create_task(client.call_tool("pay"))
        seen = await server.arrived("tools/call")
        server.first.send(seen.result(text("done")), id="x" * (LONGEST_ID_BYTES + 1))
        with pytest.raises(MessageTooLarge, match="id"):
            await call


async def test_an_id_is_sent_back_as_it_came() -> None:
    server = Resuming()
    async with server.client() as client:
        call = asyncio.create_task(client.call_tool("pay"))
        seen = await server.arrived("tools/call")
        server.first.send(id="é €", retry=0)
        server.first.end()
        server.later = [holding(("2", seen.result(text("done"))))]
        assert (await call).content[0].text == "done"
    (resumed,) = [each for each in server.of("GET") if "last-event-id" in each.headers]
    values = {name.lower(): value for name, value in resumed.headers.raw}
    assert values[b"last-event-id"] == "é €".encode()


# Pages to open


OPENED = [
    "https://pay.example/7",
    "http://127.0.0.1:8000/pay?order=7#form",
    "HTTPS://pay.example",
    "https://[2001:db8::1]/",
    "https://пример.example/",
]
REFUSED = [
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "\x01javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "file:///etc/passwd",
    "ms-settings:display",
    "//pay.example/",
    "pay.example",
    "",
    "https:pay.example",
    "https://",
    "https:///pay",
    "https://\\pay.example",
    "https://pay.example/\njavascript:alert(1)",
    " https://pay.example/",
]


@pytest.mark.parametrize("url", OPENED)
async def test_addresses_of_the_web_are_handed_over(url: str) -> None:
    seen: list[str] = []

    def go(page: Any) -> bool:
        seen.append(page.url)
        return True

    page = {**PAGE, "url": url}
    answer = await ask_in_session("elicitation/create", page, on_elicit_url=go)
    assert answer["result"] == {"action": "accept"}
    assert await ask_in_result("elicitation/create", page, on_elicit_url=go) == {"action": "accept"}
    assert seen == [url, url]


@pytest.mark.parametrize("url", REFUSED)
async def test_others_never_are(url: str) -> None:
    seen: list[Any] = []
    page = {**PAGE, "url": url}
    answer = await ask_in_session("elicitation/create", page, on_elicit_url=seen.append)
    assert answer["error"]["code"] == -32602
    with pytest.raises(UnexpectedAnswer, match="http: and https:"):
        await ask_in_result("elicitation/create", page, on_elicit_url=seen.append)
    assert seen == []


# Questions and changes


async def test_many_questions_at_once_are_not_asked() -> None:
    server, seen = ModernServer(), []
    ask = {"method": "elicitation/create", "params": PAGE}
    questions = {str(number): ask for number in range(33)}
    result = {"resultType": "input_required", "inputRequests": questions}
    server.handlers["tools/call"] = lambda each: as_json(each.result(result))
    async with server.client(on_elicit_url=seen.append) as client:
        with pytest.raises(TooManyQuestions, match="33 questions at once"):
            await client.call_tool("book")
    assert seen == []


async def test_a_change_keeps_no_uri_of_any_length() -> None:
    server, stream = LegacyServer(), Stream()
    server.handlers |= {
        "GET": lambda seen: as_stream(stream),
        "resources/subscribe": lambda seen: as_json(seen.result({})),
        "resources/unsubscribe": lambda seen: as_json(seen.result({})),
    }
    async with server.client() as client, client.listen(uris=["order://7"]) as changes:
        for uri in ("order://7", "order://" + "7" * 10_000):
            stream.send(
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/resources/updated",
                    "params": {"uri": uri},
                }
            )
        assert await changes.next(5) == Change("resource", "order://7")
        assert await changes.next(5) == Change("resource")


def test_many_mirrored_arguments_are_each_looked_at_once() -> None:
    names = [f"Name-{number}" for number in range(300)]
    schema = {"properties": {each: {"type": "string", MIRROR_KEYWORD: each} for each in names}}
    lowered = 0

    def count(frame: object, event: str, function: object) -> None:
        nonlocal lowered
        lowered += event == "c_call" and getattr(function, "__name__", "") == "lower"

    sys.setprofile(count)
    try:
        mirrored = mirrored_properties(schema)
    finally:
        sys.setprofile(None)
    assert list(mirrored) == names
    assert len(names) <= lowered <= 3 * len(names)
