"""Functions that raise what is meant for whoever runs them, though nobody has ended the call."""

from __future__ import annotations

import asyncio
import sys

import pytest

from django_mcp import Context
from tests.support.client import Client
from tests.support.lasting import last

from . import site


@site.server.tool
async def lose_a_task(ctx: Context, says: bool) -> None:
    """Wait for a task that is cancelled meanwhile."""
    if says:
        await ctx.alog("info", "waiting")
        await asyncio.to_thread(last, ctx)
    task = asyncio.ensure_future(asyncio.sleep(site.BOUND))
    asyncio.get_running_loop().call_soon(task.cancel)
    await task


@site.server.tool
def lose_a_loop(ctx: Context, says: bool) -> None:
    """Do the same on a loop of its own."""
    if says:
        ctx.log("info", "waiting")
        last(ctx)
    raise asyncio.CancelledError


@site.server.tool
def leave(ctx: Context, says: bool) -> None:
    """End as some commands do, which a tool may call."""
    if says:
        ctx.log("info", "leaving")
        last(ctx)
    sys.exit(1)


@pytest.mark.parametrize("tool", ["lose_a_task", "lose_a_loop", "leave"])
@pytest.mark.parametrize("says", [False, True])
def test_the_call_fails_and_its_client_is_told(application, on_loop, tool, says, caplog):

    async def main():
        client = await Client(application).open()
        async with client.call(tool, id="a", says=says) as connection:
            assert connection.is_stream is says
            return (await connection.messages())[-1] if says else await connection.json()

    answer = on_loop(main())
    assert answer["id"] == "a"
    assert answer["result"]["isError"] is True
    assert answer["result"]["content"][0]["text"].startswith("The tool failed. (reference ")
    raised = "SystemExit" if tool == "leave" else "CancelledError"
    assert f"the function raised {raised}" in caplog.text
