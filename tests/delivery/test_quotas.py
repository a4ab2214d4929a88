"""What may wait for a client: so many messages and bytes of a call, and a response always."""

from __future__ import annotations

from typing import Any

import pytest

from django_mcp.models import OutgoingMessage, PendingRequest
from django_mcp.testing import MCPClient
from tests.support.client import Client, StatelessClient
from tests.support.messages import META_LOG_LEVEL

from . import site

QUOTAS = [({"QUEUE_MESSAGES": 5}, 5), ({"QUEUE_BYTES": 300}, 3)]
"""Settings, and how many of the words of ``steps`` fit; one has 89 bytes."""


def words(messages: list[Any]) -> list[str]:
    return [each["params"]["data"] for each in messages if "method" in each]


@pytest.fixture(params=QUOTAS, ids=["messages", "bytes"])
def room(request: pytest.FixtureRequest, settings: Any) -> int:
    quota, fits = request.param
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **quota}
    return fits


@pytest.mark.parametrize("tool", ["steps", "asteps"])
def test_a_call_that_says_too_much_is_heard_as_far_as_there_is_room(
    application, on_loop, room, tool, caplog
):
    async def main():
        client = await Client(application).open()
        async with client.call(tool, count=20) as connection:
            return await connection.messages()

    *said, last = on_loop(main())
    assert len(said) == room
    assert words(said) == [str(number) for number in range(len(said))]
    assert last["result"]["content"][0]["text"] == "done"
    assert OutgoingMessage.objects.count() == len(said) + 1
    assert sum("says too much" in each.message for each in caplog.records) == 1


def test_questions_and_the_response_have_room_always(application, on_loop, settings):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "QUEUE_BYTES": 1, "QUEUE_MESSAGES": 1}

    async def main():
        client = await Client(application).open(elicitation={})
        async with client.call("question", text="x" * 1000) as connection:
            asked = await connection.message()
            answer = {"action": "accept", "content": {"name": "Ada"}}
            await client.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
            return await connection.message()

    assert on_loop(main())["result"]["content"][0]["text"] == "Ada"


@pytest.mark.parametrize("tool", ["question", "aquestion"])
def test_a_question_that_is_too_large_fails_in_the_function(application, on_loop, settings, tool):
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "MAX_RESULT_BYTES": 1000}

    async def main():
        client = await Client(application).open(elicitation={})
        async with client.call(tool, text="x" * 1000) as connection:
            if connection.is_stream:
                return (await connection.messages())[-1]
            return await connection.json()

    result = on_loop(main())["result"]
    assert result["isError"] is True
    assert "at most 1000 are sent" in result["content"][0]["text"]
    assert not PendingRequest.objects.filter(direction="to").exists()


def test_what_waits_in_memory_for_a_modern_client_has_the_same_bounds(application, on_loop, room):
    """2026-07-28: there are no rows. The client reads nothing before the call has said all."""

    async def main():
        client = StatelessClient(application)
        async with client.call("steps", meta={META_LOG_LEVEL: "info"}, count=20) as connection:
            return await connection.messages()

    *said, last = on_loop(main())
    # The stream shows them while the call says them, so that at the loop more than these may pass.
    assert room <= len(said) <= 20
    assert last["result"]["content"][0]["text"] == "done"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_without_streams_too(room, revision):
    """Behind WSGI what was said comes with the response."""
    client = MCPClient(site.server, revision=revision, log_level="info")
    answer = client.tool("steps", count=20)
    answer.assert_ok()
    assert len(answer.said) == room
