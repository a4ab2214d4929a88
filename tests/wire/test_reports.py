"""What reports of errors show of a request: not the ``Mcp-Session-Id``, which is secret."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils.log import AdminEmailHandler
from django.views.debug import (
    ExceptionReporter,
    SafeExceptionReporterFilter,
    get_default_exception_reporter_filter,
)

from django_mcp import Context, MCPServer, MCPView, endpoint
from django_mcp.auth import public
from django_mcp.http import admission
from tests.support.caller import Caller
from tests.support.messages import LEGACY, request
from tests.support.sites import urlconf

from . import auth_callables

SECRET = "Zm9yIHlvdXIgZXllcyBvbmx5"

seen: list[str] = []
server = MCPServer("reports", version="1")


@server.tool
def look(ctx: Context) -> None:
    """Look at the request, wherever somebody might."""
    seen.append(f"{ctx.request.META} {ctx.request.headers}")


reports: list[str] = []


@server.tool
def report(ctx: Context) -> None:
    """Report as Django does."""
    try:
        raise RuntimeError(ctx.request.META["HTTP_AUTHORIZATION"][:6])
    except RuntimeError:
        reports.append(ExceptionReporter(ctx.request, *sys.exc_info()).get_traceback_html())


class Open(SafeExceptionReporterFilter):
    """A site's own filter, which thinks of nothing of ours."""

    hidden_settings = re.compile("NOTHING")


def crash_afterwards(get_response: Callable[[HttpRequest], HttpResponse]) -> Any:
    """Return a middleware that breaks when the view has answered."""

    def middleware(request: HttpRequest) -> HttpResponse:
        get_response(request)
        raise RuntimeError("planted")

    return middleware


@pytest.fixture(params=[None, f"{__name__}.Open"], ids=["Django's filter", "the site's own"])
def _filter(request: pytest.FixtureRequest, settings: Any) -> Iterator[None]:
    if request.param:
        settings.DEFAULT_EXCEPTION_REPORTER_FILTER = request.param
    get_default_exception_reporter_filter.cache_clear()
    yield
    get_default_exception_reporter_filter.cache_clear()


class Kept(AdminEmailHandler):
    """Keeps what would be sent to the admins."""

    def __init__(self) -> None:
        super().__init__(include_html=True)
        self.mails: list[str] = []

    def send_mail(self, subject: str, message: str, *args: Any, **kwargs: Any) -> None:
        self.mails.append(f"{subject} {message} {kwargs}")


@pytest.fixture
def mails() -> Iterator[list[str]]:
    """What Django tells the admins."""
    handler = Kept()
    logger = logging.getLogger("django.request")
    logger.addHandler(handler)
    yield handler.mails
    logger.removeHandler(handler)


@pytest.mark.usefixtures("_filter")
def test_mails_to_the_admins_do_not_have_it(entrance, mails):
    """The view has answered with an error of its own, 500, of which Django tells them."""
    caller = Caller(entrance, "/broken/mcp").with_headers(Mcp_Session_Id=SECRET)
    assert caller.post(request("ping")).status == 500
    assert ["REQUEST_METHOD" in mail for mail in mails] == [True] * (entrance.name != "mount")
    assert SECRET not in str(mails)


@pytest.mark.usefixtures("_filter")
@pytest.mark.parametrize("debug", [True, False])
def test_nor_do_they_and_the_debug_page_where_middleware_breaks(entrance, settings, mails, debug):
    settings.DEBUG = debug
    settings.MIDDLEWARE = [f"{__name__}.crash_afterwards", *django_settings.MIDDLEWARE]
    answer = Caller(entrance).with_headers(Mcp_Session_Id=SECRET).post(request("ping"))
    if entrance.name == "mount":
        assert answer.status == 404
        return
    report = answer.body.decode() if debug else mails[0]
    assert "REQUEST_METHOD" in report
    assert SECRET not in report


TOKEN = "dG9rZW4gb2YgYSBjbGllbnQ"


class Chosen(Open):
    """What a site has chosen for some requests."""

    def get_safe_request_meta(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().get_safe_request_meta(request), "CHOSEN": "yes"}


def keep_and_crash(get_response: Callable[[HttpRequest], HttpResponse]) -> Any:
    """Return a middleware that has secrets in its variables when it breaks."""

    def middleware(request: HttpRequest) -> HttpResponse:
        session_id = request.headers["Mcp-Session-Id"]
        kept = {"header": request.headers["Authorization"], "note": "visible-note"}
        harmless = "visible-variable"
        if request.headers.get("X-Chosen"):
            request.exception_reporter_filter = Chosen()  # type: ignore[attr-defined]
        get_response(request)
        raise RuntimeError(f"planted {len(session_id)} {len(kept)} {len(harmless)}")

    return middleware


@pytest.mark.usefixtures("_filter")
@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("debug", [True, False])
def test_neither_headers_nor_variables_show_a_secret(entrance, settings, mails, debug, chosen):
    if entrance.name == "mount":
        return
    settings.DEBUG = debug
    settings.MIDDLEWARE = [f"{__name__}.keep_and_crash", *django_settings.MIDDLEWARE]
    caller = Caller(entrance).with_headers(
        Accept="text/html, application/json, text/event-stream",
        Mcp_Session_Id=SECRET,
        Authorization=f"Bearer {TOKEN}",
        **({"X-Chosen": "1"} if chosen else {}),
    )
    answer = caller.post(request("ping"))
    report = answer.body.decode() if debug else mails[0]
    assert "HTTP_AUTHORIZATION" in report
    assert "visible-variable" in report
    assert ("CHOSEN" in report) is chosen
    assert SECRET not in report
    assert TOKEN not in report


@pytest.mark.usefixtures("_filter")
def test_whoever_reports_a_request_at_the_mount_has_the_same_filter(entrance, settings):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server, auth=auth_callables.curious))
    seen.clear()
    reports.clear()
    caller = Caller(entrance).with_headers(Authorization=f"Bearer {TOKEN}").opened("2025-11-25")
    caller.call("tools/call", name="report", arguments={})
    (report,) = reports
    assert "HTTP_AUTHORIZATION" in report
    assert TOKEN not in report
    assert str(caller.session) not in report


def test_a_function_of_the_site_finds_everything_else_of_its_request(entrance, settings):
    settings.ROOT_URLCONF = urlconf(endpoint("mcp", server=server, auth=auth_callables.curious))
    seen.clear()
    for revision in LEGACY:
        caller = Caller(entrance).opened(revision)
        assert caller.call("tools/call", name="look", arguments={}).status == 200
        assert str(caller.session) not in seen[-1]
        assert "HTTP_HOST" in seen[-1]


@pytest.mark.django_db
def test_a_request_may_be_given_to_the_view_again():
    """By a view of the site that tries several endpoints, or a middleware that tries again."""
    asked = RequestFactory().delete("/mcp", headers={"Mcp-Session-Id": SECRET})
    view = MCPView.as_view(server=server, auth=public)
    assert [view(asked).status_code for _ in range(2)] == [404, 404]


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_no_frame_of_a_traceback_shows_it(entrance, monkeypatch, caplog, method):
    """Wherever the log goes: Sentry and AdminEmailHandler show the variables of frames."""

    def fail(*args: Any) -> Any:
        raise RuntimeError("planted")

    monkeypatch.setattr(admission, "find_sessions", fail)
    monkeypatch.setattr("django_mcp.store.sessions.session_rows.read_sessions", fail)
    caller = Caller(entrance).with_headers(Mcp_Session_Id=SECRET)
    if method == "POST":
        caller.post(request("ping"))
    else:
        caller.send("DELETE")
    (record,) = [each for each in caplog.records if each.exc_info]
    report = ExceptionReporter(None, *record.exc_info).get_traceback_html()
    assert "planted" in report
    assert SECRET not in report
