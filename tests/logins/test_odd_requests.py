"""What is hardly a request is answered as one: never by an error of the site's."""

from __future__ import annotations

import base64
from urllib.parse import urlencode

import pytest

from tests.logins.visitor import CALLBACK, fields_of, offered

pytestmark = pytest.mark.django_db
PARAMETERS = [
    *("response_type", "client_id", "redirect_uri", "scope", "state", "resource", "nonce"),
    *("code_challenge", "code_challenge_method", "claims", "prompt", "response_mode", "max_age"),
    *("id_token_hint", "ui_locales", "approval_prompt", "request", "something"),
]
FIELDS = [
    *("grant_type", "code", "redirect_uri", "client_id", "client_secret", "code_verifier"),
    *("resource", "scope", "refresh_token", "token", "token_type_hint", "something"),
]
VALUES = ["", "a\0b", "x" * 5000, "é☃", "{}", "http://[::1", "openid", "login", "\r\nA: b"]
RAW = ["%zz", "%", "%ff", "%00", "%ED%A0%80", "a;b", "&&="]
FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def registered(editor):
    assert editor.register().status_code == 201
    editor.browser.raise_request_exception = editor.machine.raise_request_exception = False
    return editor


def assert_answered(response, asked):
    """It leads back to the client, or to a login, or says something that people can read."""
    assert response.status_code in (200, 302, 400, 401), (asked, response.content)
    if response.status_code in (400, 401):
        kind = response.headers["Content-Type"]
        assert kind == "application/json" or "<h1>" in response.content.decode(), asked


@pytest.mark.parametrize("name", PARAMETERS)
def test_people_are_shown_a_page_whatever_a_client_asks(registered, name):
    whole = registered.url_of().partition("?")[2]
    lacking = registered.url_of(**{name: None}).partition("?")[2]
    odd = [urlencode({name: each}) for each in VALUES] + [f"{name}={each}" for each in RAW]
    for query in [f"{begun}&{each}" for begun in (whole, lacking) for each in odd]:
        page = registered.browser.generic("GET", "/o/authorize/", QUERY_STRING=query)
        assert_answered(page, query)
        if page.status_code == 200:
            form = urlencode({**fields_of(page.content.decode()), "allow": "1"}).encode()
            answer = registered.browser.generic(
                "POST", "/o/authorize/", form, content_type=FORM, QUERY_STRING=query
            )
            assert_answered(answer, query)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("url", ["/o/token/", "/o/revoke_token/"])
def test_machines_get_an_error_of_oauths_whatever_they_send(registered, url, name):
    whole = {
        "grant_type": "authorization_code",
        "code": "a-code",
        "redirect_uri": CALLBACK,
        "client_id": registered.client_id,
        "code_verifier": "y" * 50,
        "refresh_token": "a-token",
        "token": "a-token",
    }
    odd = [urlencode({**whole, name: each}) for each in VALUES]
    odd += [f"{urlencode(whole)}&{name}={each}" for each in RAW]
    for grant in ("authorization_code", "refresh_token"):
        for body in odd:
            sent = f"grant_type={grant}&{body}" if name != "grant_type" else body
            response = registered.machine.generic("POST", url, sent.encode(), content_type=FORM)
            assert_answered(response, sent)
    for each in RAW:
        query = f"{name}={each}"
        response = registered.machine.generic(
            "POST", url, urlencode(whole).encode(), content_type=FORM, QUERY_STRING=query
        )
        assert_answered(response, query)


@pytest.mark.parametrize("sent", [b"a\0b:c", b"%00:%00", b"\xff:\xff", b"no colon", b"%zz:%zz"])
@pytest.mark.parametrize("url", ["/o/token/", "/o/revoke_token/"])
def test_credentials_that_are_none_are_refused(registered, url, sent):
    form = {"grant_type": "authorization_code", "code": "x", "token": "x"}
    credentials = f"Basic {base64.b64encode(sent).decode()}"
    response = registered.machine.post(url, form, headers={"Authorization": credentials})
    assert response.status_code == 401
    assert response.json()["error"] == "invalid_client"


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", FORM, "text/plain"])
def test_who_registers_must_send_json(registered, kind):
    response = registered.machine.generic("POST", "/o/register/", b"--x--", content_type=kind)
    assert response.status_code == 400
    assert response.json()["error"] == "invalid_client_metadata"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"code_challenge": "x" * 42}, "43 characters"),
        ({"code_challenge": "x" * 129}, "43 characters"),
        ({"code_challenge": "+" * 43}, "43 characters"),
        ({"nonce": "x" * 256}, "255 characters"),
    ],
    ids=str,
)
def test_what_there_is_no_room_for_is_refused_before_anybody_is_asked(registered, wrong, said):
    back = offered(registered.ask(**wrong))
    assert back["error"] == "invalid_request"
    assert said in back["error_description"]
    assert back["state"] == "a state"


def test_a_nonce_for_which_there_is_room_is_kept(registered):
    assert "code" in registered.answer(registered.ask(nonce="x" * 255))
