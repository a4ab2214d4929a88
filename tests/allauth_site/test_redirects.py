"""Where people are sent, by an answer or without one; and what reports of errors show."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.idp.oidc import views
from allauth.idp.oidc.models import Client
from django.test import Client as DjangoClient

from tests.support.error_reports import reporting

from .login import (
    AUTHORIZE,
    CALLBACK,
    REGISTER,
    TOKEN,
    VERIFIER,
    Browser,
    ask,
    code_for,
    consent,
    register,
    registered,
    sent,
)

pytestmark = pytest.mark.django_db

EDITOR = "https://editor.example/callback"


@pytest.fixture
def editor(db: None) -> Client:
    """A client at the web, which has registered itself."""
    return registered(redirect_uris=[EDITOR])


@pytest.fixture
def own(db: None) -> Client:
    """A client that somebody of the site has made."""
    made = Client.objects.create(name="Own", type=Client.Type.PUBLIC)
    made.set_redirect_uris([EDITOR])
    made.set_scopes(["openid", "orders:read"])
    made.set_grant_types(["authorization_code"])
    made.set_response_types(["code"])
    made.save()
    return made


@pytest.mark.parametrize(
    "uri",
    [
        f"{EDITOR}?code=another&state=another",
        f"{EDITOR}?",
        f"{EDITOR};x",
        f"{EDITOR}#x",
        f"{EDITOR}/",
        "https://EDITOR.example/callback",
        "https://evil.example@editor.example/callback",
        "https://evil.example\\@editor.example/callback",
        "",
        None,
    ],
)
@pytest.mark.parametrize("kind", ["editor", "own"])
def test_an_answer_goes_where_the_client_said_letter_by_letter(browser, request, kind, uri):
    client = request.getfixturevalue(kind)
    page = ask(browser, client.pk, redirect_uri=uri)
    assert "Location" not in page.headers
    assert b'name="request"' not in page.content
    assert sent(consent(browser, ask(browser, client.pk, redirect_uri=EDITOR)))["code"]


@pytest.mark.parametrize(
    "uri",
    [
        "http://localhost:0/callback",
        "http://localhost:99999/callback",
        "http://localhost:999999/callback",
        "http://localhost:/callback",
        "http://localhost:4000/callback?x=1",
        "http://localhost:4000/callback#x",
        "http://evil.example@localhost:4000/callback",
        "http://evil.example\\@localhost/callback",
        "http://localhost.evil.example:4000/callback",
        "http://127.0.0.1:4000/callback",
    ],
)
def test_of_programs_on_the_own_machine_the_port_alone_may_differ(browser, uri):
    client = registered(redirect_uris=["http://localhost/callback"])
    page = ask(browser, client.pk, redirect_uri=uri)
    assert "Location" not in page.headers
    assert b'name="request"' not in page.content
    good = "http://localhost:4000/callback"
    assert sent(consent(browser, ask(browser, client.pk, redirect_uri=good)))["code"]


@pytest.mark.parametrize(
    "changed", [{"scope": "nonsense"}, {"scope": "nonsense", "prompt": "none"}]
)
def test_a_link_to_the_site_opens_no_page_of_a_client_that_nobody_knows(browser, editor, changed):
    page = ask(browser, editor.pk, redirect_uri=EDITOR, **changed)
    assert page.status_code == 400
    assert "Location" not in page.headers
    assert "invalid_scope" in page.content.decode()


@pytest.mark.parametrize("scope", ["orders:read", "nonsense", "openid"])
def test_nor_does_it_for_who_is_not_logged_in(editor, scope):
    page = ask(Browser(), editor.pk, redirect_uri=EDITOR, scope=scope, prompt="none")
    assert page.headers["Location"].startswith("/accounts/login/?next=/identity/o/authorize")


def test_programs_on_the_own_machine_are_told_of_errors_at_once(browser, client):
    page = ask(browser, client.pk, scope="nonsense")
    assert page.headers["Location"].startswith(f"{CALLBACK}?error=invalid_scope")


def test_clients_that_the_site_has_made_are_told_of_errors_at_once(browser, own):
    page = ask(browser, own.pk, redirect_uri=EDITOR, scope="nonsense")
    assert page.headers["Location"].startswith(f"{EDITOR}?error=invalid_scope")
    asked = {"redirect_uri": EDITOR, "scope": "openid", "resource": None, "prompt": "none"}
    page = ask(Browser(), own.pk, **asked)
    assert page.headers["Location"].startswith(f"{EDITOR}?error=login_required")


def test_a_redirect_to_the_login_is_none_to_a_client(browser):
    """Whatever somebody calls the client's URI."""
    asked = {"client_id": "unknown", "redirect_uri": "/", "prompt": "login"}
    assert browser.get(AUTHORIZE, asked).status_code == 302


# allauth's own form, on Django 5.2.
@pytest.mark.filterwarnings("ignore:The default scheme will be changed from 'http' to 'https'")
def test_a_logout_leads_nowhere_for_a_client_that_nobody_knows(editor, own):
    for client, leads in ((editor, False), (own, True)):
        page = Browser().get(
            "/identity/o/logout", {"client_id": client.pk, "post_logout_redirect_uri": EDITOR}
        )
        assert page.status_code == 302
        assert page.headers["Location"].startswith(EDITOR) is leads


# Registration


@pytest.mark.parametrize("name", ["a\u202eb", "a\u200bb", "a\nb", "x" * 101])
def test_a_name_is_what_people_can_read(name):
    assert register(client_name=name).json()["error"] == "invalid_client_metadata"
    assert not Client.objects.exists()


def test_not_too_many_uris_are_kept():
    uris = [f"{EDITOR}/{number}" for number in range(51)]
    assert register(redirect_uris=uris).json()["error"] == "invalid_client_metadata"
    assert register(redirect_uris=uris[:50]).status_code == 201


@pytest.mark.parametrize("value", [b'"\\ud800"', b"NaN", b"-Infinity", b"1e999"])
def test_what_a_database_cannot_keep_is_refused(value):
    body = b'{"redirect_uris": ["https://editor.example/callback"], "client_name": %b}' % value
    response = Browser().post(REGISTER, body, content_type="application/json")
    assert response.json()["error"] == "invalid_client_metadata"


# Reports of errors


@pytest.fixture
def reports() -> Any:
    with reporting() as found:
        yield found


@pytest.mark.parametrize("path", [TOKEN, "/identity/o/api/revoke"])
def test_reports_show_nothing_that_opens_anything(browser, client, reports, monkeypatch, path):
    def failing(*args: Any, **kwargs: Any) -> None:
        raise ValueError("planted")

    code = code_for(browser, client.pk)
    monkeypatch.setattr(views, "extract_params", failing)
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "token": "a-living-token",
        "code_verifier": VERIFIER,
        "client_id": client.pk,
        "client_secret": "s3cret-of-the-client",
    }
    machine = DjangoClient(SERVER_NAME="localhost", raise_request_exception=False)
    assert machine.post(path, form).status_code == 500
    (report,) = reports
    assert "planted" in report
    secrets = (code, "a-living-token", VERIFIER, "s3cret-of-the-client")
    assert not [each for each in secrets if each in report]
