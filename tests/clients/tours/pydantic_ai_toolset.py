"""Pydantic AI's toolset, on FastMCP's client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import steps
from mcp.types import ElicitResult
from pydantic_ai import ModelRetry
from pydantic_ai.mcp import MCPToolset


class Tour(steps.Tour):
    """An agent's tools."""

    toolset: MCPToolset

    async def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        return str(await self.toolset.direct_call_tool(tool, arguments))

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool.input_schema for tool in await self.toolset.list_tools()}

    async def resource(self) -> str:
        return str(await self.toolset.read_resource(steps.CATALOGUE))

    async def prompt(self) -> str:
        (message,) = (await self.toolset.get_prompt("review", steps.REVIEW)).messages
        return message.content.content

    async def hear_log(self, message: Any) -> None:
        self.heard_logs.append(message.level)

    async def answer(self, message: str, response_type: Any, params: Any, context: Any) -> Any:
        self.asked.append(message)
        return ElicitResult(action="accept", content=steps.LOAN)

    async def failing(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """It asks the model to try again, with what the tool says."""
        try:
            await self.toolset.direct_call_tool("renew", arguments)
        except ModelRetry as retry:
            return {"is_error": True, "text": retry.message}
        return {"is_error": False}


@asynccontextmanager
async def connect(url: str, mode: str, wanted: list[str]) -> AsyncIterator[Tour]:
    tour = Tour()
    async with MCPToolset(
        url,
        progress_handler=tour.hear_progress,
        log_handler=tour.hear_log,
        log_level="debug",
        elicitation_handler=tour.answer,
        read_timeout=steps.SECONDS,
    ) as tour.toolset:
        yield tour


if __name__ == "__main__":
    steps.run(connect)
