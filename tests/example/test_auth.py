from __future__ import annotations

import base64
import hashlib
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import RequestFactory

from django_mcp.auth import Principal, Refusal
from django_mcp.contrib.tokens.models import Token
from example_project.support.auth import demo_auth
from tests.support.caller import Caller
from tests.support.entrances import open_entrance

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def debug(settings):
    settings.DEBUG = True


def call(*, address: str = "127.0.0.1", **headers: str) -> Principal | Refusal:
    request = RequestFactory().post(
        "/mcp",
        REMOTE_ADDR=address,
        headers={name.replace("_", "-"): v for name, v in headers.items()},
    )
    return demo_auth(request)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_this_machine_is_the_demo_agent(agent, address):
    assert call(address=address) == Principal(user=agent, client_id="demo", scopes=None)


@pytest.mark.parametrize("address", ["192.0.2.7", "10.0.0.1", "::ffff:192.0.2.7", "0.0.0.0", ""])
def test_other_machines_need_a_token(address):
    assert isinstance(call(address=address), Refusal)


def test_remote_client_cannot_claim_to_be_local():
    assert isinstance(call(address="192.0.2.7", X_Forwarded_For="127.0.0.1"), Refusal)


@pytest.mark.parametrize(
    "header", ["Forwarded", "X_Forwarded_For", "X_Forwarded_Host", "X_Real_IP", "Via"]
)
def test_proxy_on_this_machine_does_not_make_its_clients_local(header):
    assert isinstance(call(**{header: "127.0.0.1"}), Refusal)


def test_without_debug_this_machine_needs_a_token_too(settings):
    settings.DEBUG = False
    assert isinstance(call(), Refusal)


@pytest.mark.parametrize("credentials", ["Bearer wrong", "Basic YTpi", ""])
def test_bad_credentials_are_refused_and_not_replaced(credentials):
    refusal = call(Authorization=credentials)
    assert isinstance(refusal, Refusal)
    assert refusal.status == 401


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.7"])
def test_token_decides_who_calls(customer, address):
    token, secret = Token.objects.issue(customer)
    principal = call(address=address, Authorization=f"Bearer {secret}")
    assert principal == Principal(user=customer, client_id=f"token:{token.pk}", scopes=None)


def test_inactive_agent_is_nobody():
    User.objects.filter(username="agent").update(is_active=False)
    assert isinstance(call(), Refusal)


def test_endpoint_uses_it(client):
    ping = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }}  # fmt: skip

    def post(**extra):
        return client.post(
            "/mcp",
            ping,
            content_type="application/json",
            headers={"Accept": "application/json, text/event-stream"},
            **extra,
        )

    assert post().json()["result"]["serverInfo"]["name"] == "support-desk"
    refused = post(REMOTE_ADDR="192.0.2.7")
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")


# With a login


def test_whoever_logs_in_acts_as_himself_within_the_scopes_on_the_page(client, agent, site_of):
    tokens = site_of(client, agent, "desk:read")
    caller = Caller(open_entrance("wsgi"), path="/login/mcp")
    caller = caller.with_headers(Authorization=f"Bearer {tokens['access_token']}")
    found = caller.tool("search_tickets", assignee="me", limit=1)
    assert found.status == 200, found
    refused = caller.tool("close_tickets", status="solved", idle_days=60)
    assert refused.status == 403
    assert 'scope="desk:read desk:write"' in refused.header("WWW-Authenticate")


@pytest.fixture
def site_of():
    """Log somebody in, by his browser and a client that has registered itself."""

    def login(browser, user, scope):
        callback, verifier = "http://127.0.0.1:3118/callback", "v" * 43
        digest = hashlib.sha256(verifier.encode()).digest()
        browser.force_login(user)
        registered = browser.post(
            "/o/register/",
            {"redirect_uris": [callback], "token_endpoint_auth_method": "none"},
            content_type="application/json",
        ).json()
        asked = {
            "response_type": "code",
            "client_id": registered["client_id"],
            "redirect_uri": callback,
            "scope": scope,
            "resource": f"{settings.SITE}/login/mcp",
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        page = browser.get("/o/authorize/", asked)
        assert "Tickets, customers and articles" in page.content.decode()
        answer = browser.post(f"/o/authorize/?{urlencode(asked)}", {"allow": "1"})
        code = parse_qs(urlsplit(answer.headers["Location"]).query)["code"][0]
        given = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier}
        same = {name: asked[name] for name in ("client_id", "redirect_uri", "resource")}
        return browser.post("/o/token/", {**given, **same}).json()

    return login


def test_the_demo_agent_is_no_resource_of_oauth(client):
    assert client.get("/.well-known/oauth-protected-resource/mcp").status_code == 404
    about = client.get("/.well-known/oauth-protected-resource/login/mcp").json()
    assert about["scopes_supported"] == ["desk:read"]
