"""CrewAI's adapter, whose functions block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import steps
from crewai_tools import MCPServerAdapter


class Tour(steps.Tour):
    """An agent's tools."""

    offered: dict[str, Any]

    async def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        return await asyncio.to_thread(self.offered[tool].run, **arguments)

    async def tools(self) -> dict[str, Any]:
        return {name: tool.args_schema.model_json_schema() for name, tool in self.offered.items()}

    async def failing(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the text, which is all that an agent gets."""
        return {"is_error": None, "text": await self.text_of("renew", arguments)}


@asynccontextmanager
async def connect(url: str, mode: str, wanted: list[str]) -> AsyncIterator[Tour]:
    tour = Tour()
    with MCPServerAdapter({"url": url, "transport": "streamable-http"}) as tools:
        tour.offered = {tool.name: tool for tool in tools}
        yield tour


if __name__ == "__main__":
    steps.run(connect)
