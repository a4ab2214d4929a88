"""Strands' client, whose functions block."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event
from typing import Any

import steps
from mcp.types import ElicitResult
from strands.tools.mcp import MCPClient


class Tour(steps.Tour):
    """An agent's tools."""

    client: MCPClient

    async def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self.result_of(tool, arguments))["content"][0]["text"]

    async def result_of(self, tool: str, arguments: dict[str, Any], **options: Any) -> Any:
        return await self.blocking(self.client.call_tool_sync, "use-1", tool, arguments, **options)

    async def blocking(self, function: Any, *arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(function, *arguments, **options)

    async def tools(self) -> dict[str, Any]:
        tools = await self.blocking(self.client.list_tools_sync)
        return {tool.tool_name: tool.tool_spec["inputSchema"]["json"] for tool in tools}

    async def resource(self) -> str:
        (contents,) = (
            await self.blocking(self.client.read_resource_sync, steps.CATALOGUE)
        ).contents
        return contents.text

    async def prompt(self) -> str:
        prompt = await self.blocking(self.client.get_prompt_sync, "review", steps.REVIEW)
        (message,) = prompt.messages
        return message.content.text

    async def answer(self, context: Any, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        return ElicitResult(action="accept", content=steps.LOAN)

    async def failing(self, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self.result_of("renew", arguments)
        return {"is_error": result["status"] == "error", "text": result["content"][0]["text"]}

    async def cancellation(self) -> bool:
        name, stop = f"doze {uuid.uuid4()}", Event()
        calling = asyncio.create_task(self.result_of("doze", {"name": name}, cancel_signal=stop))
        await self.noted(f"{name} began")
        stop.set()
        return (await calling)["cancelled"] and await self.noted(name)


@asynccontextmanager
async def connect(url: str, mode: str, wanted: list[str]) -> AsyncIterator[Tour]:
    tour = Tour()
    tour.client = MCPClient(
        url=url, elicitation_callback=tour.answer, progress_callback=tour.hear_progress
    )
    with tour.client:
        yield tour


if __name__ == "__main__":
    steps.run(connect)
