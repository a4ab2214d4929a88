"""Logins at a server: the official SDK finds its way from the endpoint's URL alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from tests.clients.logins.person import Person
from tests.logins.serving import LoginSite, running_site

pytestmark = pytest.mark.processes
BOUND = 60
CALLBACK = "http://127.0.0.1:3118/callback"


class Storage:
    """Keeps a login in memory."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.fixture(scope="module", params=["mount", "asgi-view", "wsgi"])
def site(request) -> Iterator[LoginSite]:
    with running_site(request.param) as found:
        yield found


@asynccontextmanager
async def connected(url: str, login: OAuthClientProvider) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(auth=login, timeout=BOUND, trust_env=False) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, read_timeout_seconds=BOUND) as client:
            yield client


def query_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


async def said(client: Client, tool: str) -> str:
    return str((await client.call_tool(tool)).content[0].text)


@pytest.mark.parametrize("method", ["none", "client_secret_basic", "client_secret_post"])
def test_the_official_sdk_logs_in_asks_for_more_and_refreshes(site, method):
    person, storage, urls = Person(), Storage(), []

    async def visit(url: str) -> None:
        urls.append((url, await asyncio.to_thread(person.agree, url)))

    async def come_back() -> AuthorizationCodeResult:
        _, back = urls[-1]
        return AuthorizationCodeResult(**query_of(back))

    login = OAuthClientProvider(
        server_url=site.url,
        client_metadata=OAuthClientMetadata(
            client_name="SDK",
            redirect_uris=[AnyUrl(CALLBACK)],
            token_endpoint_auth_method=method,
        ),
        storage=storage,
        redirect_handler=visit,
        callback_handler=come_back,
    )

    async def main() -> None:
        async with connected(site.url, login) as client:
            assert storage.client is not None
            expected = f"anna oauth:{storage.client.client_id} orders:read"
            assert await said(client, "whoami") == expected
            assert await said(client, "pay") == "Paid"
            assert storage.tokens is not None
            first = storage.tokens.access_token
            login.context.token_expiry_time = 1
            assert await said(client, "pay") == "Paid"
            assert storage.tokens.access_token != first

    asyncio.run(main())
    visits = [query_of(url) for url, _ in urls]
    asked = [" ".join(sorted(each["scope"].split())) for each in visits]
    assert asked == ["orders:read", "orders:read orders:write"]
    assert {each["resource"] for each in visits} == {site.url}
