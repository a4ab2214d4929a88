"""mcp-remote, as a client starts it that has stdio alone; it opens a browser itself.

The client is the Python SDK's; what logs in is in a process of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import story
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


class Teller(story.Teller):
    """A client in a session, through the proxy."""

    session: ClientSession

    async def text_of(self, tool: str) -> str:
        result = await self.session.call_tool(tool, {}, progress_callback=self.hear_progress)
        return str(result.content[0].text)

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def hear_progress(self, *args: Any) -> None:
        self.waiting.set()

    async def expire(self) -> None:
        """Let the time pass: what the proxy knows of its token cannot be asked."""
        await asyncio.sleep(int(os.environ["LIFETIME"]) + 0.5)


@asynccontextmanager
async def connect(url: str, client_id: str, callback: str) -> AsyncIterator[Teller]:
    teller = Teller()
    more = [] if client_id == "registration" else ["--client-metadata-url", client_id]
    port = str(urlsplit(callback).port)
    proxy = StdioServerParameters(
        command=os.environ["NODE"],
        args=[os.environ["MCP_REMOTE"], url, port, "--host", "127.0.0.1", *more],
        env=dict(os.environ),
    )
    async with (
        stdio_client(proxy) as (read, write),
        ClientSession(read, write, timedelta(seconds=story.SECONDS)) as teller.session,
    ):
        await teller.session.initialize()
        yield teller


if __name__ == "__main__":
    story.run(connect)
