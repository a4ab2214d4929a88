"""Reports of errors show no token, and no secret of the site's, whatever library fails."""

from __future__ import annotations

import sys
from typing import Any

import httpx
import pytest
from django.views.debug import ExceptionReporter

from django_mcp.contrib.oauth import introspection_auth, jwt, jwt_auth

from .conftest import RESOURCE, shown
from .issuer import SECRET

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("site")]


def report_of(auth: Any, request: Any) -> str:
    """Return the report of what goes wrong."""
    try:
        auth(request)
    except TypeError:
        made = ExceptionReporter(request, *sys.exc_info())
        return str(made.get_traceback_text() + made.get_traceback_html())
    raise AssertionError("nothing went wrong")


def test_of_a_signature(issuer, anna, monkeypatch):
    def failing(text: str, key: Any, **options: Any) -> None:
        raise TypeError("planted")

    monkeypatch.setattr(jwt, "deserialize_compact", failing)
    token = issuer.sign(issuer.claims(RESOURCE))
    report = report_of(jwt_auth, shown(issuer, token))
    assert "planted" in report
    assert token not in report


def test_of_a_question_about_a_token(issuer, anna, monkeypatch):
    def failing(self: Any, method: str, url: str, **sent: Any) -> None:
        if method == "POST":
            raise TypeError("planted")
        return stream(self, method, url, **sent)

    stream = httpx.Client.stream
    monkeypatch.setattr(httpx.Client, "stream", failing)
    token = "-".join(("a", "living", "token"))  # for a report shows this line
    report = report_of(introspection_auth, shown(issuer, token))
    assert "planted" in report
    assert token not in report
    assert SECRET not in report.replace("&amp;", "&")
