"""Over real sockets: the official SDK logs in; what is open ends when the access does."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import httpx2
import pytest
import uvicorn
from allauth.idp.oidc.models import Client as OAuthClient
from allauth.idp.oidc.models import Token
from django.contrib.auth import get_user_model
from django.core.asgi import get_asgi_application
from django.utils import timezone
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

from django_mcp.asgi import mount
from tests.support.client import StatelessClient
from tests.support.messages import META_LOG_LEVEL
from tests.support.servers import free_port
from tests.support.sites import run
from tests.support.waiting import BOUND, in_thread

from .login import CALLBACK, Browser, registered, row

pytestmark = pytest.mark.django_db(transaction=True)


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


class Person:
    """Whom the client sends to the page on which people consent, with a browser of their own."""

    def __init__(self, user: Any) -> None:
        browser = Browser()
        browser.force_login(user)
        self.cookies = {name: each.value for name, each in browser.cookies.items()}
        self.visits: list[dict[str, list[str]]] = []
        self.answer: dict[str, str] = {}

    async def visit(self, url: str) -> None:
        self.visits.append(parse_qs(urlsplit(url).query))
        async with httpx.AsyncClient(cookies=self.cookies, trust_env=False) as browser:
            page = await browser.get(url)
            assert page.status_code == 200, page.text
            form = {
                name: unescape(value)
                for name, value in re.findall(r'name="(\w+)"\s+value="(.*?)"', page.text)
                if name in ("request", "csrfmiddlewaretoken")
            }
            scopes = re.findall(r'name="scopes" value="(.+?)"', page.text)
            given = {**form, "scopes": scopes, "action": "grant"}
            answer = await browser.post(urljoin(url, urlsplit(url).path), data=given)
        there = answer.headers["Location"]
        assert there.startswith(f"{CALLBACK}?"), there
        self.answer = {name: each[0] for name, each in parse_qs(urlsplit(there).query).items()}

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**self.answer)

    def asked_for(self) -> list[str]:
        return [" ".join(sorted(each["scope"][0].split())) for each in self.visits]


@pytest.fixture
def origin(settings) -> str:
    """Where the site is."""
    found = f"http://127.0.0.1:{free_port()}"
    keys = {"BASE_URL": found, "AUTHORIZATION_SERVERS": [found]}
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **keys}
    return found


@asynccontextmanager
async def serving(origin: str) -> AsyncIterator[None]:
    application: Any = mount(get_asgi_application())
    port = urlsplit(origin).port or 0
    config = uvicorn.Config(application, port=port, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())
    async with asyncio.timeout(BOUND):
        while not server.started:
            await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        await task


def provider(origin: str, person: Person, storage: Storage, **more: Any) -> OAuthClientProvider:
    method = more.pop("method", "none")
    return OAuthClientProvider(
        server_url=f"{origin}/mcp",
        client_metadata=OAuthClientMetadata(
            client_name="SDK",
            redirect_uris=[AnyUrl(CALLBACK)],
            token_endpoint_auth_method=method,
        ),
        storage=storage,
        redirect_handler=person.visit,
        callback_handler=person.come_back,
        **more,
    )


@asynccontextmanager
async def connected(origin: str, login: OAuthClientProvider) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(auth=login, timeout=BOUND, trust_env=False) as http:
        transport = streamable_http_client(f"{origin}/mcp", http_client=http)
        async with Client(transport, read_timeout_seconds=BOUND) as client:
            yield client


async def said(client: Client, tool: str) -> str:
    return str((await client.call_tool(tool)).content[0].text)  # type: ignore[union-attr]


@pytest.mark.parametrize("method", ["none", "client_secret_basic", "client_secret_post"])
def test_the_official_sdk_logs_in(anna, origin, method):
    person, storage = Person(anna), Storage()

    login = provider(origin, person, storage, method=method)

    async def main() -> None:
        async with serving(origin), connected(origin, login) as client:
            assert storage.client is not None
            expected = f"anna oauth:{storage.client.client_id} orders:read"
            assert await said(client, "whoami") == expected
            # Not allowed yet: it asks for more, and goes on by itself.
            assert await said(client, "ship") == "Shipped"
            assert storage.tokens is not None
            first = storage.tokens.access_token
            await in_thread(expire_all)
            login.context.token_expiry_time = 1
            assert await said(client, "ship") == "Shipped"
            assert storage.tokens.access_token != first

    run(main())
    assert person.asked_for() == ["orders:read", "orders:read orders:write"]
    assert {tuple(each["resource"]) for each in person.visits} == {(f"{origin}/mcp",)}


def expire_all() -> None:
    tokens = Token.objects.filter(type=Token.Type.ACCESS_TOKEN)
    tokens.update(expires_at=timezone.now() - timedelta(seconds=1))


def test_the_official_sdk_logs_in_with_a_document(anna, origin, documents):
    person, storage = Person(anna), Storage()
    client_id = documents.show()

    async def main() -> None:
        login = provider(origin, person, storage, client_metadata_url=client_id)
        async with serving(origin), connected(origin, login) as client:
            assert await said(client, "whoami") == f"anna oauth:{client_id} orders:read"

    run(main())
    assert list(OAuthClient.objects.values_list("pk", flat=True)) == [client_id]


# What is open


def revoke(token: Token) -> None:
    token.delete()


def delete_client(token: Token) -> None:
    assert token.client
    token.client.delete()


def deactivate(token: Token) -> None:
    get_user_model().objects.filter(pk=token.user_id).update(is_active=False)


def log_out(token: Token) -> None:
    """As allauth does where a client asks for it."""
    Token.objects.filter(user=token.user, client=token.client).delete()


def call(name: str) -> StatelessClient:
    client = StatelessClient(mount(get_asgi_application()), Authorization=f"Bearer {name}")
    return client.call("wait", meta={META_LOG_LEVEL: "info", "progressToken": name})


@pytest.mark.parametrize("end", [revoke, delete_client, deactivate, log_out])
def test_what_is_open_ends_when_the_access_does(anna, end):
    bob = get_user_model().objects.create_user("bob")
    token = row(anna, registered(), "of anna")
    row(bob, registered(), "of bob")

    async def main() -> float:
        async with call("of anna") as mine, call("of bob") as other:
            assert (await mine.message())["method"] == "notifications/progress"
            assert (await other.message())["method"] == "notifications/progress"
            await in_thread(end, token)
            began = time.monotonic()
            last = await mine.message()
            took = time.monotonic() - began
            assert last["error"]["message"].startswith("Access was revoked"), last
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.7):
                    await other.message()
        return took

    assert run(main()) < 2


def test_what_is_open_goes_on_while_its_token_can_be_renewed(anna):
    client = registered()
    row(anna, client, "short", lasts=1.5)
    row(anna, registered(), "not renewed", lasts=1.5)
    renewing = row(anna, client, "renews", type=Token.Type.REFRESH_TOKEN, lasts=None)

    async def main() -> None:
        async with call("short") as mine, call("not renewed") as other:
            assert (await mine.message())["method"] == "notifications/progress"
            assert (await other.message())["method"] == "notifications/progress"
            assert "error" in await other.message()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.7):
                    await mine.message()
            await in_thread(renewing.delete)
            assert "error" in await mine.message()

    run(main())
