"""The OAuth provider of the official Python SDK 2.x."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import story
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from storage import Storage


class Teller(story.Teller):
    """A client of revision 2026-07-28."""

    client: Client
    provider: OAuthClientProvider

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            **{name: self.back[name] for name in ("code", "state", "iss")}
        )

    async def text_of(self, tool: str) -> str:
        result = await self.client.call_tool(tool, {}, progress_callback=self.hear_progress)
        return str(result.content[0].text)

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def hear_progress(self, *args: Any) -> None:
        self.waiting.set()

    def is_expired(self) -> bool:
        expiry = self.provider.context.token_expiry_time
        return expiry is not None and time.time() > expiry


@asynccontextmanager
async def connect(url: str, client_id: str, callback: str) -> AsyncIterator[Teller]:
    teller = Teller()
    teller.provider = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="Python SDK 2", redirect_uris=[callback], token_endpoint_auth_method="none"
        ),
        storage=Storage(),
        redirect_handler=teller.visit,
        callback_handler=teller.come_back,
        client_metadata_url=None if client_id == "registration" else client_id,
    )
    async with httpx2.AsyncClient(auth=teller.provider, timeout=story.SECONDS) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, read_timeout_seconds=story.SECONDS) as teller.client:
            yield teller


if __name__ == "__main__":
    story.run(connect)
