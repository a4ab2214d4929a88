"""Who may ask from where: Host, Origin, HTTPS and CORS."""

from __future__ import annotations

import pytest

from tests.support.caller import Caller
from tests.support.messages import LEGACY

from .test_errors import assert_error

ELSEWHERE = "https://elsewhere.example"
FRIEND = "https://friend.example"
AUTH = {"AUTH": "django_mcp.auth.public"}


@pytest.fixture
def befriended(settings):
    settings.DJANGO_MCP = AUTH | {"ALLOWED_ORIGINS": [FRIEND]}


FOREIGN = [
    ELSEWHERE,
    "null",
    "",
    "testserver",
    "http://",
    "http://[",
    "http://[::1",
    "http://testserver.elsewhere.example",
    "http://testserver@elsewhere.example",
    "http://elsewhere.example@testserver",
    "http://testserver:8000",
    "http://testserver:99999999",
    "http://testserver/path",
    "ftp://testserver",
    "file://testserver",
    "http://test server",
    "http://testserver, https://friend.example",
    "//testserver",
    "http:testserver",
    "*",
    "\xff",
]


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_foreign_origin_is_403(caller, settings, befriended, origin):
    """MUST, and ``ALLOWED_HOSTS = ["*"]`` does not switch it off."""
    stranger = caller.with_headers(Origin=origin)
    for hosts in (["testserver"], ["*"], [".testserver", "testserver"]):
        settings.ALLOWED_HOSTS = hosts
        for answer in (
            stranger.call("tools/list", 4242),
            stranger.initialize(LEGACY[-1], 4242),
            stranger.send("GET"),
            stranger.send("DELETE"),
            stranger.send("OPTIONS"),
        ):
            assert_error(answer, 403, -32600, None)
            assert answer.header("Access-Control-Allow-Origin") is None


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("testserver", "http://testserver"),
        ("testserver", "http://testserver:80"),
        ("testserver:80", "http://testserver"),
        ("testserver:8000", "http://testserver:8000"),
        ("TESTSERVER:8000", "http://testserver:8000"),
        ("localhost:8000", "http://localhost:8000"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_the_sites_own_origin_is_let_in(caller, host, origin):
    assert caller.with_headers(Host=host, Origin=origin).call("tools/list").status == 200


def test_a_star_trusts_no_host_that_agrees_with_its_origin(caller, settings):
    """Under DNS rebinding, Host and Origin agree."""
    settings.ALLOWED_HOSTS = ["*"]
    rebound = caller.with_headers(Host="evil.example", Origin="http://evil.example")
    assert_error(rebound.call("tools/list", 4242), 403, -32600, None)
    assert caller.with_headers(Host="any.example").call("tools/list").status == 200


def test_the_scheme_belongs_to_the_origin(caller, settings):
    """RFC 6454, section 4: a page that came over HTTP is another origin than one over HTTPS."""
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    secure = caller.with_headers(X_Forwarded_Proto="https")
    assert secure.with_headers(Origin="https://testserver").call("tools/list").status == 200
    assert secure.with_headers(Origin="http://testserver").call("tools/list").status == 403


@pytest.mark.parametrize("origin", [FRIEND, FRIEND.upper().replace("HTTPS", "https")])
@pytest.mark.parametrize("hosts", [["testserver"], ["*"]])
def test_an_allowed_origin_may_read_every_answer(caller, settings, befriended, origin, hosts):
    """Errors as well, or a page could not tell what is wrong."""
    settings.ALLOWED_HOSTS = hosts
    friend = caller.with_headers(Origin=origin)
    member = friend.opened()
    for answer in (
        friend.call("tools/list"),
        friend.initialize(LEGACY[-1]),
        friend.post(b"{"),
        friend.send("GET"),
        friend.with_headers(Content_Type="text/plain").call("tools/list"),
        friend.with_headers(Mcp_Session_Id="unknown").send("DELETE"),
        Caller(friend.entrance, "/members/mcp", friend.headers).call("tools/list"),
        member.send("DELETE"),
    ):
        assert answer.header("Access-Control-Allow-Origin") == origin
        assert "Mcp-Session-Id" in answer.header("Access-Control-Expose-Headers")
        assert "Origin" in answer.header("Vary")


def test_without_an_origin_nothing_is_shared(caller, befriended):
    assert caller.call("tools/list").header("Access-Control-Allow-Origin") is None


def test_every_origin_is_allowed_on_purpose_only(caller, settings):
    settings.DJANGO_MCP = AUTH | {"ALLOWED_ORIGINS": ["*"]}
    answer = caller.with_headers(Origin=ELSEWHERE).call("tools/list")
    assert answer.status == 200
    assert answer.header("Access-Control-Allow-Origin") == "*"
    assert answer.header("Access-Control-Allow-Credentials") is None


def test_preflight_grants_what_a_client_needs(entrance, befriended):
    """Before authentication, for browsers send it without credentials."""
    wanted = "content-type,mcp-protocol-version,mcp-method,mcp-param-region"
    asking = Caller(entrance, "/members/mcp", {}).with_headers(
        Origin=FRIEND,
        Access_Control_Request_Method="POST",
        Access_Control_Request_Headers=wanted,
    )
    answer = asking.send("OPTIONS")
    assert answer.status == 204
    assert answer.header("Access-Control-Allow-Origin") == FRIEND
    granted = answer.header("Access-Control-Allow-Headers").lower().replace(" ", "").split(",")
    assert set(wanted.split(",")) <= set(granted)
    methods = answer.header("Access-Control-Allow-Methods").split(", ")
    assert {"POST", "DELETE"} <= set(methods)


def test_options_without_an_origin_says_what_is_served(caller):
    answer = caller.send("OPTIONS")
    assert answer.status == 204
    assert "POST" in answer.header("Allow")
    assert answer.header("Access-Control-Allow-Origin") is None


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "testserver.evil.example"])
def test_a_foreign_host_is_400(caller, settings, host):
    """Without CommonMiddleware, which asks for the host first and answers in HTML."""
    settings.MIDDLEWARE = []
    answer = caller.with_headers(Host=host).call("tools/list", 4242)
    assert_error(answer, 400, -32600, None)


@pytest.mark.parametrize(
    "host", ["", "test server", "testserver,evil.example", "[::1", "a/b", "\xff"]
)
def test_a_host_that_is_none_is_400(caller, settings, host):
    settings.MIDDLEWARE = []
    settings.ALLOWED_HOSTS = ["testserver"]
    answer = caller.with_headers(Host=host).call("tools/list", 4242)
    assert_error(answer, 400, -32600, None)


def test_a_forwarded_host_counts_where_the_site_says_so(caller, settings):
    settings.MIDDLEWARE = []
    forwarded = caller.with_headers(X_Forwarded_Host="evil.example")
    assert forwarded.call("tools/list").status == 200
    settings.USE_X_FORWARDED_HOST = True
    assert forwarded.call("tools/list").status == 400
    settings.ALLOWED_HOSTS = ["evil.example"]
    assert (
        caller.with_headers(Host="inner", X_Forwarded_Host="evil.example").call("tools/list").status
        == 200
    )


def test_http_is_refused_where_https_is_required(caller, settings):
    """No redirect from us: what follows it sends GET. SecurityMiddleware's own is its own."""
    settings.SECURE_SSL_REDIRECT = True
    settings.MIDDLEWARE = []
    assert_error(caller.call("tools/list", 4242), 403, -32600, None)
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert caller.with_headers(X_Forwarded_Proto="https").call("tools/list").status == 200
    assert caller.with_headers(X_Forwarded_Proto="https, http").call("tools/list").status == 200
    assert caller.with_headers(X_Forwarded_Proto="http").call("tools/list").status == 403


def test_a_path_that_is_exempt_from_https_is_exempt_here_too(caller, settings):
    """``SECURE_REDIRECT_EXEMPT``: what SecurityMiddleware lets through."""
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_REDIRECT_EXEMPT = [r"^mcp"]
    assert caller.call("tools/list").status == 200
