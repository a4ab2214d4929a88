"""Calls that take longer than they may."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from django_mcp.models import PendingRequest
from django_mcp.testing import MCPClient
from tests.support.client import Client
from tests.support.waiting import in_thread, until

from . import site

TOO_LATE = "The tool did not finish within 0.3 seconds."


@pytest.mark.usefixtures("atomic_requests")
@pytest.mark.parametrize("says", [True, False], ids=["speaks", "is silent"])
def test_a_synchronous_call_is_answered_in_time_and_leaves_nothing(application, on_loop, says):
    async def main():
        client = await Client(application).open()
        result = await client.result("too_long", says=says)
        # Answered while the function still runs; it ends at its next word, or with its scope.
        assert site.gates.left == []
        site.gates.open("too long")
        await until(lambda: site.gates.left, ["too long"])
        # The thread is free again only when the transaction has ended.
        for _ in range(4):
            await client.result("echo")
        return result, await in_thread(Group.objects.count)

    result, groups = on_loop(main())
    assert (result["isError"], result["content"][0]["text"]) == (True, TOO_LATE)
    assert groups == 0


@pytest.mark.parametrize("tool", ["asks_too_long", "aasks_too_long"])
def test_a_question_ends_with_its_call(application, on_loop, tool):
    async def main():
        client = await Client(application).open(elicitation={})
        async with client.call(tool) as connection:
            question, *rest = await connection.messages()
        await until(lambda: site.gates.left, ["asked"])
        return question, rest

    question, (withdrawn, answer) = on_loop(main())
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == question["id"]
    assert answer["result"]["content"][0]["text"] == TOO_LATE
    assert not PendingRequest.objects.filter(state="running").exists()


@pytest.mark.usefixtures("atomic_requests")
@pytest.mark.parametrize("says", [True, False], ids=["speaks", "is silent"])
def test_inline_it_fails_when_it_ends_and_leaves_nothing(says):
    # In the thread of the request nobody can answer before the function ends.
    answer = MCPClient(site.server).tool("until_stopped", says=says)
    answer.assert_failed(TOO_LATE)
    assert not Group.objects.exists()


def test_inline_a_call_in_time_is_not_disturbed():
    MCPClient(site.server).tool("in_time").assert_ok()
