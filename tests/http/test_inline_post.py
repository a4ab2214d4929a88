"""Calls in the thread of their request: those of a batch have nothing to do with each other."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from django_mcp import Context, MCPServer
from django_mcp.testing import MCPClient
from tests.support.messages import request

pytestmark = pytest.mark.django_db
server = MCPServer("inline", version="1")


@server.tool(timeout=0.05)
def linger(ctx: Context) -> str:
    """Say something for longer than this may take."""
    while True:
        ctx.log("info", "still here")
        time.sleep(0.01)


@server.tool
def speak(ctx: Context) -> str:
    """Say something."""
    ctx.log("info", "hello")
    return "said"


def test_a_call_of_a_batch_that_is_ended_ends_no_other():
    client = MCPClient(server=server, revision="2025-03-26", log_level="info")
    client.initialize()
    calls = [
        request("tools/call", number, name=name, arguments={})
        for number, name in enumerate(("linger", "speak"), 1)
    ]
    content = client.http("POST", json.dumps(calls).encode()).content.decode()
    events: list[Any] = [
        json.loads(line[6:]) for line in content.split("\n") if line.startswith("data: ")
    ] or json.loads(content)
    found = {each["id"]: each for each in events if "id" in each}
    assert "did not finish within" in found[1]["result"]["content"][0]["text"]
    assert found[2]["result"]["content"][0]["text"] == "said"
