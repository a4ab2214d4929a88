"""Reports of errors, which go to people and to other services, show nothing that opens anything."""

from __future__ import annotations

import pytest
from django.test import Client
from django.views import debug
from django.views.debug import SafeExceptionReporterFilter

from django_mcp.contrib.oauth.dot.validator import Validator
from tests.logins.visitor import CALLBACK, VERIFIER
from tests.support.error_reports import reporting

pytestmark = pytest.mark.django_db


class OwnFilter(SafeExceptionReporterFilter):
    """A site's own."""

    def cleanse_setting(self, key, value):
        return "own" if key == "SERVER_NAME" else super().cleanse_setting(key, value)


@pytest.fixture
def reports():
    with reporting() as found:
        yield found


@pytest.fixture
def send():
    return Client(SERVER_NAME="localhost", raise_request_exception=False).post


def failing(*args, **kwargs):
    raise ValueError("planted")


@pytest.fixture
def known(editor):
    editor.register(token_endpoint_auth_method="client_secret_post")
    return {"client_id": editor.client_id, "client_secret": editor.secret}


def assert_silent(reports, *secrets):
    (report,) = reports
    assert "planted" in report
    assert not [each for each in secrets if each in report]


def test_of_a_code(editor, known, reports, send, monkeypatch):
    code = editor.code()
    sent = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        **known,
    }
    monkeypatch.setattr(Validator, "_create_refresh_token", failing)
    assert send("/o/token/", sent).status_code == 500
    assert_silent(reports, code, VERIFIER, editor.secret)


@pytest.mark.parametrize("failure", ["_create_refresh_token", "validate_refresh_token"])
def test_of_a_refresh(editor, known, reports, send, monkeypatch, failure):
    code = editor.code()
    token = editor.exchange(code, client_secret=editor.secret).json()["refresh_token"]
    monkeypatch.setattr(Validator, failure, failing)
    sent = {"grant_type": "refresh_token", "refresh_token": token, **known}
    assert send("/o/token/", sent).status_code == 500
    assert_silent(reports, token, editor.secret)


def test_of_a_revocation(editor, known, reports, send, monkeypatch):
    monkeypatch.setattr(Validator, "revoke_token", failing)
    assert send("/o/revoke_token/", {"token": "a-living-token", **known}).status_code == 500
    assert_silent(reports, "a-living-token", editor.secret)


def test_what_the_site_hides_itself_stays_hidden(known, reports, send, monkeypatch):
    monkeypatch.setattr(debug, "get_default_exception_reporter_filter", OwnFilter)
    monkeypatch.setattr(Validator, "revoke_token", failing)
    send("/o/revoke_token/", {"token": "a-living-token", **known})
    assert "SERVER_NAME = 'own'" in reports[0]
    assert_silent(reports, "a-living-token")


def test_on_a_developers_own_machine_nothing_is_hidden(known, reports, send, monkeypatch, settings):
    settings.DEBUG = True
    monkeypatch.setattr(Validator, "revoke_token", failing)
    send("/o/revoke_token/", {"token": "a-living-token", **known})
    assert "a-living-token" in reports[0]
