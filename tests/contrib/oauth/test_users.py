"""From the claims of a token to a user of the site."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.urls import include, path

from django_mcp import endpoint
from django_mcp.auth import any_of, public
from django_mcp.checks.oauth import check_tokens
from django_mcp.contrib import oauth
from django_mcp.contrib.oauth import UserFromClaim
from tests.support.sites import urlconf

from .conftest import configure, server

pytestmark = pytest.mark.django_db
User = get_user_model()


def test_a_claim_names_a_user(anna):
    assert UserFromClaim()({"sub": "anna"}) == anna
    assert UserFromClaim("preferred_username")({"preferred_username": "anna"}) == anna


@pytest.mark.parametrize(
    "value", ["Anna", "anna ", "", None, 7, ["anna"], "a" * 300, "an\x00na", "\ud800"]
)
def test_who_is_not_there_is_not_made(anna, value):
    assert UserFromClaim()({"sub": value}) is None
    assert User.objects.count() == 1


def test_an_address_counts_where_the_issuer_has_verified_it():
    ada = User.objects.create_user("ada", email="ada@example.com")
    find = UserFromClaim("email", field="email")
    assert find({"email": "ada@example.com", "email_verified": True}) == ada
    for verified in (False, None, "true", 1):
        assert find({"email": "ada@example.com", "email_verified": verified}) is None


def test_two_users_with_one_value_are_nobody():
    for name in ("one", "two"):
        User.objects.create_user(name, email="shared@example.com")
    find = UserFromClaim("email", field="email")
    assert find({"email": "shared@example.com", "email_verified": True}) is None


def test_only_one_issuer_may_name_users_if_the_site_says_so(anna):
    find = UserFromClaim(issuer="https://id.example.com")
    assert find({"sub": "anna", "iss": "https://id.example.com"}) == anna
    assert find({"sub": "anna", "iss": "https://other.example"}) is None


def test_a_user_is_made_where_the_site_asks_for_it():
    find = UserFromClaim(create=True)
    made = find({"sub": "auth0|7"})
    assert (made.username, made.has_usable_password(), made.is_superuser) == (
        "auth0|7",
        False,
        False,
    )
    assert find({"sub": "auth0|7"}) == made
    assert User.objects.count() == 1


def test_a_user_is_made_by_another_field():
    find = UserFromClaim("email", field="email", create=True)
    made = find({"email": "ada@example.com", "email_verified": True})
    assert (made.username, made.email) == ("ada@example.com", "ada@example.com")
    assert find({"email": "new@example.com", "email_verified": False}) is None


def test_a_name_that_is_taken_is_nobody_elses(caplog):
    User.objects.create_user("ada@example.com")
    find = UserFromClaim("email", field="email", create=True)
    assert find({"email": "ada@example.com", "email_verified": True}) is None
    assert "another one has the name" in caplog.text


def problems(settings: Any, auth: Any, **keys: Any) -> str:
    configure(settings, **keys)
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=server, auth=auth), path("", include("django_mcp.well_known"))
    )
    found = check_tokens()
    assert {each.id for each in found} <= {"django_mcp.E010"}
    return " ".join(each.msg for each in found)


@pytest.mark.parametrize("name", ["jwt_auth", "introspection_auth"])
def test_a_check_finds_what_is_missing(site, issuer, name):
    auth = f"django_mcp.contrib.oauth.{name}"
    assert problems(site, auth) == ""
    for given in (auth, any_of(public, auth), any_of(getattr(oauth, name))):
        assert "AUTHORIZATION_SERVERS" in problems(site, given, AUTHORIZATION_SERVERS=[])
    configure(site, AUTHORIZATION_SERVERS=[issuer.url])
    assert "OAUTH_USER" in problems(site, auth, OAUTH_USER=None)
    assert problems(site, auth, OAUTH_SERVICE_USERS={"a": "b"}) == ""
    assert "cannot be imported" in problems(site, auth, OAUTH_USER="no.such.path")


def test_a_check_finds_issuers_that_could_name_each_others_users(site, issuer):
    servers = [issuer.url, "https://other.example.com"]
    auth = "django_mcp.contrib.oauth.jwt_auth"
    both = {"AUTHORIZATION_SERVERS": servers}
    assert "the issuer whose claims count" in problems(site, auth, **both)
    mine = UserFromClaim("sub", issuer=issuer.url)
    for find in (mine, lambda claims: mine(claims)):
        assert problems(site, auth, **both, OAUTH_USER=find) == ""
    both["OAUTH_USER"] = mine
    machines = {"nightly": "robot"}
    assert "write its issuer in front" in problems(site, auth, **both, OAUTH_SERVICE_USERS=machines)
    machines = {f"{issuer.url} nightly": "robot"}
    assert problems(site, auth, **both, OAUTH_SERVICE_USERS=machines) == ""


def test_a_check_finds_what_is_missing_to_ask(site, issuer):
    auth = "django_mcp.contrib.oauth.introspection_auth"
    assert "INTROSPECTION_CLIENT_ID" in problems(site, auth, INTROSPECTION_CLIENT_ID="")
    two = [issuer.url, "https://other.example"]
    assert "several" in problems(site, auth, AUTHORIZATION_SERVERS=two)
    assert problems(site, "no.such.path") == "", "another check tells"


def test_nothing_else_is_there():
    with pytest.raises(AttributeError, match="no_such_name"):
        oauth.no_such_name  # noqa: B018
