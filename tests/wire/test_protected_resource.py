"""Where a site says who issues tokens, clients find out where to log in (RFC 9728)."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpResponse
from django.urls import include, path

from django_mcp import MCPServer, MCPView, RegistrationError, endpoint
from django_mcp.auth import Refusal, django_user, public
from django_mcp.checks import check_oauth
from django_mcp.contrib.tokens.auth import token_auth
from tests.support.caller import Caller
from tests.support.entrances import Entrance
from tests.support.sites import urlconf

ISSUER = "https://id.example.com/realms/shop"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
BELOW = [path("api/", include("django_mcp.urls")), path("", include("django_mcp.well_known"))]
WHOLE = [path("", include("django_mcp.urls"))]


def closed(request: Any) -> None:
    """Let nobody in."""


def refusing(request: Any) -> Refusal:
    """Let nobody in, in words of the site's own."""
    return Refusal("Ask the porter.")


@pytest.fixture(autouse=True)
def oauth(settings):
    settings.ROOT_URLCONF = urlconf(*WHOLE)
    settings.DJANGO_MCP = {
        "AUTH": closed,
        "SERVER_NAME": "shop",
        "AUTHORIZATION_SERVERS": [ISSUER],
        "WORKER_THREADS": 2,
    }


def configure(settings: Any, **keys: Any) -> None:
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, **keys}


def get(entrance: Entrance, url: str, method: str = "GET", **headers: str) -> Any:
    given = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return entrance.send(method, url, given)


def shown(entrance: Entrance, url: str, **headers: str) -> Any:
    answer = get(entrance, url, **headers)
    assert answer.status == 200, answer
    assert answer.header("Content-Type") == "application/json"
    assert answer.header("Access-Control-Allow-Origin") == "*"
    return answer.json()


def test_the_document_of_an_endpoint_says_where_to_log_in(entrance):
    expected = {
        "resource": "http://testserver/mcp",
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
    }
    assert shown(entrance, f"{WELL_KNOWN}/mcp") == expected
    assert shown(entrance, f"{WELL_KNOWN}/mcp/") == expected
    assert shown(entrance, WELL_KNOWN) == expected, "there is one endpoint only"


def test_a_page_of_another_origin_may_read_it(entrance):
    answer = get(
        entrance,
        f"{WELL_KNOWN}/mcp",
        "OPTIONS",
        Origin="https://inspector.example",
        Access_Control_Request_Headers="mcp-protocol-version",
    )
    assert answer.status == 204
    assert answer.header("Access-Control-Allow-Origin") == "*"
    assert answer.header("Access-Control-Allow-Headers") == "mcp-protocol-version"


def test_nothing_else_is_there(entrance):
    for url in (
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration/mcp",
        "/mcp/.well-known/oauth-protected-resource",
        f"{WELL_KNOWN}/orders",
    ):
        assert get(entrance, url).status == 404, url
    assert get(entrance, f"{WELL_KNOWN}/mcp", "POST").status == 405


def test_several_endpoints_have_a_document_each_and_none_at_the_root(entrance, settings):
    class Own(MCPView):
        server = MCPServer("own", authorization_servers=["https://own.example"])

    settings.ROOT_URLCONF = urlconf(*BELOW, path("own/mcp", Own.as_view()))
    assert shown(entrance, f"{WELL_KNOWN}/api/mcp")["resource"] == "http://testserver/api/mcp"
    own = shown(entrance, f"{WELL_KNOWN}/own/mcp")
    assert own["authorization_servers"] == ["https://own.example"]
    assert get(entrance, WELL_KNOWN).status == 404


def test_an_endpoint_at_the_root_of_the_site_is_the_site_itself(entrance, settings):
    settings.ROOT_URLCONF = urlconf(endpoint(""), path("", include("django_mcp.well_known")))
    assert shown(entrance, WELL_KNOWN)["resource"] == "http://testserver"
    challenge = Caller(entrance, "/").call("tools/list").header("WWW-Authenticate")
    assert f'resource_metadata="http://testserver{WELL_KNOWN}"' in challenge


@pytest.mark.parametrize("auth", [public, django_user, token_auth], ids=lambda auth: auth.__name__)
def test_who_takes_no_such_tokens_sends_nobody_to_get_some(entrance, settings, auth):
    name = f"{auth.__module__}.{auth.__name__}"
    for given in (auth, name):
        settings.ROOT_URLCONF = urlconf(
            endpoint("mcp", auth=given), path("", include("django_mcp.well_known"))
        )
        assert get(entrance, f"{WELL_KNOWN}/mcp").status == 404
        answer = Caller(entrance).call("tools/list")
        assert "resource_metadata" not in (answer.header("WWW-Authenticate") or "")


def test_where_nobody_asked_for_it_there_is_nothing(entrance, settings):
    configure(settings, AUTHORIZATION_SERVERS=[])
    assert get(entrance, f"{WELL_KNOWN}/mcp").status == 404
    assert get(entrance, WELL_KNOWN).status == 404
    answer = Caller(entrance).call("tools/list")
    assert answer.header("WWW-Authenticate") == 'Bearer realm="shop"'


def test_a_server_may_have_none_where_the_site_has_some(entrance, settings):
    plain = MCPServer("plain", authorization_servers=[])
    settings.ROOT_URLCONF = urlconf(*WHOLE, endpoint("plain", server=plain))
    assert get(entrance, f"{WELL_KNOWN}/plain").status == 404
    assert shown(entrance, f"{WELL_KNOWN}/mcp")


def test_the_resource_is_at_the_host_that_was_asked(entrance):
    found = shown(entrance, f"{WELL_KNOWN}/mcp", Host="localhost:8000")
    assert found["resource"] == "http://localhost:8000/mcp"
    assert get(entrance, f"{WELL_KNOWN}/mcp", Host="elsewhere.example").status in (400, 404)


def test_a_base_url_counts_for_more_than_the_host(entrance, settings):
    configure(settings, BASE_URL="https://shop.example.com/")
    assert shown(entrance, f"{WELL_KNOWN}/mcp")["resource"] == "https://shop.example.com/mcp"


def test_a_client_is_told_the_alias_that_it_knows(entrance, settings):
    """SDKs refuse a resource whose host is not the one that they were given."""
    bases = ["https://shop.example.com", "http://localhost:8000", "https://localhost"]
    configure(settings, BASE_URL=bases)
    for host, resource in {
        "localhost:8000": "http://localhost:8000/mcp",
        "LOCALHOST": "https://localhost/mcp",
        "localhost:443": "https://localhost/mcp",
        "testserver": "https://shop.example.com/mcp",
    }.items():
        assert shown(entrance, f"{WELL_KNOWN}/mcp", Host=host)["resource"] == resource


def test_a_host_that_anybody_may_name_makes_no_resource(entrance, settings):
    """Or a token for another site would be good here, for whoever sends that site's name along."""
    settings.ALLOWED_HOSTS = ["*"]
    assert get(entrance, f"{WELL_KNOWN}/mcp", Host="elsewhere.example").status == 404
    answer = Caller(entrance).with_headers(Host="elsewhere.example").call("tools/list")
    assert answer.header("WWW-Authenticate") == 'Bearer realm="shop"'
    configure(settings, BASE_URL="https://shop.example.com")
    found = shown(entrance, f"{WELL_KNOWN}/mcp", Host="elsewhere.example")
    assert found["resource"] == "https://shop.example.com/mcp"


def test_a_site_below_a_prefix_names_it_in_both_urls(entrance):
    entrance.root_path = "/site"
    url = f"{WELL_KNOWN}/mcp"
    assert shown(entrance, url)["resource"] == "http://testserver/site/mcp"
    challenge = Caller(entrance).call("tools/list").header("WWW-Authenticate")
    assert f'resource_metadata="http://testserver/site{WELL_KNOWN}/mcp"' in challenge


def test_a_401_says_where_and_how_to_log_in(entrance):
    caller = Caller(entrance)
    where = f'resource_metadata="http://testserver{WELL_KNOWN}/mcp"'
    for answer in (caller.call("tools/list"), caller.send("GET"), caller.initialize("2025-11-25")):
        assert answer.status == 401
        assert answer.header("WWW-Authenticate") == f'Bearer realm="shop", {where}'
        for word in ("OAuth", ISSUER, "http://testserver/mcp"):
            assert word in answer.error["message"]
    answer = caller.with_headers(Authorization="Bearer wrong").call("tools/list")
    expected = f'Bearer realm="shop", {where}, error="invalid_token"'
    assert answer.header("WWW-Authenticate") == expected


def test_a_site_has_the_last_word(entrance, settings):
    configure(settings, AUTH=refusing)
    answer = Caller(entrance).call("tools/list")
    assert answer.error["message"] == "Ask the porter."
    assert "resource_metadata=" in answer.header("WWW-Authenticate")


def test_browsers_may_read_the_challenge(entrance, settings):
    configure(settings, ALLOWED_ORIGINS=["https://inspector.example"])
    caller = Caller(entrance).with_headers(Origin="https://inspector.example")
    answer = caller.call("tools/list")
    assert "WWW-Authenticate" in answer.header("Access-Control-Expose-Headers")


def test_the_resource_is_there_for_auth(entrance, settings):
    seen: list[Any] = []

    def curious(request: Any) -> None:
        seen.append(request.mcp_resource)

    configure(settings, AUTH=curious, BASE_URL=["https://a.example", "https://testserver"])
    Caller(entrance, "/mcp/").call("tools/list")
    (resource,) = seen
    assert resource.url == "https://testserver/mcp"
    assert resource.urls == {"https://a.example/mcp", "https://testserver/mcp"}


@pytest.mark.parametrize(
    "issuer",
    [
        "id.example.com",
        "http://id.example.com",
        "https://id.example.com?a=b",
        "https://id.example.com#a",
        "https://user@id.example.com",
        "https://id.example.com:port",
        "https://",
        "https://id.example.com/ü",
        7,
    ],
)
def test_what_is_no_issuer_is_refused_with_the_cure(issuer):
    with pytest.raises(RegistrationError, match="authorization server"):
        MCPServer("wrong", authorization_servers=[issuer])


def test_an_issuer_on_this_machine_may_do_without_https():
    for issuer in ("http://127.0.0.1:9000", "http://localhost/a", "http://[::1]:1"):
        assert MCPServer("own", authorization_servers=issuer).authorization_servers == (issuer,)


def found(settings: Any, *patterns: Any, **keys: Any) -> list[str]:
    configure(settings, **keys)
    settings.ROOT_URLCONF = urlconf(*patterns)
    return [each.id for each in check_oauth()]


def test_a_check_finds_an_endpoint_whose_document_nobody_shows(settings):
    below = path("api/", include("django_mcp.urls"))
    assert found(settings, below) == ["django_mcp.W019"]
    assert found(settings, *BELOW) == []
    own = path(".well-known/oauth-protected-resource/api/mcp", lambda request: HttpResponse())
    assert found(settings, below, own) == []
    assert found(settings, below, AUTHORIZATION_SERVERS=[]) == []
    assert found(settings, path("<slug:tenant>/", include("django_mcp.urls"))) == []


def test_a_check_finds_a_site_that_answers_to_any_name(settings):
    settings.ALLOWED_HOSTS = ["*"]
    assert found(settings, *WHOLE) == ["django_mcp.E009"]
    assert found(settings, *WHOLE, BASE_URL="https://shop.example.com") == []
    settings.ALLOWED_HOSTS = ["*", "shop.example.com"]
    assert found(settings, *WHOLE, BASE_URL=[]) == []
    assert found(settings, *WHOLE, BASE_URL=[], AUTH="no.such.path") == []
