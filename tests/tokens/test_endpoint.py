"""Tokens at a real endpoint, through the view: who gets in, and whose session it is."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from django_mcp.contrib.tokens.models import Token

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture(autouse=True)
def token_auth(settings) -> None:
    auth = "django_mcp.contrib.tokens.auth.token_auth"
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": auth, "SERVER_NAME": "shop"}


def post(method: str, secret: str, *, session: str = "", **params: object):
    headers = {"Accept": "application/json, text/event-stream"}
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    if session:
        headers["Mcp-Session-Id"] = session
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Client().post("/mcp", message, content_type="application/json", headers=headers)


def open_session(secret: str) -> str:
    response = post("initialize", secret, **INITIALIZE)
    assert response.status_code == 200
    return response["Mcp-Session-Id"]


def call_whoami(secret: str, session: str):
    return post("tools/call", secret, session=session, name="whoami", arguments={})


@pytest.mark.django_db
def test_no_token_no_entry():
    response = post("initialize", "", **INITIALIZE)
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Bearer realm="shop"'


def test_a_dead_token_is_refused(token, secret):
    token.revoke()
    response = post("initialize", secret, **INITIALIZE)
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Bearer realm="shop", error="invalid_token"'
    assert json.loads(response.content)["error"]["message"].startswith("The bearer token is")


def test_tools_see_the_user_of_the_token(secret):
    response = call_whoami(secret, open_session(secret))
    assert "anna" in response.content.decode()


def test_a_token_for_another_server_is_refused(anna):
    _, secret = Token.objects.issue(anna, servers=["staff"])
    assert post("initialize", secret, **INITIALIZE).status_code == 401


def test_a_session_outlives_the_rotation_of_its_token(token, secret):
    session = open_session(secret)
    fresh = token.rotate()
    assert call_whoami(secret, session).status_code == 401
    assert call_whoami(fresh, session).status_code == 200


def test_a_session_is_not_shared_with_another_token_of_the_user(anna, secret):
    _, other = Token.objects.issue(anna)
    assert call_whoami(other, open_session(secret)).status_code == 404
