from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import RequestFactory

from django_mcp.auth import Principal, Refusal
from django_mcp.contrib.tokens.models import Token
from example_project.support.auth import demo_auth

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
    assert call(address=address) == Principal(user=agent, client_id="demo")


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
