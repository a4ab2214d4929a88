"""A session that has ended and that a process still remembers: it is let in, and nothing is written
for it. Whoever ended it was elsewhere, and has told nobody.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from django_mcp import Context, MCPServer, endpoint
from django_mcp.models import OutgoingMessage, PendingRequest, Session, Stream, Subscription
from django_mcp.store.ledger import ledger
from tests.support.client import Client
from tests.support.messages import CLIENT_INFO
from tests.support.sites import urlconf
from tests.support.waiting import in_thread, until

from . import site

things = MCPServer("things", version="1")


@things.tool
def echo(value: str = "") -> str:
    """Return at once."""
    return value


@things.tool
def asks(ctx: Context) -> None:
    """Ask, and wait for the answer for longer than the test does."""
    question = {"message": "?", "requestedSchema": site.SCHEMA}
    try:
        ctx._exchange.peer.request("elicitation/create", question, 2 * site.BOUND)
    finally:
        site.gates.left.append("asked")


@things.resource("thing://one")
def thing() -> str:
    """Be subscribed to."""
    return "one"


ROWS = (PendingRequest, Stream, OutgoingMessage, Subscription)


@pytest.fixture(autouse=True)
def _remembering(_delivery: None, settings: Any) -> None:
    settings.DJANGO_MCP = {
        **settings.DJANGO_MCP,
        "SESSION_CACHE_SECONDS": 10,
        "STREAM_AFTER_SECONDS": 0.05,
    }


async def remembered(application: Any) -> Client:
    """Open a session, use it, and have it end elsewhere."""
    client = await Client(application).open(elicitation={})
    assert (await client.result("echo", value="x"))["content"][0]["text"] == "x"
    await in_thread(ledger().tick)
    assert await in_thread(_end) == 1
    return client


def _end() -> int:
    return Session.objects.update(state=Session.State.ENDED, ended=timezone.now())


def rows() -> dict[str, int]:
    return {model.__name__: model.objects.count() for model in ROWS if model.objects.exists()}


def test_a_quiet_call_is_answered_for_a_moment_and_keeps_nothing_alive(application, on_loop):
    """It is one more among the requests that are counted, and no more than that."""

    async def main() -> Any:
        client = await remembered(application)
        before = await in_thread(Session.objects.values().get)
        result = await client.result("echo", value="late")
        await in_thread(ledger().tick)
        return result, before, await in_thread(Session.objects.values().get), client.session_id

    result, before, after, secret = on_loop(main())
    assert result["content"][0]["text"] == "late"
    assert {**after, "request_count": 0} == {**before, "request_count": 0}
    assert rows() == {}
    assert secret


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("wait", {}),
        ("await_", {}),
        ("steps", {}),
        ("asteps", {}),
        ("question", {}),
        ("aquestion", {}),
    ],
)
def test_what_becomes_long_speaks_or_asks_finds_that_the_session_has_ended(
    application, on_loop, tool, arguments
):
    async def main() -> Any:
        client = await remembered(application)
        async with client.call(tool, id="late", **arguments) as connection:
            # 404 would say that nothing has run, so that clients would call again.
            assert connection.status == 200
            try:
                if connection.is_stream:
                    return await connection.messages()
                return [await connection.json()]
            finally:
                site.gates.open()

    *said, answer = on_loop(main())
    assert said == []
    assert answer["id"] == "late"
    assert answer["error"]["code"] == -32001
    assert rows() == {}


def test_nobody_waits_for_the_answer_to_what_was_never_asked(application, on_loop, settings):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=things))

    async def main() -> Any:
        client = await remembered(application)
        async with client.call("asks", id="late") as connection:
            answer = await connection.json()
            assert connection.status == 200
        await until(lambda: site.gates.left, ["asked"])
        return answer

    assert on_loop(main())["error"]["code"] == -32001


@pytest.mark.parametrize("seconds", [0, 10])
def test_nobody_changes_what_the_client_has_said_of_itself(application, on_loop, settings, seconds):
    """Neither for later calls nor for another session, whose client says the same."""
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "SESSION_CACHE_SECONDS": seconds}

    async def main() -> list[Any]:
        one, other = [await Client(application).open(roots={}) for _ in range(2)]
        return [await each.result("scribble") for each in (one, one, other, one)]

    info = CLIENT_INFO
    for result in on_loop(main()):
        assert result["structuredContent"]["result"] == [info, {"roots": {}}] * 2


def test_nothing_is_subscribed_to_listened_to_or_set(application, on_loop, settings):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=things))

    async def main() -> Any:
        client = await remembered(application)
        found = []
        for method, params in (
            ("resources/subscribe", {"uri": "thing://one"}),
            ("logging/setLevel", {"level": "error"}),
        ):
            async with client.post(method, id=method, **params) as answer:
                found.append((answer.status, await answer.json()))
        async with client.listen() as stream:
            found.append((stream.status, await stream.json()))
        return found

    found = on_loop(main())
    assert [error["error"]["code"] for _, error in found] == [-32001] * len(found)
    assert {status for status, _ in found} <= {200, 404}
    assert rows() == {}
    assert Session.objects.get().log_level == "info"


def test_who_ends_it_is_answered_as_ever(application, on_loop):
    async def main() -> Any:
        client = await remembered(application)
        async with client.request("DELETE") as answer:
            return answer.status

    assert on_loop(main()) == 404


def test_it_is_over_at_once_where_it_ends_here(application, on_loop):
    async def main() -> Any:
        client = await Client(application).open()
        await client.result("echo")
        async with client.request("DELETE") as ended:
            pass
        async with client.post("ping") as after:
            return ended.status, after.status

    assert on_loop(main()) == (204, 404)
