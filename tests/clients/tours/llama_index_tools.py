"""LlamaIndex' tools, each call of which is a session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import steps
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


class Tour(steps.Tour):
    """An agent's tools."""

    client: BasicMCPClient
    offered: dict[str, Any]

    async def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self.result_of(tool, arguments)).content[0].text

    async def result_of(self, tool: str, arguments: dict[str, Any]) -> Any:
        return (await self.offered[tool].acall(**arguments)).raw_output

    async def tools(self) -> dict[str, Any]:
        tools = await McpToolSpec(self.client).to_tool_list_async()
        self.offered = {tool.metadata.name: tool for tool in tools}
        return {name: tool.metadata.get_parameters_dict() for name, tool in self.offered.items()}

    async def resource(self) -> str:
        (contents,) = (await self.client.read_resource(steps.CATALOGUE)).contents
        return contents.text

    async def prompt(self) -> str:
        (message,) = await self.client.get_prompt("review", steps.REVIEW)
        return message.content

    async def bind(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call by the client: what agents get has no place for progress."""
        self.heard_progress.clear()
        result = await self.client.call_tool("bind", arguments, self.hear_progress)
        return {"text": result.content[0].text, "progress": list(self.heard_progress)}

    async def failing(self, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self.result_of("renew", arguments)
        return {"is_error": result.is_error, "text": result.content[0].text}


@asynccontextmanager
async def connect(url: str, mode: str, wanted: list[str]) -> AsyncIterator[Tour]:
    tour = Tour()
    tour.client = BasicMCPClient(url)
    yield tour


if __name__ == "__main__":
    steps.run(connect)
