"""LangChain's adapters, which open a session for each call of a tool."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import steps
from langchain_core.tools import BaseTool
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.types import ElicitResult


class Tour(steps.Tour):
    """An agent's tools."""

    client: MultiServerMCPClient
    offered: dict[str, BaseTool]

    async def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self.message_of(tool, arguments)).content[0]["text"]

    async def message_of(self, tool: str, arguments: dict[str, Any]) -> Any:
        call = {"type": "tool_call", "id": "1", "name": tool, "args": arguments}
        return await self.offered[tool].ainvoke(call)

    async def tools(self) -> dict[str, Any]:
        self.offered = {tool.name: tool for tool in await self.client.get_tools()}
        return {name: tool.args_schema for name, tool in self.offered.items()}

    async def resource(self) -> str:
        (blob,) = await self.client.get_resources("library", uris=[steps.CATALOGUE])
        return blob.as_string()

    async def prompt(self) -> str:
        (message,) = await self.client.get_prompt("library", "review", arguments=steps.REVIEW)
        return message.content

    async def hear_log(self, params: Any, context: Any) -> None:
        self.heard_logs.append(params.level)

    async def answer(self, request: Any, params: Any, context: Any) -> ElicitResult:
        self.asked.append(params.message)
        return ElicitResult(action="accept", content=steps.LOAN)

    async def failing(self, arguments: dict[str, Any]) -> dict[str, Any]:
        message = await self.message_of("renew", arguments)
        return {"is_error": message.status == "error", "text": message.content[0]["text"]}


@asynccontextmanager
async def connect(url: str, mode: str, wanted: list[str]) -> AsyncIterator[Tour]:
    tour = Tour()
    tour.client = MultiServerMCPClient(
        {"library": {"url": url, "transport": "streamable_http"}},
        callbacks=Callbacks(
            on_progress=tour.hear_progress,
            on_logging_message=tour.hear_log,
            on_elicitation=tour.answer,
        ),
    )
    yield tour


if __name__ == "__main__":
    steps.run(connect)
