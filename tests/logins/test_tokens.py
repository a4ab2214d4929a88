"""Which tokens of django-oauth-toolkit let their bearers in, through the doors of both kinds."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from oauth2_provider.models import AbstractApplication

from django_mcp.contrib.oauth.dot.models import AccessToken, Application, RefreshToken
from django_mcp.contrib.oauth.dot.site import has_scope_of_ours
from tests.logins.visitor import CALLBACK, LIBRARY, RESOURCE, caller_with

pytestmark = pytest.mark.django_db
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def application(anna):
    return Application.objects.create(
        name="Editor",
        redirect_uris=CALLBACK,
        client_type="public",
        authorization_grant_type="authorization-code",
        registration_source="dcr",
    )


@pytest.fixture
def issue(anna, application):
    """Put a token into the database, as good as one of our own but for what is changed."""

    def make(secret="a-token", **changed):
        row = {
            "user": anna,
            "application": application,
            "scope": "orders:read",
            "expires": timezone.now() + HOUR,
            "resource": [RESOURCE],
            **changed,
        }
        token = AccessToken(**row)
        token._raw_token, token.token = secret, ""
        token.save()
        return secret

    return make


@pytest.mark.parametrize("entrance", ["wsgi", "asgi"])
def test_a_token_for_this_endpoint_lets_its_user_in(issue, application, entrance):
    answer = caller_with(issue(), entrance).tool("whoami")
    assert answer.status == 200, answer
    text = answer.result["content"][0]["text"]
    assert text == f"anna oauth:{application.client_id} orders:read"


@pytest.mark.django_db(transaction=True)
def test_a_token_lets_its_user_in_at_the_mount(issue):
    assert caller_with(issue(), "mount").tool("whoami").status == 200


REFUSED = {
    "expired": {"expires": timezone.now() - HOUR},
    "without resource": {"resource": []},
    "of another endpoint": {"resource": [LIBRARY]},
    "of another site": {"resource": ["https://other.example/mcp"]},
    "of a prefix": {"resource": ["http://localhost"]},
    "of what is below": {"resource": [f"{RESOURCE}/more"]},
    "for several": {"resource": [RESOURCE, "https://other.example/mcp"]},
    "with a slash": {"resource": [f"{RESOURCE}/"]},
    "of nobody": {"user": None},
    "of no application": {"application": None},
    "for registrations": {"scope": "oauth2_provider:registration"},
    "for registrations too": {"scope": "orders:read oauth2_provider:registration"},
    "with scopes of others": {"scope": "introspection read"},
    "without scopes": {"scope": ""},
}


@pytest.mark.parametrize("changed", REFUSED.values(), ids=REFUSED)
def test_others_are_refused_and_told_nothing(issue, changed, caplog):
    secret = issue(**changed)
    with caplog.at_level("INFO", logger="django_mcp.contrib.oauth"):
        answer = caller_with(secret).tool("whoami")
    assert answer.status == 401
    challenge = answer.header("WWW-Authenticate")
    assert 'error="invalid_token"' in challenge
    assert (
        'resource_metadata="http://localhost/.well-known/oauth-protected-resource/mcp"' in challenge
    )
    unknown = caller_with("no-such-token").tool("whoami")
    assert (unknown.status, unknown.body) == (answer.status, answer.body)
    assert "Refused AccessToken" in caplog.text
    assert secret not in caplog.text


def test_a_token_by_what_the_database_has_of_it_is_refused(issue):
    issue()
    checksum = AccessToken.objects.get().token_checksum
    assert caller_with(checksum).tool("whoami").status == 401


def test_a_user_who_is_not_active_is_told_so(issue, anna):
    get_user_model().objects.filter(pk=anna.pk).update(is_active=False)
    assert caller_with(issue()).tool("whoami").status == 403


def test_an_application_that_is_out_of_use_lets_nobody_in(issue, monkeypatch):
    secret, seen = issue(), []

    def is_usable(self, request):
        seen.append((request.uri, request.http_method))
        return False

    monkeypatch.setattr(Application, "is_usable", is_usable)
    assert caller_with(secret).tool("whoami").status == 401
    assert seen == [("http://testserver/mcp", "POST")]
    monkeypatch.setattr(Application, "is_usable", AbstractApplication.is_usable)
    assert caller_with(secret).tool("whoami").status == 200


def test_a_request_costs_one_query_and_no_write(issue):
    secret = issue()
    caller_with(secret).tool("whoami")
    with CaptureQueriesContext(connection) as queries:
        caller_with(secret).tool("whoami")
    statements = [each["sql"] for each in queries.captured_queries]
    assert len([each for each in statements if "oauth2_provider" in each]) == 1
    # The tool runs in a transaction, as ATOMIC_REQUESTS would have it.
    assert not [each for each in statements if each.startswith(("INSERT", "UPDATE", "DELETE"))]


def test_without_a_token_people_are_told_where_to_log_in():
    answer = caller_with("").with_headers(Authorization="").tool("whoami")
    assert answer.status == 401
    assert 'scope="orders:read"' in answer.header("WWW-Authenticate")
    assert "error=" not in answer.header("WWW-Authenticate")


def test_a_session_belongs_to_user_and_client_and_outlives_a_refresh(editor):
    tokens = editor.login()
    session = caller_with(tokens["access_token"]).opened("2025-11-25")
    fresh = editor.refresh(tokens["refresh_token"]).json()
    assert session.tool("whoami").status == 401
    renewed = session.with_headers(Authorization=f"Bearer {fresh['access_token']}")
    assert renewed.tool("whoami").status == 200


def test_revoked_tokens_let_nobody_in(editor):
    tokens = editor.login()
    assert editor.call(tokens["access_token"]).status == 200
    response = editor.machine.post(
        "/o/revoke_token/",
        {"token": tokens["refresh_token"], "client_id": editor.client_id},
    )
    assert response.status_code == 200
    assert editor.call(tokens["access_token"]).status == 401
    assert editor.refresh(tokens["refresh_token"]).status_code == 400
    assert not RefreshToken.objects.filter(revoked__isnull=True).exists()


def test_scopes_of_another_urlconf_are_not_taken_for_this_ones(settings, configure):
    """As where a site's tests have several: ``override_settings(ROOT_URLCONF=...)``."""
    configure(SCOPES={}, SCOPE_HIERARCHY={}, READ_ONLY_SCOPES=[], BASE_SCOPES=[])
    assert has_scope_of_ours(["stock:write"])
    settings.ROOT_URLCONF = "tests.logins.urls_plain"
    assert not has_scope_of_ours(["stock:write"])
