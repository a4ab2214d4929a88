"""Google's Agent Development Kit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import steps
from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.sessions import InMemorySessionService
from google.adk.tools import ToolContext
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from mcp.types import ElicitResult


class Tour(steps.Tour):
    """An agent's tools."""

    toolset: McpToolset
    context: ToolContext
    offered: dict[str, Any]

    async def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self.result_of(tool, arguments))["content"][0]["text"]

    async def result_of(self, tool: str, arguments: dict[str, Any]) -> Any:
        return await self.offered[tool].run_async(args=arguments, tool_context=self.context)

    async def tools(self) -> dict[str, Any]:
        self.offered = {tool.name: tool for tool in await self.toolset.get_tools()}
        return {name: tool.raw_mcp_tool.input_schema for name, tool in self.offered.items()}

    async def resource(self) -> str:
        (contents,) = await self.toolset.read_resource("catalogue")
        return contents.text

    async def answer(self, context: Any, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        return ElicitResult(action="accept", content=steps.LOAN)

    async def failing(self, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self.result_of("renew", arguments)
        return {"is_error": result["isError"], "text": result["content"][0]["text"]}


@asynccontextmanager
async def connect(url: str, mode: str, wanted: list[str]) -> AsyncIterator[Tour]:
    tour = Tour()
    sessions = InMemorySessionService()
    invocation = InvocationContext(
        session_service=sessions,
        invocation_id="1",
        agent=LlmAgent(name="reader"),
        session=await sessions.create_session(app_name="library", user_id="ada"),
    )
    tour.context = ToolContext(invocation)
    tour.toolset = McpToolset(
        connection_params=StreamableHTTPConnectionParams(url=url, timeout=steps.SECONDS),
        progress_callback=tour.hear_progress,
        elicitation_callback=tour.answer,
    )
    yield tour
    await tour.toolset.close()


if __name__ == "__main__":
    steps.run(connect)
