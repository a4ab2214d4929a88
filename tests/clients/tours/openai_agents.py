"""The OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import steps
from agents import RunContextWrapper
from agents.mcp import MCPServerStreamableHttp, MCPUtil


class Tour(steps.Tour):
    """An agent's tools."""

    url: str
    server: MCPServerStreamableHttp

    async def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self.server.call_tool(tool, arguments)).content[0].text

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool.input_schema for tool in await self.server.list_tools()}

    async def resource(self) -> str:
        (contents,) = (await self.server.read_resource(steps.CATALOGUE)).contents
        return contents.text

    async def prompt(self) -> str:
        (message,) = (await self.server.get_prompt("review", steps.REVIEW)).messages
        return message.content.text

    async def failing(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Have it done as an agent does, who reads the text."""
        (tool,) = [each for each in await self.server.list_tools() if each.name == "renew"]
        result = await MCPUtil.invoke_mcp_tool(
            self.server, tool, RunContextWrapper(context=None), json.dumps(arguments)
        )
        return {"is_error": None, "text": result["text"]}

    async def noted(self, name: str) -> bool:
        """Ask on a connection of its own: calls on one wait for each other."""
        async with connected(self.url) as server:
            while True:
                result = await server.call_tool("noted", {"name": name})
                if "true" in result.content[0].text:
                    return True
                await asyncio.sleep(0.05)


def connected(url: str) -> MCPServerStreamableHttp:
    return MCPServerStreamableHttp(
        {"url": url, "timeout": steps.SECONDS}, client_session_timeout_seconds=steps.SECONDS
    )


@asynccontextmanager
async def connect(url: str, mode: str, wanted: list[str]) -> AsyncIterator[Tour]:
    tour = Tour()
    tour.url = url
    async with connected(url) as tour.server:
        yield tour


if __name__ == "__main__":
    steps.run(connect)
