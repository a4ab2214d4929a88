"""Tokens at a real endpoint, through the view: who gets in, and whose session it is."""

from __future__ import annotations

import pytest

from django_mcp.contrib.tokens.models import Token
from tests.support.caller import Caller
from tests.support.entrances import open_entrance


@pytest.fixture(autouse=True)
def token_auth(settings) -> None:
    auth = "django_mcp.contrib.tokens.auth.token_auth"
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "AUTH": auth, "SERVER_NAME": "shop"}


@pytest.fixture
def caller() -> Caller:
    return Caller(open_entrance("wsgi"))


def with_token(caller: Caller, secret: str) -> Caller:
    return caller.with_headers(Authorization=f"Bearer {secret}")


@pytest.mark.django_db
def test_no_token_no_entry(caller):
    answer = caller.initialize("2025-11-25")
    assert answer.status == 401
    assert answer.header("WWW-Authenticate") == 'Bearer realm="shop"'


def test_a_dead_token_is_refused(caller, token, secret):
    token.revoke()
    answer = with_token(caller, secret).initialize("2025-11-25")
    assert answer.status == 401
    assert answer.header("WWW-Authenticate") == 'Bearer realm="shop", error="invalid_token"'
    assert answer.error["message"].startswith("The bearer token is")


def test_tools_see_the_user_of_the_token(caller, secret):
    assert "anna" in str(with_token(caller, secret).opened().tool("whoami").result)


def test_a_token_for_another_server_is_refused(caller, anna):
    _, secret = Token.objects.issue(anna, servers=["staff"])
    assert with_token(caller, secret).initialize("2025-11-25").status == 401


def test_a_session_outlives_the_rotation_of_its_token(caller, token, secret):
    member = with_token(caller, secret).opened()
    fresh = token.rotate()
    assert member.tool("whoami").status == 401
    assert with_token(member, fresh).tool("whoami").status == 200


def test_a_session_is_not_shared_with_another_token_of_the_user(caller, anna, secret):
    _, other = Token.objects.issue(anna)
    member = with_token(caller, secret).opened()
    assert with_token(member, other).tool("whoami").status == 404
