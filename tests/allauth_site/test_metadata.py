"""What clients read before they log in."""

from __future__ import annotations

import pytest
from django.test import override_settings

from django_mcp.contrib.oauth import OIDCAdapterMixin

from .login import Browser

pytestmark = pytest.mark.django_db
METADATA = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"


def test_an_endpoint_names_the_site_and_the_site_says_where_to_go():
    resource = Browser().get("/.well-known/oauth-protected-resource/mcp").json()
    issuer = resource["authorization_servers"][0]
    found = Browser().get(METADATA).json()
    assert found["issuer"] == issuer == "http://localhost"
    assert found["authorization_endpoint"] == "http://localhost/identity/o/authorize"
    assert found["token_endpoint"] == "http://localhost/identity/o/api/token"
    assert found["registration_endpoint"] == "http://localhost/identity/o/api/clients"
    assert found["code_challenge_methods_supported"] == ["S256"]
    assert found["response_types_supported"] == ["code"]
    assert found["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert "none" in found["token_endpoint_auth_methods_supported"]
    assert found["scopes_supported"] == ["orders:read", "orders:write"]
    assert found["client_id_metadata_document_supported"] is True
    assert found["authorization_response_iss_parameter_supported"] is True
    assert "device_authorization_endpoint" not in found


def test_both_documents_agree_on_where_things_are():
    one, other = Browser().get(METADATA).json(), Browser().get(OPENID).json()
    for name in ("issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint"):
        assert one[name] == other[name]
    assert other["scopes_supported"] == ["openid", "profile", "email"]


def test_documents_of_clients_are_not_promised_where_they_are_not_read(monkeypatch):
    monkeypatch.setattr(OIDCAdapterMixin, "reads_client_documents", False)
    assert "client_id_metadata_document_supported" not in Browser().get(METADATA).json()


def test_the_issuer_is_the_one_that_endpoints_name_whatever_the_site_is_called(settings):
    settings.DJANGO_MCP = {
        **settings.DJANGO_MCP,
        "BASE_URL": ["http://localhost", "http://127.0.0.1"],
        "AUTHORIZATION_SERVERS": ["https://id.example.com", "http://localhost"],
    }
    for host in ("localhost", "127.0.0.1"):
        found = Browser(headers={"Host": host}).get(METADATA).json()
        assert found["issuer"] == "http://localhost"
    assert Browser(headers={"Host": "testserver"}).get(METADATA).json()["issuer"] == (
        "http://testserver"
    )


@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", METADATA),
        ("GET", OPENID),
        ("POST", "/identity/o/api/token"),
        ("POST", "/identity/o/api/clients"),
        ("POST", "/identity/o/api/revoke"),
    ],
)
def test_pages_of_every_origin_may_ask_and_have_no_cookie_sent(method, url):
    asked = {
        "Origin": "https://inspector.example",
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "mcp-protocol-version, content-type",
    }
    preflight = Browser().options(url, headers=asked)
    assert preflight.status_code == 204
    assert preflight["Access-Control-Allow-Headers"] == "mcp-protocol-version, content-type"
    assert method in preflight["Access-Control-Allow-Methods"]
    response = Browser().generic(method, url, headers={"Origin": "https://inspector.example"})
    for each in (preflight, response):
        assert each["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in each.headers


@override_settings(
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
        "allauth.account.middleware.AccountMiddleware",
    ]
)
def test_nobody_need_be_logged_in_where_the_site_wants_that_otherwise():
    assert Browser().get(METADATA).status_code == 200
    assert Browser().post("/identity/o/api/token").status_code == 400
