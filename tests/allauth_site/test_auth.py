"""``allauth_auth``: tokens are looked up in allauth's table."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from allauth.idp.oidc.models import Token
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_mcp.auth import Principal, ProtectedResource, Refusal, any_of
from django_mcp.contrib.oauth import allauth_auth
from django_mcp.contrib.tokens.auth import token_auth
from django_mcp.contrib.tokens.models import Token as OwnToken

from .login import SHOP, STOCK, caller, registered, row

pytestmark = pytest.mark.django_db


def shown(token: str, url: str = SHOP) -> Any:
    """Return a request with a token to the resource at a URL."""
    request = RequestFactory().post("/mcp", headers={"Authorization": f"Bearer {token}"})
    request.mcp_resource = ProtectedResource(  # type: ignore[attr-defined]
        url, frozenset({url, "https://alias.example/mcp"}), f"{url}/metadata", ("http://localhost",)
    )
    return request


def verdict(token: str = "opaque", url: str = SHOP) -> Principal | Refusal:
    return allauth_auth(shown(token, url))


def test_a_token_lets_its_user_in_and_nothing_is_written(anna, client):
    row(anna, client, scopes="orders:read\nopenid")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = verdict()
    expected = Principal(anna, f"oauth:{client.pk}", frozenset({"orders:read", "openid"}))
    assert found == expected
    assert len(queries) == 1
    assert queries[0]["sql"].startswith("SELECT")


def test_a_token_for_another_name_of_the_endpoint_counts(anna, client):
    row(anna, client, resources=["https://alias.example/mcp"])
    assert isinstance(verdict(), Principal)


@pytest.mark.parametrize(
    "changed",
    [
        {"resources": None},
        {"resources": []},
        {"resources": [STOCK]},
        {"resources": ["http://localhost"]},
        {"resources": ["http://localhost/"]},
        {"resources": [f"{SHOP}/"]},
        {"resources": [f"{SHOP}/more"]},
        {"resources": [SHOP.upper()]},
        {"resources": [SHOP, STOCK]},
        {"resources": [SHOP, "https://evil.example"]},
        {"type": Token.Type.REFRESH_TOKEN},
        {"type": Token.Type.INITIAL_ACCESS_TOKEN},
        {"type": Token.Type.AUTHORIZATION_CODE},
        {"lasts": -1},
        {"client": None},
    ],
    ids=str,
)
def test_any_other_is_refused(anna, client, changed):
    row(anna, **{"client": client, **changed})
    found = verdict()
    assert isinstance(found, Refusal)
    assert found.status == 401


def test_what_no_token_is_is_refused(anna, client):
    row(anna, client)
    for value in ("", "wrong", "opaque\x00", "x" * 20_000):
        assert isinstance(verdict(value), Refusal)


def test_an_inactive_user_is_told_so(anna, client):
    row(anna, client)
    get_user_model().objects.update(is_active=False)
    found = verdict()
    assert isinstance(found, Refusal)
    assert (found.status, found.recognised) == (403, True)


def test_a_public_client_is_of_no_use_where_the_site_wants_secrets(anna, client, settings):
    row(anna, client)
    settings.IDP_OIDC_AUTH_METHODS = ["client_secret_basic"]
    assert isinstance(verdict(), Refusal)


def test_a_machine_is_the_service_user_that_the_site_names(client, settings):
    robot = get_user_model().objects.create_user("robot")
    row(None, client)
    assert isinstance(verdict(), Refusal)
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "OAUTH_SERVICE_USERS": {client.pk: "robot"}}
    found = verdict()
    assert isinstance(found, Principal)
    assert found.user == robot


def test_a_service_user_is_nobody_elses(anna, client, settings):
    get_user_model().objects.create_user("robot")
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "OAUTH_SERVICE_USERS": {client.pk: "robot"}}
    row(anna, client)
    found = verdict()
    assert isinstance(found, Principal)
    assert found.user == anna


@pytest.mark.parametrize("entrance", ["wsgi", "asgi"])
def test_a_token_comes_through_the_endpoint(anna, client, entrance):
    row(anna, client)
    member = caller("opaque", entrance=entrance)
    text = member.tool("whoami").result["content"][0]["text"]
    assert text == f"anna oauth:{client.pk} orders:read"
    challenged = member.tool("ship")
    assert challenged.status == 403
    assert 'scope="orders:read orders:write"' in challenged.header("WWW-Authenticate")
    elsewhere = caller("opaque", "/stock", entrance).call("tools/list")
    assert elsewhere.status == 401
    assert 'error="invalid_token"' in elsewhere.header("WWW-Authenticate")


@pytest.mark.django_db(transaction=True)
def test_a_token_comes_through_the_mount(anna, client):
    row(anna, client)
    member = caller("opaque", entrance="mount")
    assert member.tool("whoami").result["content"][0]["text"].startswith("anna")
    assert caller("wrong", entrance="mount").tool("whoami").status == 401


def test_it_stands_beside_other_ways(anna, client):
    row(anna, client)
    row(anna, client, "elsewhere", resources=[STOCK])
    both = any_of(allauth_auth, token_auth)
    _, secret = OwnToken.objects.issue(user=anna, name="mine")
    assert both(shown(secret)).client_id.startswith("token:")
    assert both(shown("opaque")).client_id.startswith("oauth:")
    assert both(shown("elsewhere")).recognised


# Who may stay


def admitted(*tokens: str) -> list[Principal]:
    found = [verdict(each) for each in tokens]
    assert all(isinstance(each, Principal) for each in found)
    return found  # type: ignore[return-value]


def ended(principals: list[Principal]) -> list[Principal]:
    recheck = principals[0].recheck
    assert recheck is not None
    return list(recheck(principals))


def expire(*principals: Principal) -> list[Principal]:
    """Let it be later than the tokens of these last, however much later."""
    past = timezone.now() - timedelta(minutes=1)
    Token.objects.filter(pk__in=[each.credential.token for each in principals]).update(
        expires_at=past
    )
    for each in principals:
        object.__setattr__(each.credential, "ends", past)
    return list(principals)


def test_what_is_open_ends_when_its_token_is_gone(anna, client):
    kept, gone = row(anna, client, "kept"), row(anna, client, "gone")
    principals = admitted("kept", "gone")
    assert ended(principals) == []
    gone.delete()
    assert ended(principals) == principals[1:]
    kept.client.delete()
    assert ended(principals) == principals


def test_all_are_looked_at_together(anna, client):
    tokens = [f"t{number}" for number in range(20)]
    for each in tokens:
        row(anna, client, each)
    principals = admitted(*tokens)
    expire(*principals[:10])
    with CaptureQueriesContext(connection) as queries:
        ended(principals)
    assert len(queries) == 2


@pytest.mark.parametrize(
    ("changed", "stays"),
    [
        ({"type": Token.Type.REFRESH_TOKEN, "lasts": None}, True),
        ({"type": Token.Type.REFRESH_TOKEN}, True),
        ({"type": Token.Type.ACCESS_TOKEN}, True),
        ({"type": Token.Type.REFRESH_TOKEN, "resources": [STOCK]}, False),
        ({"type": Token.Type.REFRESH_TOKEN, "resources": None}, False),
        ({"type": Token.Type.INITIAL_ACCESS_TOKEN}, False),
        ({"type": Token.Type.REFRESH_TOKEN, "lasts": 0}, False),
    ],
    ids=str,
)
def test_an_expired_token_is_access_as_long_as_it_can_be_renewed(anna, client, changed, stays):
    row(anna, client)
    principals = expire(*admitted("opaque"))
    assert ended(principals) == principals
    row(anna, client, "another", **changed)
    assert ended(principals) == ([] if stays else principals)
    # Which may be tidied up (manage.py oidc_cleartokens).
    Token.objects.filter(pk=principals[0].credential.token).delete()
    assert ended(principals) == ([] if stays else principals)


def test_nobody_stays_by_the_tokens_of_another(anna, client):
    bob = get_user_model().objects.create_user("bob")
    row(anna, client)
    principals = expire(*admitted("opaque"))
    row(bob, client, "of bob", type=Token.Type.REFRESH_TOKEN)
    row(anna, registered(), "of another client", type=Token.Type.REFRESH_TOKEN)
    row(None, client, "of nobody", type=Token.Type.REFRESH_TOKEN)
    assert ended(principals) == principals


def test_of_several_users_and_clients_each_stays_by_what_is_theirs(anna, client):
    bob, other = get_user_model().objects.create_user("bob"), registered()
    row(anna, client, "of anna")
    row(bob, other, "of bob")
    principals = expire(*admitted("of anna", "of bob"))
    row(anna, other, "crossed", type=Token.Type.REFRESH_TOKEN)
    row(bob, client, "crossed as well", type=Token.Type.REFRESH_TOKEN)
    assert ended(principals) == principals
    row(bob, other, "next of bob", type=Token.Type.REFRESH_TOKEN)
    assert ended(principals) == principals[:1]


def test_machines_stay_by_tokens_of_their_own(client, settings):
    get_user_model().objects.create_user("robot")
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "OAUTH_SERVICE_USERS": {client.pk: "robot"}}
    row(None, client)
    principals = expire(*admitted("opaque"))
    assert ended(principals) == principals
    row(None, client, "next")
    assert ended(principals) == []
