"""Middleware that a site may have, in front of the view and beside the mount."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.conf.urls.i18n import i18n_patterns
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.urls import path

from tests.support.caller import Caller
from tests.support.messages import LEGACY, REVISIONS
from tests.support.sites import urlconf

from . import urls
from .test_errors import assert_error

GZIP = "django.middleware.gzip.GZipMiddleware"
OPTIONAL = [
    GZIP,
    "django.middleware.http.ConditionalGetMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django.middleware.common.BrokenLinkEmailsMiddleware",
    "tests.wire.test_middleware.Plain",
    "tests.wire.test_middleware.reads_the_body",
]


class Plain:
    """A synchronous middleware of the oldest kind."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response["X-Plain"] = "1"
        return response


def reads_the_body(get_response: Callable[[HttpRequest], HttpResponse]) -> Any:
    """Return a middleware that looks at what is to come, as loggers and firewalls do."""

    def middleware(request: HttpRequest) -> HttpResponse:
        assert isinstance(request.body, bytes)
        return get_response(request)

    return middleware


def with_middleware(settings: Any, *more: str) -> None:
    settings.MIDDLEWARE = [*django_settings.MIDDLEWARE, *more]


@pytest.mark.parametrize("middleware", [[each] for each in OPTIONAL] + [OPTIONAL], ids=str)
def test_a_site_may_have_it(caller, settings, middleware):
    """Nothing breaks."""
    with_middleware(settings, *middleware)
    for revision in REVISIONS:
        member = caller.in_revision(revision)
        assert member.call("tools/call", name="add", arguments={"a": 1}).result["isError"] is False
        assert len(member.call("tools/list").result["tools"]) > 5
    assert_error(member.call("no/such/method", "ünï"), 404, -32601, "ünï")
    assert_error(caller.opened().call("no/such/method", "ünï"), 200, -32601, "ünï")
    stranger = caller.with_headers(Mcp_Session_Id="unknown", Referer="http://testserver/")
    assert_error(stranger.post({"jsonrpc": "2.0", "id": 0, "method": "ping"}), 404, -32001, 0)
    assert caller.send("PUT").status == 405
    assert caller.opened().send("DELETE").status == 204


def test_login_required_leaves_the_decision_to_auth(entrance, settings):
    """401 with a challenge, not a redirect to a form."""
    with_middleware(settings, "django.contrib.auth.middleware.LoginRequiredMiddleware")
    answer = Caller(entrance, "/members/mcp").call("tools/list")
    assert answer.status == 401
    assert answer.header("WWW-Authenticate")


def test_an_event_stream_is_not_compressed(caller, settings):
    """``Content-Encoding: identity``, for proxies and middleware buffer it."""
    with_middleware(settings, GZIP)
    streaming = caller.with_headers(Accept="text/event-stream", Accept_Encoding="gzip")
    assert streaming.call("tools/list").body.startswith(b"event: message\n")


def test_an_unchanged_answer_is_sent_whole(caller, settings):
    with_middleware(settings, "django.middleware.http.ConditionalGetMiddleware")
    first = caller.call("tools/list")
    again = caller.with_headers(If_None_Match=first.header("ETag") or '"x"').call("tools/list")
    assert again.status == 200
    assert again.body == first.body


@pytest.mark.parametrize("language", ["de", "fr"])
def test_messages_do_not_change_with_the_language(caller, settings, language):
    with_middleware(settings, "django.middleware.locale.LocaleMiddleware")
    plain = caller.call("no/such/method")
    assert caller.with_headers(Accept_Language=language).call("no/such/method").body == plain.body


def test_a_404_is_not_taken_for_a_page_without_its_language(caller, settings):
    """A site in several languages with a page for everything would have clients redirected."""
    pages = i18n_patterns(path("<path:anything>", lambda request, anything: HttpResponse("page")))
    settings.ROOT_URLCONF = urlconf(*urls.urlpatterns, *pages)
    with_middleware(settings, "django.middleware.locale.LocaleMiddleware")
    missing = caller.entrance.send("GET", "/no/such/page", [("Host", "testserver")])
    assert missing.header("Location") == "/en/no/such/page"
    assert_error(caller.call("no/such/method", 7), 404, -32601, 7)
    stranger = caller.with_headers(Mcp_Session_Id="unknown")
    assert_error(stranger.post({"jsonrpc": "2.0", "id": 0, "method": "ping"}), 404, -32001, 0)
    assert stranger.send("DELETE").status == 404


def test_the_endpoint_needs_no_csrf_token(entrance):
    """The entrances check CSRF as a server does; cookies alone open nothing to another origin."""
    caller = Caller(entrance).with_headers(Cookie="csrftoken=" + "x" * 32)
    assert caller.call("tools/list").status == 200
    assert caller.initialize(LEGACY[-1]).status == 200


@pytest.fixture
def debug_toolbar():
    """Take the toolbar's recorder off the connections, or it goes on for all later tests."""
    yield pytest.importorskip("debug_toolbar")
    for connection in connections.all():
        for name in ("cursor", "chunked_cursor", "_djdt_cursor", "_djdt_chunked_cursor"):
            vars(connection).pop(name, None)


@pytest.mark.usefixtures("debug_toolbar")
def test_the_debug_toolbar_may_be_installed(caller, settings):
    settings.STATIC_URL = "/static/"
    settings.INSTALLED_APPS = [*django_settings.INSTALLED_APPS, "debug_toolbar"]
    settings.ROOT_URLCONF = "tests.wire.urls_with_toolbar"
    settings.DEBUG_TOOLBAR_CONFIG = {"SHOW_TOOLBAR_CALLBACK": lambda request: True}
    settings.MIDDLEWARE = [
        "debug_toolbar.middleware.DebugToolbarMiddleware",
        *django_settings.MIDDLEWARE,
    ]
    assert caller.call("tools/call", name="add", arguments={"a": 1}).status == 200
    assert caller.opened().call("tools/list").status == 200
    assert_error(caller.call("no/such/method", "ünï"), 404, -32601, "ünï")
