"""Several ways to come in at one endpoint: the first that knows the credentials decides."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth import (
    BACKEND_SESSION_KEY,
    HASH_SESSION_KEY,
    SESSION_KEY,
    get_user_model,
)
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.urls import include, path
from rest_framework.authentication import TokenAuthentication
from rest_framework.request import Request

from django_mcp import Context, MCPServer, endpoint
from django_mcp.auth import Principal, Refusal, any_of, django_user, nonblocking, public
from django_mcp.checks.servers import check_servers
from django_mcp.checks.site import check_openness
from django_mcp.contrib.tokens.auth import token_auth
from django_mcp.contrib.tokens.models import Token
from tests.support.caller import Caller
from tests.support.sites import urlconf

asked: list[str] = []
server = MCPServer("ways")


@server.tool
def whoami(ctx: Context) -> str:
    """Say who is calling."""
    return ctx.client_id or "nobody"


def by_key(request: HttpRequest) -> Principal | Refusal:
    """Know keys that begin with ``key``, of which one holds."""
    asked.append("key")
    shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if shown == "key-right":
        return Principal(AnonymousUser(), "key")
    return Refusal("Send a key.", challenge='Key realm="k"', recognised=shown.startswith("key"))


async def by_letter(request: HttpRequest) -> Principal | None:
    """Know letters, asynchronously."""
    asked.append("letter")
    shown = request.headers.get("Authorization", "")
    return Principal(AnonymousUser(), "letter") if shown == "Bearer letter" else None


def later(request: HttpRequest) -> Refusal:
    asked.append("later")
    return Refusal("Come later.", status=403, headers={"X-Later": "1"})


@pytest.fixture(autouse=True)
def _nobody_asked() -> None:
    asked.clear()


def serve(settings: Any, *auths: Any) -> None:
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server, auth=any_of(*auths)))


def who(caller: Caller, **headers: str) -> str:
    answer = caller.with_headers(**headers).tool("whoami")
    return str(answer.result["content"][0]["text"])


@pytest.mark.parametrize(
    "members",
    [(by_key, by_letter, public), (f"{__name__}.by_key", by_letter, "django_mcp.auth.public")],
    ids=["callables", "paths"],
)
def test_the_first_that_knows_the_credentials_decides(caller, settings, members):
    serve(settings, *members)
    assert who(caller, Authorization="Bearer key-right") == "key"
    assert asked == ["key"]
    assert who(caller, Authorization="Bearer letter") == "letter"
    assert who(caller) == "nobody"


def test_whoever_shows_a_token_is_held_to_it(caller, settings):
    serve(settings, by_key, by_letter, django_user, public)
    refused = caller.with_headers(Authorization="Bearer key-wrong").tool("whoami")
    assert (refused.status, refused.error["message"]) == (401, "Send a key.")
    assert asked == ["key"], "the key is one of these, and nobody else's"
    refused = caller.with_headers(Authorization="Bearer unknown").tool("whoami")
    assert refused.status == 401
    assert asked == ["key", "key", "letter"]


def by_rest_framework(request: HttpRequest) -> Refusal:
    """Find nobody, as an authenticator of REST framework's does."""
    user = Request(request, authenticators=[TokenAuthentication()]).user
    return Principal(user) if user.is_authenticated else Refusal("Send a token.")


def test_what_one_way_makes_of_the_user_is_not_what_the_next_one_finds(caller, settings):
    user = get_user_model().objects.create_user("anna")
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    serve(settings, by_rest_framework, django_user)
    answer = caller.with_headers(Cookie=f"sessionid={session.session_key}").tool("whoami")
    assert answer.status == 200


def test_a_token_of_this_site_is_no_other_ways_business(caller, settings):
    user = get_user_model().objects.create_user("anna")
    token, secret = Token.objects.issue(user, expires=dt.timedelta(hours=1))
    serve(settings, token_auth, by_letter)
    assert who(caller, Authorization=f"Bearer {secret}") == f"token:{token.pk}"
    Token.objects.filter(pk=token.pk).revoke()
    assert caller.with_headers(Authorization=f"Bearer {secret}").tool("whoami").status == 401
    assert asked == []
    assert who(caller, Authorization="Bearer letter") == "letter"


def test_a_refusal_has_the_challenges_of_all(caller, settings):
    settings.DJANGO_MCP = {
        **settings.DJANGO_MCP,
        "AUTHORIZATION_SERVERS": ["https://id.example.com"],
    }
    auth = any_of(by_key, by_letter, token_auth, django_user)
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=server, auth=auth), path("", include("django_mcp.well_known"))
    )
    answer = caller.tool("whoami")
    metadata = "http://testserver/.well-known/oauth-protected-resource/mcp"
    assert answer.header("WWW-Authenticate") == (
        f'Key realm="k", Bearer realm="ways", resource_metadata="{metadata}", Session realm="mcp"'
    )
    for words in ("Send a key.", "Whoever runs this site issues", "Log in to the site first"):
        assert words in answer.error["message"]
    assert caller.entrance.send("GET", metadata.removeprefix("http://testserver")).status == 200


def test_a_refusal_that_asks_for_credentials_counts_for_more(caller, settings):
    serve(settings, later, by_key)
    answer = caller.tool("whoami")
    assert (answer.status, answer.header("X-Later")) == (401, "1")
    serve(settings, later)
    assert caller.tool("whoami").status == 403


def test_ways_that_take_no_tokens_of_others_do_not_do_so_together(settings):
    assert any_of(by_key, public).takes_oauth_tokens
    assert not any_of(token_auth, "django_mcp.auth.django_user").takes_oauth_tokens


def test_ways_that_wait_for_nothing_do_not_do_so_together():
    assert any_of(public, nonblocking(lambda request: None)).nonblocking
    assert not any_of(public, django_user).nonblocking


@nonblocking
async def by_token(request: HttpRequest) -> Principal | None:
    """Know a token, asynchronously, and wait for nothing."""
    shown = request.headers.get("Authorization", "")
    return Principal(AnonymousUser(), "token") if shown == "Bearer token" else None


def test_asynchronous_ways_that_wait_for_nothing_are_called_where_they_can_be(settings, caller):
    """At the mount they would be called on the loop on which they have to be waited for."""
    serve(settings, by_token, public)
    assert who(caller, Authorization="Bearer token") == "token"
    assert who(caller) == "nobody"


def test_there_is_one_way_at_least():
    with pytest.raises(TypeError, match="at least"):
        any_of()


def test_checks_look_at_each_way(settings):
    serve(settings, "no.such.path", "django_mcp.auth.public")
    assert "django_mcp.E003" in [each.id for each in check_servers()]
    assert "django_mcp.W006" in [each.id for each in check_openness()]
    serve(settings, by_key, django_user)
    assert "django_mcp.E003" not in [each.id for each in check_servers()]
    assert "django_mcp.W006" not in [each.id for each in check_openness()]
