"""FastMCP's client, which speaks both eras."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import steps
from fastmcp import Client
from fastmcp.exceptions import ToolError


class Tour(steps.Tour):
    """A client that has negotiated the newest revision."""

    client: Client

    async def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        meta = {"io.modelcontextprotocol/logLevel": "debug"}
        result = await self.client.call_tool(tool, arguments, meta=meta)
        return result.content[0].text

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool.input_schema for tool in await self.client.list_tools()}

    async def resource(self) -> str:
        (contents,) = await self.client.read_resource(steps.CATALOGUE)
        return contents.text

    async def prompt(self) -> str:
        (message,) = (await self.client.get_prompt("review", steps.REVIEW)).messages
        return message.content.text

    async def hear_log(self, message: Any) -> None:
        self.heard_logs.append(message.level)

    async def answer(self, message: str, response_type: Any, params: Any, context: Any) -> Any:
        self.asked.append(message)
        return response_type(**steps.LOAN)

    async def failing(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """It raises what a tool says of its failure, for code that calls it."""
        try:
            await self.client.call_tool("renew", arguments)
        except ToolError as error:
            return {"is_error": True, "text": str(error)}
        return {"is_error": False}


class TourInASession(Tour):
    """A client of revision 2025-11-25, in which a session has a level of log messages."""

    async def logs(self) -> list[str]:
        await self.client.set_logging_level("debug")
        return await super().logs()


@asynccontextmanager
async def connect(url: str, mode: str, wanted: list[str]) -> AsyncIterator[Tour]:
    tour = Tour() if mode == "auto" else TourInASession()
    async with Client(
        url,
        mode=mode,
        elicitation_handler=tour.answer,
        log_handler=tour.hear_log,
        progress_handler=tour.hear_progress,
        timeout=steps.SECONDS,
    ) as tour.client:
        yield tour


if __name__ == "__main__":
    steps.run(connect)
