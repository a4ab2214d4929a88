"""The official SDK's OAuth providers, as the login of a client."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from mcp.client.auth import OAuthClientProvider, OAuthTokenError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from django_mcp.client import (
    AuthenticationFailed,
    Client,
    LoginStorage,
    NotProcessed,
    SyncClient,
    UnexpectedAnswer,
)

from .authorization_server import (
    BASE_SCOPE,
    CALLBACK,
    AuthorizationServer,
    Browser,
    Elsewhere,
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


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    """A server that nobody has named."""
    made = Elsewhere()
    with serving(made):
        yield made


def provider(
    endpoint: GuardedEndpoint, browser: Browser, storage: Any = None
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


class Row:
    """What a row of a database would keep, as JSON."""

    def __init__(self) -> None:
        self.text = ""
        self.threads: set[str] = set()

    def load(self) -> dict[str, Any] | None:
        self.threads.add(threading.current_thread().name)
        return json.loads(self.text) if self.text else None

    def save(self, login: dict[str, Any]) -> None:
        self.threads.add(threading.current_thread().name)
        self.text = json.dumps(login)

    @property
    def storage(self) -> LoginStorage:
        """A storage of this row."""
        return LoginStorage(self.load, self.save)


async def test_a_stored_login_is_good_for_another_process(endpoint: GuardedEndpoint) -> None:
    browser, row = Browser(), Row()
    for _ in range(2):
        async with Client(endpoint.url, auth=provider(endpoint, browser, row.storage)) as client:
            await client.call_tool(BASE_SCOPE)
    assert len(browser.visits) == 1
    assert endpoint.authority.count("/register") == 1


@pytest.mark.parametrize("lifetime", [-1, 3600])
async def test_a_stored_login_is_renewed_where_it_came_from(
    endpoint: GuardedEndpoint, lifetime: int
) -> None:
    browser, row = Browser(), Row()
    endpoint.authority.lifetime = lifetime
    await Client(endpoint.url, auth=provider(endpoint, browser, row.storage)).open()
    login = row.load()
    assert login
    if lifetime > 0:
        row.save({**login, "expires_at": time.time() - 1})
    endpoint.authority.lifetime = 3600
    async with Client(endpoint.url, auth=provider(endpoint, browser, row.storage)) as client:
        await client.call_tool(BASE_SCOPE)
    assert len(browser.visits) == 1
    # Nor has the server seen what is the authorization server's alone.
    assert login["tokens"]["refresh_token"] not in str(endpoint.seen)
    assert (row.load() or {})["tokens"] != login["tokens"]


async def test_a_stored_login_is_not_used_for_another_server(endpoint: GuardedEndpoint) -> None:
    browser, row = Browser(), Row()
    await Client(endpoint.url, auth=provider(endpoint, browser, row.storage)).open()
    login = row.load()
    assert login
    other = GuardedEndpoint(endpoint.authority)
    with serving(other):
        async with Client(other.url, auth=provider(other, browser, row.storage)) as client:
            await client.call_tool(BASE_SCOPE)
    assert len(browser.visits) == 2
    assert login["tokens"]["access_token"] not in str(other.seen)


async def test_a_stored_login_does_not_go_to_another_authorization_server(
    endpoint: GuardedEndpoint,
) -> None:
    browser, row = Browser(), Row()
    await Client(endpoint.url, auth=provider(endpoint, browser, row.storage)).open()
    login = row.load()
    assert login
    other = AuthorizationServer()
    with serving(other):
        endpoint.authority = other
        async with Client(endpoint.url, auth=provider(endpoint, browser, row.storage)) as client:
            await client.call_tool(BASE_SCOPE)
    assert other.count("/register") == 1
    secrets = login["tokens"]["access_token"], login["tokens"]["refresh_token"]
    assert not [secret for secret in secrets if secret in str(other.seen)]
    assert (row.load() or {})["client"]["issuer"] == other.origin


async def test_a_registration_elsewhere_forgets_the_tokens_before_there_are_others(
    endpoint: GuardedEndpoint,
) -> None:
    row = Row()
    await Client(endpoint.url, auth=provider(endpoint, Browser(), row.storage)).open()
    storage = row.storage
    login = provider(endpoint, Browser(), storage)
    Client(endpoint.url, auth=login)
    registered = await storage.get_client_info()
    await storage.set_client_info(registered.model_copy(update={"issuer": "https://other.example"}))
    assert await storage.get_tokens() is None


@pytest.mark.parametrize("damage", [{"tokens": {"s3cret": 1}}, {"client": "s3cret"}])
async def test_a_stored_login_that_cannot_be_read_is_made_anew(
    endpoint: GuardedEndpoint, damage: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    row, browser = Row(), Browser()
    row.save({"server": endpoint.url, **damage})
    async with Client(endpoint.url, auth=provider(endpoint, browser, row.storage)) as client:
        await client.call_tool(BASE_SCOPE)
    assert len(browser.visits) == 1
    assert "cannot be read" in caplog.text
    assert "s3cret" not in caplog.text


def test_a_login_is_loaded_and_saved_in_the_thread_that_waits(endpoint: GuardedEndpoint) -> None:
    row = Row()
    with SyncClient(endpoint.url, auth=provider(endpoint, Browser(), row.storage)) as client:
        client.call_tool(BASE_SCOPE)
    assert row.threads == {threading.current_thread().name}


async def test_a_storage_without_a_provider_says_what_is_missing() -> None:
    with pytest.raises(RuntimeError, match="OAuthClientProvider"):
        await Row().storage.get_tokens()


async def test_a_call_that_needs_more_scopes_is_made_again_once_the_person_agrees(
    endpoint: GuardedEndpoint,
) -> None:
    browser = Browser()
    async with Client(endpoint.url, auth=provider(endpoint, browser)) as client:
        await client.call_tool(BASE_SCOPE)
        await client.call_tool("pay")
        await client.call_tool(BASE_SCOPE)
    assert endpoint.calls == [BASE_SCOPE, "pay", BASE_SCOPE]
    # What was granted before is asked for again: nothing is lost by what is gained.
    assert [visit["scope"] for visit in browser.visits] == [BASE_SCOPE, f"{BASE_SCOPE} pay"]


async def test_a_person_who_does_not_agree_is_not_asked_again(endpoint: GuardedEndpoint) -> None:
    browser = Browser()
    endpoint.authority.granted = {BASE_SCOPE}
    async with Client(endpoint.url, auth=provider(endpoint, browser)) as client:
        with pytest.raises(AuthenticationFailed, match="asks for the scopes pay") as refused:
            await client.call_tool("pay")
    assert (refused.value.status, refused.value.scope) == (403, "pay")
    assert endpoint.calls == []
    assert len(browser.visits) == 2


async def test_a_call_that_is_sent_elsewhere_does_not_take_its_token_along(
    endpoint: GuardedEndpoint, elsewhere: Elsewhere
) -> None:
    async with Client(endpoint.url, auth=provider(endpoint, Browser())) as client:
        endpoint.moved_to = f"{elsewhere.origin}/mcp"
        with pytest.raises(UnexpectedAnswer, match=f"sends to {elsewhere.origin}/mcp"):
            await client.call_tool(BASE_SCOPE)
    assert elsewhere.seen == []


async def test_nor_does_the_login_take_its_code_along(
    endpoint: GuardedEndpoint, elsewhere: Elsewhere
) -> None:
    endpoint.authority.moved_to = f"{elsewhere.origin}/token"
    with pytest.raises(OAuthTokenError, match="not followed"):
        await Client(endpoint.url, auth=provider(endpoint, Browser())).open()
    assert elsewhere.seen == []


async def test_the_login_of_one_server_is_not_shown_to_another(
    endpoint: GuardedEndpoint, elsewhere: Elsewhere
) -> None:
    with pytest.raises(ValueError, match="storage, of its own"):
        Client(f"{elsewhere.origin}/mcp", auth=provider(endpoint, Browser()))


async def test_a_token_that_no_header_can_hold_is_not_told_to_anybody(
    endpoint: GuardedEndpoint,
) -> None:
    class Broken(httpx.Auth):
        def auth_flow(
            self, request: httpx.Request
        ) -> Generator[httpx.Request, httpx.Response, None]:
            request.headers["Authorization"] = "Bearer s3cret\n"
            yield request

    with pytest.raises(NotProcessed, match="a character that none may have") as refused:
        await Client(endpoint.url, auth=Broken()).open()
    assert "s3cret" not in "".join(traceback.format_exception(refused.value))
    assert endpoint.seen == []
