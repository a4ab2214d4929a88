"""This project's client and a server of the official Python SDK, in both eras."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from django_mcp.client import Client, RemoteError
from tests.support.servers import (
    CHECKOUT,
    HOST,
    STOP_SECONDS,
    RunningServer,
    free_port,
    wait_until_ready,
)

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("client-official")]

MODERN = "2026-07-28"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    log, port = tmp_path_factory.mktemp("official") / "log", free_port()
    command = ["uvicorn", "--log-level", "warning", "--host", HOST, "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command, "tests.client.official:app"],
            cwd=CHECKOUT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        running = RunningServer(process, port, Path(log))
        wait_until_ready(running)
        yield running
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


@pytest.fixture(params=["2025-06-18", "2025-11-25", MODERN])
def client(request: pytest.FixtureRequest, server: RunningServer) -> Client:
    return Client(
        server.url, revision=request.param, timeout=30, on_elicit=lambda form: {"number": 7}
    )


async def test_the_newest_revision_is_found_out(server: RunningServer) -> None:
    async with Client(server.url) as client:
        assert client.revision == MODERN
        assert client.instructions == "Ask nicely."
        assert client.server_info is not None
        assert client.server_info.name == "official"


async def test_tools_are_called(client: Client) -> None:
    async with client:
        assert {tool.name for tool in await client.list_tools()} >= {"add", "book"}
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert result.structured_content == {"result": 5}
        assert (await client.call_tool("add", {"a": "two"})).is_error
        await client.ping()


async def test_progress_is_heard(client: Client) -> None:
    heard: list[float] = []
    async with client:
        await client.call_tool(
            "count", {"to": 3}, on_progress=lambda done, total, message: heard.append(done)
        )
    assert heard == [1, 2, 3]


async def test_questions_are_answered(client: Client) -> None:
    async with client:
        result = await client.call_tool("book")
        assert result.content[0].text == "table 7"  # type: ignore[union-attr]


async def test_resources_and_prompts_are_read(client: Client) -> None:
    async with client:
        contents = (await client.read_resource("note://one")).contents
        assert contents[0].text == "note one"  # type: ignore[union-attr]
        assert [prompt.name for prompt in await client.list_prompts()] == ["greet"]
        prompt = await client.get_prompt("greet", {"name": "Ada"})
        assert prompt.messages[0].content.text == "Greet Ada."  # type: ignore[union-attr]
        with pytest.raises(RemoteError):
            await client.get_prompt("nobody")


async def test_changes_are_heard(client: Client) -> None:
    async with client, client.listen(tools=True) as changes:
        await client.call_tool("change")
        assert (await changes.next(10)).kind == "tools"


async def test_a_closed_stream_is_come_back_to(server: RunningServer) -> None:
    async with Client(server.url, revision="2025-11-25", timeout=30) as client:
        result = await client.call_tool("fetch")
        assert result.content[0].text == "fetched"  # type: ignore[union-attr]


async def test_calls_run_side_by_side(client: Client) -> None:
    async with client:
        calls = [client.call_tool("add", {"a": n, "b": n}) for n in range(20)]
        results = await asyncio.gather(*calls)
    assert [each.structured_content["result"] for each in results] == [2 * n for n in range(20)]
