"""What clients look for before they log in, and some before anything else.

Who has no such document says so: quickly, in JSON, and without a warning in the log. Clients show
what they get, and go on after a 404 alone.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.conf.urls.i18n import i18n_patterns
from django.http import HttpRequest, HttpResponse
from django.urls import include, path, re_path, reverse

from django_mcp import MCPServer, MCPView, endpoint
from django_mcp.checks import check_well_known
from tests.support.answers import HTTPAnswer
from tests.support.caller import Caller
from tests.support.entrances import Entrance
from tests.support.sites import urlconf

PROTECTED, AUTHORIZATION, OPENID = DOCUMENTS = (
    "oauth-protected-resource",
    "oauth-authorization-server",
    "openid-configuration",
)
AT_ROOT = [f"/.well-known/{each}" for each in DOCUMENTS]
ASKED_FOR = [
    # Claude Code, Codex and mcp-remote, of a server at /mcp.
    *AT_ROOT,
    *(f"/.well-known/{each}/mcp" for each in DOCUMENTS),
    *(f"/mcp/.well-known/{each}" for each in DOCUMENTS),
]


def page(request: HttpRequest, **kwargs: Any) -> HttpResponse:
    """Show a page of the site's own, whatever is asked for."""
    return HttpResponse("<html>a page</html>")


def issuer(request: HttpRequest, **kwargs: str) -> HttpResponse:
    """Say who issues tokens."""
    return HttpResponse('{"issuer": "https://example.com"}', content_type="application/json")


WHOLE = [path("", include("django_mcp.urls"))]
BELOW = [path("api/", include("django_mcp.urls")), path("", include("django_mcp.well_known"))]
CATCH_ALL = path("<path:anything>", page)


def get(entrance: Entrance, url: str, method: str = "GET", **headers: str) -> HTTPAnswer:
    given = {"Accept": "application/json", "Mcp-Protocol-Version": "2025-11-25"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    return entrance.send(method, url, list(given.items()))


def assert_absent(answer: HTTPAnswer) -> None:
    assert answer.status == 404
    assert answer.header("Content-Type") == "application/json"
    assert set(json.loads(answer.body)) == {"error", "error_description"}
    assert answer.header("Access-Control-Allow-Origin") == "*"


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("debug", [True, False], ids=["debug", "no debug"])
def test_what_is_not_there_is_a_quiet_404_in_json(entrance, settings, caplog, debug):
    settings.ROOT_URLCONF = urlconf(*WHOLE, CATCH_ALL)
    settings.DEBUG = debug
    settings.MIDDLEWARE = [
        *django_settings.MIDDLEWARE,
        "django.middleware.locale.LocaleMiddleware",
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
    ]
    for url in ASKED_FOR:
        assert_absent(get(entrance, url))
        assert_absent(get(entrance, f"{url}/"))
    assert warnings(caplog) == []


def test_a_page_for_everything_in_each_language_answers_none_of_them(entrance, settings):
    settings.ROOT_URLCONF = urlconf(*WHOLE, *i18n_patterns(CATCH_ALL))
    settings.MIDDLEWARE = ["django.middleware.locale.LocaleMiddleware", *django_settings.MIDDLEWARE]
    for url in ASKED_FOR:
        assert_absent(get(entrance, url, Accept_Language="de"))


@pytest.mark.parametrize("url", ASKED_FOR)
def test_a_site_without_a_page_for_everything_has_none_of_them(entrance, settings, caplog, url):
    settings.ROOT_URLCONF = urlconf(*WHOLE)
    assert_absent(get(entrance, url))
    assert warnings(caplog) == []


def test_endpoints_below_a_prefix_have_theirs_at_the_root_of_the_site(entrance, settings):
    settings.ROOT_URLCONF = urlconf(
        *BELOW, endpoint("staff/mcp", server=MCPServer("staff")), CATCH_ALL
    )
    for place in ("api/mcp", "staff/mcp"):
        for each in DOCUMENTS:
            assert_absent(get(entrance, f"/.well-known/{each}/{place}"))
            assert_absent(get(entrance, f"/{place}/.well-known/{each}"))
    assert_absent(get(entrance, f"/.well-known/{PROTECTED}"))


@pytest.mark.parametrize(
    "url",
    [
        "/.well-known/security.txt",
        "/.well-known/openid-configuration/o",
        "/.well-known/oauth-authorization-server/shop",
        "/.well-known/oauth-protected-resource/orders",
        "/orders/.well-known/openid-configuration",
        "/mcp/.well-known/openid-configuration/mcp",
        "/.well-known/oauth-protected-resource/" + ".well-known/openid-configuration/" * 300,
        "/api/.well-known/openid-configuration",
        "/api/.well-known/oauth-protected-resource",
    ],
    ids=lambda url: url[:60],
)
def test_what_is_not_an_endpoints_is_the_sites(entrance, settings, url):
    settings.ROOT_URLCONF = urlconf(*WHOLE, *BELOW, CATCH_ALL)
    assert get(entrance, url).body == b"<html>a page</html>"


@pytest.mark.parametrize("first", [True, False], ids=["ours first", "ours last"])
@pytest.mark.parametrize("urls", [WHOLE, BELOW], ids=["urls", "well_known"])
def test_the_sites_own_issuer_is_never_in_the_shadow(entrance, settings, urls, first):
    own = [
        path(".well-known/openid-configuration", issuer),
        path(".well-known/", include([path("oauth-authorization-server", issuer)])),
        path("o/.well-known/openid-configuration", issuer),
        path(".well-known/openid-configuration/o", issuer),
        path("api/.well-known/openid-configuration", issuer),
        *([CATCH_ALL] if first else []),
    ]
    settings.ROOT_URLCONF = urlconf(*urls, *own) if first else urlconf(*own, *urls)
    for url in (
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server",
        "/o/.well-known/openid-configuration",
        "/.well-known/openid-configuration/o",
        "/api/.well-known/openid-configuration",
    ):
        assert b"issuer" in get(entrance, url).body


@pytest.mark.parametrize(
    "own", [path(".well-known/<name>", issuer), re_path(r"\.well-known/openid", issuer)], ids=str
)
def test_an_issuer_in_a_pattern_of_the_sites_for_several_documents_is_its_own(
    entrance, settings, own
):
    settings.ROOT_URLCONF = urlconf(*WHOLE, own, CATCH_ALL)
    assert b"issuer" in get(entrance, "/.well-known/openid-configuration").body


def test_a_page_of_a_browser_client_may_read_it(entrance, settings):
    """They send ``Mcp-Protocol-Version``, so even a GET is preceded by a preflight."""
    settings.ROOT_URLCONF = urlconf(*WHOLE)
    answer = get(
        entrance,
        ASKED_FOR[0],
        "OPTIONS",
        Origin="https://inspector.example",
        Access_Control_Request_Method="GET",
        Access_Control_Request_Headers="mcp-protocol-version",
    )
    assert answer.status == 204
    assert answer.header("Access-Control-Allow-Origin") == "*"
    assert answer.header("Access-Control-Allow-Headers") == "mcp-protocol-version"
    assert answer.body == b""


def test_it_needs_no_database(entrance, settings, django_assert_num_queries):
    settings.ROOT_URLCONF = urlconf(*WHOLE)
    with django_assert_num_queries(0):
        assert_absent(get(entrance, ASKED_FOR[3]))
    assert_absent(get(entrance, ASKED_FOR[3], "POST"))


def test_an_endpoint_with_a_view_of_its_own_has_its_documents(entrance, settings):
    class Own(MCPView):
        server = MCPServer("own")

    settings.ROOT_URLCONF = urlconf(path("own/mcp", Own.as_view()), *BELOW)
    assert_absent(get(entrance, f"/.well-known/{PROTECTED}/own/mcp"))


def test_the_endpoint_is_still_found_by_its_name(settings):
    settings.ROOT_URLCONF = urlconf(*WHOLE)
    assert reverse("django_mcp") == "/mcp"


@pytest.mark.parametrize(
    "place", ["/mcp", "/members/mcp", "/session/mcp"], ids=["public", "bearer", "login"]
)
def test_a_get_before_anything_else_is_refused_quietly(entrance, caplog, place):
    """Codex and mcp-remote look whether there is a stream, before they have a session."""
    answer = Caller(entrance, place).with_headers(Accept="*/*").send("GET")
    assert answer.status in (400, 401, 405)
    assert answer.error["code"] == -32600
    assert warnings(caplog) == []


def test_a_post_without_credentials_is_refused_quietly(entrance, caplog):
    assert Caller(entrance, "/members/mcp").call("tools/list").status == 401
    assert warnings(caplog) == []


def answered_by(settings: Any, *patterns: Any) -> list[str]:
    settings.ROOT_URLCONF = urlconf(*patterns)
    found = check_well_known()
    assert {each.id for each in found} <= {"django_mcp.W008"}
    return [each.msg for each in found]


@pytest.mark.parametrize(
    "catch_all",
    [
        CATCH_ALL,
        re_path(r"^(?P<anything>.*)$", page),
        re_path(r"^((?:[\w\-.]+/)*[\w\-.]*)$", page),
        path("", include([path("<path:anything>", page)])),
        *i18n_patterns(path("<path:anything>", page), prefix_default_language=False),
    ],
    ids=["path", "named group", "group", "include", "languages"],
)
def test_a_page_for_everything_that_comes_first_is_a_warning(settings, catch_all):
    (warning,) = answered_by(settings, catch_all, *WHOLE)
    assert "/.well-known/oauth-protected-resource" in warning
    assert "anything" in warning or "[" in warning
    assert answered_by(settings, *WHOLE, catch_all) == []


@pytest.mark.parametrize("route", ["<path:anything>", "<path:anything>/"])
def test_a_page_for_everything_hides_what_no_include_serves(settings, route):
    below, rest = path("api/", include("django_mcp.urls")), path(route, page)
    (warning,) = answered_by(settings, below, rest)
    assert repr(route) in warning
    assert answered_by(settings, below, path("", include("django_mcp.well_known")), rest) == []


def test_what_a_site_has_itself_is_no_page_for_everything(settings):
    own = [path(f".well-known/{each}", issuer) for each in DOCUMENTS]
    below = path(".well-known/oauth-protected-resource/<path:resource>", issuer)
    assert answered_by(settings, *own, below, *WHOLE) == []
    assert answered_by(settings, CATCH_ALL) == []
    assert answered_by(settings, endpoint("mcp")) == []
    assert answered_by(settings, path("<slug:tenant>/", include("django_mcp.urls"))) == []
