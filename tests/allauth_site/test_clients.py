"""Clients that nobody has made by hand: registered, or known by a document."""

from __future__ import annotations

import time
from typing import Any

import pytest
import requests
from allauth.idp.oidc.models import Client, Token
from django.contrib.auth import get_user_model
from django.core.cache import cache

from django_mcp.contrib.oauth import OIDCAdapterMixin, client_documents
from django_mcp.contrib.oauth.allauth import clients

from .adapter import Adapter
from .login import (
    AUTHORIZE,
    REGISTER,
    Browser,
    ask,
    caller,
    code_for,
    consent,
    exchange,
    may_decide,
    post_form,
    question,
    register,
    registered,
    sent,
    tokens_for,
)

pytestmark = pytest.mark.django_db


# Registration


def test_a_client_gets_what_it_asks_for_of_what_there_is():
    made = register(
        scope="orders:read introspection openid",
        grant_types=[
            "authorization_code",
            "refresh_token",
            "urn:ietf:params:oauth:grant-type:device_code",
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "client_credentials",
        ],
        response_types=["code", "token"],
    ).json()
    assert made["scope"] == "orders:read"
    assert made["grant_types"] == ["authorization_code", "refresh_token"]
    assert made["response_types"] == ["code"]
    assert made["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in made
    client = Client.objects.get(pk=made["client_id"])
    # For what it will ask for later: people are asked then.
    assert client.get_scopes() == ["orders:read", "orders:write"]
    assert client.get_default_scopes() == ["orders:read"]


@pytest.mark.parametrize("scope", [None, "", "introspection", 7])
def test_who_asks_for_nothing_of_ours_is_told_of_the_scopes_that_all_need(scope):
    assert register(scope=scope).json()["scope"] == "orders:read"


@pytest.mark.parametrize(
    "changed",
    [
        {"redirect_uris": ["http://evil.example/cb"]},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": ["https://*.example/cb"]},
        {"redirect_uris": ["https://a.example/\nhttps://b.example/"]},
        {"redirect_uris": []},
        {"redirect_uris": None},
        {"redirect_uris": "https://a.example/"},
        {"redirect_uris": [7]},
        {"grant_types": ["client_credentials"]},
        {"grant_types": ["password", "implicit"]},
        {"response_types": ["token"]},
        {"token_endpoint_auth_method": "tls_client_auth"},
        {"client_name": "a\x00b"},
        {"client_name": "x" * 70_000},
    ],
    ids=lambda changed: str(changed)[:60],
)
def test_what_is_not_safe_is_not_registered(changed):
    response = register(**changed)
    assert response.status_code == 400
    assert response.json()["error"] in ("invalid_client_metadata", "invalid_redirect_uri")
    assert not Client.objects.exists()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"[" * 50_000])
def test_what_is_no_metadata_is_refused(body):
    response = Browser().post(REGISTER, body, content_type="application/json")
    assert response.status_code == 400


def test_editors_register_their_schemes(browser):
    uri = "cursor://anysphere.cursor-mcp/oauth/callback"
    client = registered(redirect_uris=[uri])
    page = ask(browser, client.pk, redirect_uri=uri)
    assert "opens <strong>anysphere.cursor-mcp</strong>" in page.content.decode()
    response = consent(browser, page)
    assert response["Location"].startswith(f"{uri}?code=")


def test_machines_do_not_register(settings):
    made = register(
        token_endpoint_auth_method="client_secret_post",
        grant_types=["authorization_code", "client_credentials"],
    ).json()
    form = {"client_id": made["client_id"], "client_secret": made["client_secret"]}
    response = post_form("/identity/o/api/token", grant_type="client_credentials", **form)
    assert response.status_code == 400
    assert not Token.objects.exists()


# Documents


def test_a_client_is_known_by_its_document(browser, documents):
    client_id = documents.show(scope="openid profile")
    page = ask(browser, client_id)
    assert documents.url.removeprefix("https://") in page.content.decode()
    code = sent(consent(browser, page))["code"]
    tokens = exchange(client_id, code).json()
    text = caller(tokens["access_token"]).tool("whoami").result["content"][0]["text"]
    assert text == f"anna oauth:{client_id} orders:read"
    client = Client.objects.get(pk=client_id)
    assert client.get_scopes() == ["orders:read", "orders:write"]
    assert client.get_grant_types() == ["authorization_code", "refresh_token"]
    assert client.type == Client.Type.PUBLIC
    assert documents.asked == {"/client.json": 1}


def test_nobody_has_a_document_fetched_who_is_not_logged_in(documents):
    client_id = documents.show()
    stranger = Browser()
    assert stranger.get(AUTHORIZE, question(client_id)).status_code == 302
    stranger.get(AUTHORIZE, question(client_id, prompt="none"))
    exchange(client_id, "code", resource=None)
    post_form("/identity/o/api/revoke", token="t", client_id=client_id)
    post_form("/identity/o/api/device/code", client_id=client_id)
    stranger.get("/identity/o/logout", {"client_id": client_id})
    assert not documents.asked
    assert not Client.objects.exists()


@pytest.mark.parametrize("is_stock", [True, False])
def test_allauth_fetches_nothing_by_itself(settings, monkeypatch, is_stock):
    """Even where its own setting lets it: the adapter does not."""
    fetched = []

    def get(url: str, **options: Any) -> Any:
        fetched.append(url)
        raise requests.ConnectionError

    monkeypatch.setattr(requests, "get", get)
    settings.IDP_OIDC_CIMD_ENABLED = True
    if is_stock:
        settings.IDP_OIDC_ADAPTER = "allauth.idp.oidc.adapter.DefaultOIDCAdapter"
    assert exchange("https://127.0.0.1/client.json", "code", resource=None).status_code == 401
    assert bool(fetched) == is_stock


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "169.254.169.254", "localhost", "[::1]", "10.0.0.1", "[::ffff:7f00:1]"]
)
def test_no_document_is_fetched_from_here(browser, document_host, monkeypatch, host):
    document_host.asked.clear()
    monkeypatch.setattr(client_documents, "tls_context", document_host.trusted)
    port = document_host.url.rpartition(":")[2]
    response = ask(browser, f"https://{host}:{port}/client.json")
    assert response.status_code == 400
    assert "not on the public Internet" in response.content.decode()
    assert not document_host.asked
    assert not Client.objects.exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "https://other.example/client.json"},
        {"redirect_uris": ["http://evil.example/cb"]},
        {"redirect_uris": None},
        {"token_endpoint_auth_method": "client_secret_basic"},
    ],
    ids=str,
)
def test_documents_that_cannot_be_meant_make_no_client(browser, documents, changed):
    response = ask(browser, documents.show(**changed))
    assert response.status_code == 400
    assert not may_decide(response)
    assert not Client.objects.exists()


def test_codes_go_where_the_document_says(browser, documents):
    response = ask(browser, documents.show(), redirect_uri="https://evil.example/callback")
    assert not may_decide(response)
    assert "evil.example" not in response.content.decode()


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.time() + seconds
    monkeypatch.setattr(clients.time, "time", lambda: now)


def test_a_document_is_looked_at_again_after_an_hour(browser, documents, monkeypatch):
    client_id = documents.show()
    for _ in range(3):
        ask(browser, client_id)
    assert documents.asked["/client.json"] == 1
    documents.show(client_name="Renamed", redirect_uris=["https://a.example/cb"])
    with monkeypatch.context() as patch:
        later(patch, 3700)
        response = ask(browser, client_id, redirect_uri="https://a.example/cb")
        assert "Renamed" in response.content.decode()
    assert Client.objects.count() == 1


def test_a_document_that_is_away_counts_for_a_day(browser, documents, monkeypatch, caplog):
    client_id = documents.show()
    ask(browser, client_id)
    documents.shown.clear()
    with monkeypatch.context() as patch:
        later(patch, 3700)
        assert ask(browser, client_id).status_code == 200
    assert "is used as it was" in caplog.text
    cache.clear()
    with monkeypatch.context() as patch:
        later(patch, clients.USABLE_SECONDS + 100)
        assert ask(browser, client_id).status_code == 400


def test_what_cannot_be_used_is_not_fetched_over_and_over(browser, documents):
    client_id = f"{documents.url}/missing.json"
    for _ in range(3):
        response = ask(browser, client_id)
        assert response.status_code == 400
        assert "404" in response.content.decode()
    assert documents.asked["/missing.json"] == 1


def test_nobody_has_many_documents_fetched(browser, documents):
    for number in range(clients.FETCHES + 3):
        ask(browser, documents.show(f"/{number}.json"))
    assert sum(documents.asked.values()) == clients.FETCHES
    assert Client.objects.count() == clients.FETCHES


def test_a_client_made_by_hand_is_left_as_it_is(browser, documents):
    client_id = documents.show()
    made = Client(pk=client_id, name="Ours", type=Client.Type.PUBLIC)
    made.set_scopes(["orders:read"])
    made.set_redirect_uris(["http://127.0.0.1/callback"])
    made.save()
    assert "Ours" in ask(browser, client_id).content.decode()
    assert not documents.asked


def test_an_id_that_does_not_fit_is_no_client(browser, documents):
    assert ask(browser, documents.show("/" + "c" * 100)).status_code == 400
    assert not documents.asked


def test_a_site_may_admit_some_or_none(browser, documents, monkeypatch):
    client_id = documents.show()
    with monkeypatch.context() as patch:
        patch.setattr(Adapter, "is_client_document_allowed", lambda self, url: False)
        assert ask(browser, client_id).status_code == 400
    monkeypatch.setattr(OIDCAdapterMixin, "reads_client_documents", False)
    assert not may_decide(ask(browser, client_id))
    assert not documents.asked


def test_one_user_does_not_hold_up_another(browser, documents):
    for number in range(clients.FETCHES + 1):
        ask(browser, documents.show(f"/{number}.json"))
    bob = Browser()
    bob.force_login(get_user_model().objects.create_user("bob"))
    assert ask(bob, documents.show("/bob.json")).status_code == 200


# http://localhost with a port


@pytest.mark.parametrize("is_document", [True, False])
def test_localhost_may_have_any_port(browser, documents, is_document):
    """As Claude Code does: its document has it without."""
    uris = ["http://localhost/callback", "http://127.0.0.1/callback"]
    if is_document:
        client_id = documents.show(redirect_uris=uris)
    else:
        client_id = registered(redirect_uris=uris).pk
    for uri in ("http://localhost:3118/callback", "http://localhost:4000/callback"):
        code = code_for(browser, client_id, redirect_uri=uri)
        assert exchange(client_id, code, redirect_uri=uri).status_code == 200
    for uri in (
        "http://localhost:1/other",
        "https://localhost:1/callback",
        "http://b.localhost:1/",
    ):
        assert not may_decide(ask(browser, client_id, redirect_uri=uri))
    assert Client.objects.get(pk=client_id).get_redirect_uris() == uris


def test_other_clients_have_the_ports_that_they_have(browser):
    client = registered(redirect_uris=["http://localhost:5000/callback"])
    uri = "http://localhost:5001/callback"
    assert not may_decide(ask(browser, client.pk, redirect_uri=uri))


def test_a_secret_is_not_given_to_any_port(browser):
    made: Any = register(
        redirect_uris=["http://localhost/callback"],
        token_endpoint_auth_method="client_secret_post",
    ).json()
    uri = "http://localhost:5001/callback"
    assert not may_decide(ask(browser, made["client_id"], redirect_uri=uri))


def test_tokens_of_a_document_end_with_its_client(browser, documents):
    tokens = tokens_for(browser, documents.show())
    Client.objects.all().delete()
    assert caller(tokens["access_token"]).tool("whoami").status == 401
