"""What a site says of authorization servers that have names of their own for its endpoints."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.urls import include, path

from django_mcp import MCPServer, endpoint
from django_mcp.auth import Principal, ProtectedResource, Refusal
from django_mcp.checks.issuers import check_issuer_names
from django_mcp.conf import read_settings
from django_mcp.contrib.oauth import jwt_auth
from django_mcp.contrib.oauth.fetching import FetchFailed
from django_mcp.contrib.oauth.issuers import discover
from tests.support.caller import Caller
from tests.support.entrances import open_entrance
from tests.support.sites import urlconf

from .conftest import RESOURCE, configure, server, shown
from .issuer import Issuer, serving

SHOP = "https://shop.example.com"
MCP = f"{SHOP}/mcp"
ID = "https://id.example.com"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"TOKEN_AUDIENCES": "shop"}, "must be a dict of lists, not str"),
        ({"TOKEN_AUDIENCES": {MCP: 7}}, "7 is neither a name nor a list of names"),
        ({"TOKEN_AUDIENCES": {MCP: ""}}, "'' is neither a name nor a list of names"),
        ({"TOKEN_AUDIENCES": {MCP: ["shop", None]}}, "is neither a name nor a list of names"),
        ({"TOKEN_AUDIENCES": {"shop": "shop"}}, "'shop' is not where a site is"),
        ({"TOKEN_ISSUERS": [ID]}, "must be a dict of lists, not list"),
        ({"TOKEN_ISSUERS": {ID: "sts"}}, "'sts' is not the identifier"),
        ({"TOKEN_ISSUERS": {"id": ID}}, "'id' is not the identifier"),
        ({"ISSUER_METADATA": ID}, "must be a dict of texts, not str"),
        ({"ISSUER_METADATA": {ID: "http://id.example.com"}}, "is not where the metadata"),
        ({"ISSUER_METADATA": {ID: 7}}, "7 is not where the metadata"),
        ({"ISSUER_METADATA": {"id": ID}}, "'id' is not the identifier"),
        ({"SCOPE_CLAIMS": "permissions"}, "must be a list, not str"),
        ({"SCOPE_FORMAT": "{resource}"}, "does not say how a scope is asked for"),
        ({"SCOPE_FORMAT": "api://{id}/{scope}"}, "does not say how a scope is asked for"),
        ({"SCOPE_FORMAT": "the {scope}"}, "does not say how a scope is asked for"),
        ({"SCOPE_FORMAT": None}, "must be text, not NoneType"),
        ({"SCOPE_HIERARCHY": {"write": 7}}, "7 is neither a name nor a list of names"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(raw, message):
    with pytest.raises(ImproperlyConfigured) as refused:
        read_settings(raw)
    assert message in str(refused.value)


def test_a_single_name_may_be_text():
    found = read_settings(
        {
            "TOKEN_AUDIENCES": {f"{MCP}/": "shop", f"{SHOP}/b": ["b", "c"]},
            "TOKEN_ISSUERS": {ID: "https://sts.example.com/"},
            "ISSUER_METADATA": {ID: f"{ID}/metadata?appid=7"},
        }
    )
    assert found.token_audiences == {MCP: ("shop",), f"{SHOP}/b": ("b", "c")}
    assert found.token_issuers == {ID: ("https://sts.example.com/",)}
    assert found.issuer_metadata == {ID: f"{ID}/metadata?appid=7"}


# Which names count


def resource_of(**more: Any) -> ProtectedResource:
    return ProtectedResource(MCP, frozenset({MCP}), f"{MCP}/metadata", (ID,), ("read",), **more)


def test_scopes_are_asked_for_by_the_names_that_the_issuer_has():
    assert resource_of().as_asked(["read", "openid"]) == ["read", "openid"]
    whole = resource_of(scope_format="api://shop/{scope}")
    assert whole.as_asked(["read", "openid", "email"]) == ["api://shop/read", "openid", "email"]
    assert whole.metadata["scopes_supported"] == ["api://shop/read"]
    assert whole.challenge["scope"] == "api://shop/read"
    assert resource_of(scope_format="{resource}/{scope}").as_asked(["a"]) == [f"{MCP}/a"]


@pytest.mark.django_db
@pytest.mark.usefixtures("anna")
class TestAnEndpoint:
    def verdict(self, issuer: Issuer, **claims: Any) -> Principal | Refusal:
        found = jwt_auth(
            shown(issuer, issuer.sign(issuer.claims(**claims)), other_names=frozenset({"shop"}))
        )
        assert isinstance(found, (Principal, Refusal))
        return found

    def test_a_token_may_have_another_name_for_it(self, issuer, site):
        assert isinstance(self.verdict(issuer, audience="shop"), Principal)
        assert isinstance(self.verdict(issuer, audience=["other", "shop"]), Principal)
        assert isinstance(self.verdict(issuer, audience=RESOURCE), Principal)
        for audience in ("Shop", "shop ", "sho", "", None, {"shop": 1}):
            assert isinstance(self.verdict(issuer, audience=audience), Refusal), audience

    @pytest.mark.parametrize(
        "missing", [{"client_id": None}, {"scope": None}, {"client_id": "", "scope": ""}], ids=str
    )
    def test_what_may_be_an_id_token_needs_the_url(self, issuer, site, missing):
        assert isinstance(self.verdict(issuer, audience="shop", **missing), Refusal)
        assert isinstance(self.verdict(issuer, audience=RESOURCE, **missing), Principal)

    def test_names_count_for_one_issuer(self, issuer, site):
        bearer = f"Bearer {issuer.sign(issuer.claims('shop'))}"
        caller = Caller(open_entrance("wsgi")).with_headers(Authorization=bearer)
        assert caller.tool("whoami").status == 401
        configure(site, TOKEN_AUDIENCES={RESOURCE: "shop"})
        assert caller.tool("whoami").status == 200
        configure(site, AUTHORIZATION_SERVERS=[issuer.url, "https://other.example"])
        assert caller.tool("whoami").status == 401
        configure(
            site,
            AUTHORIZATION_SERVERS=[issuer.url],
            TOKEN_AUDIENCES={"http://testserver/other": "shop"},
        )
        assert caller.tool("whoami").status == 401


# Where the metadata is


def test_metadata_is_where_the_site_says_and_nowhere_else(site, issuer):
    issuer.publish("/elsewhere")
    configure(site, ISSUER_METADATA={issuer.url: f"{issuer.url}/elsewhere"})
    assert discover(issuer.url)["issuer"] == issuer.url
    assert list(issuer.asked) == ["/elsewhere"]
    issuer.documents["/elsewhere"] = {"issuer": "https://other.example"}
    with pytest.raises(FetchFailed, match=r"about another issuer, 'https://other\.example'"):
        discover(issuer.url)


def test_a_document_without_keys_is_completed_by_the_next(issuer):
    first, second = (
        f"/.well-known/{name}" for name in ("oauth-authorization-server", "openid-configuration")
    )
    issuer.documents[first] = {"issuer": issuer.url, "token_endpoint": "first"}
    assert "jwks_uri" not in discover(issuer.url)
    issuer.documents[second] = {"issuer": f"{issuer.url}/", "jwks_uri": "of another"}
    assert "jwks_uri" not in discover(issuer.url)
    issuer.documents[second] = {
        "issuer": issuer.url,
        "token_endpoint": "second",
        "jwks_uri": "keys",
    }
    found = discover(issuer.url)
    assert (found["token_endpoint"], found["jwks_uri"]) == ("first", "keys")


def test_a_document_with_keys_is_enough(issuer):
    discover(issuer.url)
    assert list(issuer.asked) == ["/.well-known/oauth-authorization-server"]


# Checks


def found(settings: Any, **keys: Any) -> list[tuple[str, str]]:
    other = MCPServer("other", authorization_servers=["https://a.example", "https://b.example"])
    settings.ROOT_URLCONF = urlconf(
        endpoint("mcp", server=server),
        endpoint("other", server=other),
        path("page", lambda request: None),
        path("", include("django_mcp.well_known")),
    )
    settings.DJANGO_MCP = {
        "AUTH": "django_mcp.contrib.oauth.jwt_auth",
        "AUTHORIZATION_SERVERS": ID,
        "BASE_URL": SHOP,
        **keys,
    }
    return [(str(each.id).removeprefix("django_mcp."), each.msg) for each in check_issuer_names()]


def test_names_that_count_are_no_problem(settings):
    assert found(settings) == []
    names = {
        "TOKEN_AUDIENCES": {MCP: ["shop", "api://shop"]},
        "TOKEN_ISSUERS": {ID: "https://sts.example.com/"},
        "ISSUER_METADATA": {ID: f"{ID}/a", "https://sts.example.com/": f"{ID}/b"},
    }
    assert found(settings, **names) == []


@pytest.mark.parametrize("url", [f"{SHOP}/mpc", f"{SHOP}/page", "https://shop.example/mcp", SHOP])
def test_a_url_that_is_no_endpoints_is_found(settings, url):
    (only,) = found(settings, TOKEN_AUDIENCES={url: "shop"})
    assert only[0] == "W060"
    assert url in only[1]
    assert found(settings, TOKEN_AUDIENCES={url: "shop"}, BASE_URL=[]) == [], "nobody can tell"


def test_one_name_for_two_endpoints_is_found(settings):
    names = {MCP: "shop", f"{SHOP}/other": ["shop"]}
    messages = found(settings, TOKEN_AUDIENCES=names, AUTHORIZATION_SERVERS=ID)
    assert {each for each, _ in messages} == {"E060"}
    assert any("a token for one of them opens the other" in message for _, message in messages)


def test_a_name_at_one_of_several_issuers_is_found(settings):
    (only,) = found(settings, TOKEN_AUDIENCES={f"{SHOP}/other": "other"})
    assert only[0] == "E060"
    assert "has several authorization servers" in only[1]


def test_issuers_that_nobody_has_are_found(settings):
    messages = found(
        settings,
        TOKEN_ISSUERS={f"{ID}/": "https://sts.example.com/"},
        ISSUER_METADATA={f"{ID}/v2": f"{ID}/a"},
    )
    assert [each for each, _ in messages] == ["W060", "W060"]
    assert "is no authorization server of an endpoint" in messages[0][1]
    assert "issues no tokens for an endpoint" in messages[1][1]


def test_where_other_checks_tell_this_one_is_silent(settings):
    assert found(settings, AUTH="no.such.path", ISSUER_METADATA={ID: f"{ID}/a"})[0][0] == "W060"
    assert found(settings, PAGE_SIZE=0) == []


def test_a_stranger_is_not_asked_by_being_named(site, issuer):
    with serving() as stranger:
        configure(site, TOKEN_ISSUERS={"https://other.example": [stranger.url]})
        claims = issuer.claims(RESOURCE, iss=stranger.url)
        assert isinstance(jwt_auth(shown(issuer, stranger.sign(claims))), Refusal)
        assert not stranger.asked
