"""The OAuth provider of the official Python SDK 1.x."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import story
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.auth import OAuthClientMetadata
from storage import Storage


class Teller(story.Teller):
    """A client in a session."""

    session: ClientSession
    provider: OAuthClientProvider

    async def come_back(self) -> tuple[str, str | None]:
        return self.back["code"], self.back.get("state")

    async def text_of(self, tool: str) -> str:
        result = await self.session.call_tool(tool, {}, progress_callback=self.hear_progress)
        return str(result.content[0].text)

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def hear_progress(self, *args: Any) -> None:
        self.waiting.set()

    def is_expired(self) -> bool:
        expiry = self.provider.context.token_expiry_time
        return expiry is not None and time.time() > expiry


@asynccontextmanager
async def connect(url: str, client_id: str, callback: str) -> AsyncIterator[Teller]:
    teller = Teller()
    more = {} if client_id == "registration" else {"client_metadata_url": client_id}
    teller.provider = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="Python SDK 1", redirect_uris=[callback], token_endpoint_auth_method="none"
        ),
        storage=Storage(),
        redirect_handler=teller.visit,
        callback_handler=teller.come_back,
        **more,
    )
    async with (
        streamablehttp_client(url, auth=teller.provider) as (read, write, _),
        ClientSession(read, write, timedelta(seconds=story.SECONDS)) as teller.session,
    ):
        await teller.session.initialize()
        yield teller


if __name__ == "__main__":
    story.run(connect)
