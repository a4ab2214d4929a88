"""The official SDK's OAuth providers, as the login of a client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from django_mcp.client import Client, SyncClient

from .authorization_server import (
    BASE_SCOPE,
    CALLBACK,
    AuthorizationServer,
    Browser,
    GuardedEndpoint,
    serving,
)


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


@pytest.fixture
def endpoint() -> Iterator[GuardedEndpoint]:
    """A server that asks for a login, with its authorization server."""
    with ExitStack() as stack:
        authority = AuthorizationServer()
        stack.enter_context(serving(authority))
        made = GuardedEndpoint(authority)
        stack.enter_context(serving(made))
        yield made


def provider(
    endpoint: GuardedEndpoint, browser: Browser, storage: Storage | None = None
) -> OAuthClientProvider:
    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**browser.answer)

    return OAuthClientProvider(
        server_url=endpoint.url,
        client_metadata=OAuthClientMetadata(
            redirect_uris=[AnyUrl(CALLBACK)], token_endpoint_auth_method="none"
        ),
        storage=storage or Storage(),
        redirect_handler=browser.visit,
        callback_handler=come_back,
    )


def words(result: Any) -> str:
    return str(result.content[0].text)


async def test_a_person_logs_in_once_for_all_calls(endpoint: GuardedEndpoint) -> None:
    browser = Browser()
    async with Client(endpoint.url, auth=provider(endpoint, browser)) as client:
        for _ in range(3):
            assert words(await client.call_tool(BASE_SCOPE)) == "done"
    assert endpoint.calls == [BASE_SCOPE] * 3
    (visit,) = browser.visits
    assert visit["resource"] == endpoint.url
    assert visit["scope"] == BASE_SCOPE


def test_so_it_does_in_the_client_for_threads(endpoint: GuardedEndpoint) -> None:
    browser = Browser()
    with SyncClient(endpoint.url, auth=provider(endpoint, browser)) as client:
        assert words(client.call_tool(BASE_SCOPE)) == "done"
    assert len(browser.visits) == 1


async def test_a_token_that_has_run_out_is_renewed_without_the_person(
    endpoint: GuardedEndpoint,
) -> None:
    browser = Browser()
    endpoint.authority.lifetime = -1
    async with Client(endpoint.url, auth=provider(endpoint, browser)) as client:
        endpoint.authority.lifetime = 3600
        await client.call_tool(BASE_SCOPE)
    forms = [asked.form for asked in endpoint.authority.seen if asked.path == "/token"]
    assert [form["grant_type"] for form in forms] == ["authorization_code", "refresh_token"]
    assert len(browser.visits) == 1


async def test_a_machine_logs_in_by_a_secret(endpoint: GuardedEndpoint) -> None:
    login = ClientCredentialsOAuthProvider(
        server_url=endpoint.url,
        storage=Storage(),
        client_id="shop",
        client_secret="s3cret",
        issuer=endpoint.authority.origin,
    )
    async with Client(endpoint.url, auth=login) as client:
        await client.call_tool(BASE_SCOPE)
    assert endpoint.calls == [BASE_SCOPE]
    assert all("s3cret" not in str(asked) for asked in endpoint.seen)


async def test_a_stored_login_is_good_for_another_process(endpoint: GuardedEndpoint) -> None:
    browser, storage = Browser(), Storage()
    async with Client(endpoint.url, auth=provider(endpoint, browser, storage)) as client:
        await client.call_tool(BASE_SCOPE)
    async with Client(endpoint.url, auth=provider(endpoint, browser, storage)) as client:
        await client.call_tool(BASE_SCOPE)
    assert len(browser.visits) == 1


async def test_a_stored_login_is_renewed_where_it_came_from(endpoint: GuardedEndpoint) -> None:
    """What the SDK does not keep itself has to be put back: when it ends, and who renews it."""
    browser, storage = Browser(), Storage()
    first = provider(endpoint, browser, storage)
    async with Client(endpoint.url, auth=first) as client:
        await client.call_tool(BASE_SCOPE)
    endpoint.authority.resource_of.clear()
    second = provider(endpoint, browser, storage)
    second.context.oauth_metadata = first.context.oauth_metadata
    second.context.protected_resource_metadata = first.context.protected_resource_metadata
    second.context.token_expiry_time = time.time() - 1
    async with Client(endpoint.url, auth=second) as client:
        await client.call_tool(BASE_SCOPE)
    assert len(browser.visits) == 1
    assert [asked.path for asked in endpoint.seen if asked.path == "/token"] == []
