"""FastMCP's login, which opens a browser itself and listens for its answer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import story
from fastmcp import Client
from fastmcp.client.auth import OAuth


class Teller(story.Teller):
    """A client of revision 2026-07-28."""

    client: Client
    login: OAuth

    async def text_of(self, tool: str) -> str:
        result = await self.client.call_tool(tool, {})
        return str(result.content[0].text)

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def hear_progress(self, *args: Any) -> None:
        self.waiting.set()

    def is_expired(self) -> bool:
        expiry = self.login.context.token_expiry_time
        return expiry is not None and time.time() > expiry


@asynccontextmanager
async def connect(url: str, client_id: str, callback: str) -> AsyncIterator[Teller]:
    teller = Teller()
    more = {} if client_id == "registration" else {"client_metadata_url": client_id}
    teller.login = OAuth(url, client_name="FastMCP", callback_port=urlsplit(callback).port, **more)
    async with Client(
        url, auth=teller.login, progress_handler=teller.hear_progress, timeout=story.SECONDS
    ) as teller.client:
        yield teller


if __name__ == "__main__":
    story.run(connect)
