"""A browser and a client that log somebody in, each step apart."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from allauth.idp.oidc.models import Client, Token
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.test import Client as DjangoClient
from django.utils import timezone

from django_mcp.contrib.oauth import client_documents
from tests.contrib.oauth.document_host import DocumentHost, serving_documents
from tests.support.caller import Caller
from tests.support.entrances import open_entrance

AUTHORIZE, TOKEN = "/identity/o/authorize", "/identity/o/api/token"
REGISTER = "/identity/o/api/clients"
SHOP, STOCK = "http://localhost/mcp", "http://localhost/stock"
VERIFIER = "v" * 64
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
)
CALLBACK = "http://127.0.0.1:3118/callback"


class Browser(DjangoClient):
    """At the site by the name that it has for clients."""

    def __init__(self, **options: Any) -> None:
        super().__init__(SERVER_NAME="localhost", **options)


@pytest.fixture(autouse=True)
def nothing_cached() -> Iterator[None]:
    """Know no codes, nor how often somebody has tried."""
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def anna(db: None) -> Any:
    return get_user_model().objects.create_user("anna")


@pytest.fixture
def browser(anna: Any) -> Browser:
    """A browser in which anna is logged in, at a site that checks where forms come from."""
    found = Browser(enforce_csrf_checks=True)
    found.force_login(anna)
    return found


@pytest.fixture
def client(db: None) -> Client:
    return registered()


@pytest.fixture(scope="module")
def document_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocumentHost]:
    with serving_documents(tmp_path_factory.mktemp("documents")) as found:
        yield found


@pytest.fixture
def documents(document_host: DocumentHost, monkeypatch: pytest.MonkeyPatch) -> DocumentHost:
    """A host of documents that is taken for one of the public Internet."""
    document_host.shown.clear()
    document_host.asked.clear()
    monkeypatch.setattr(client_documents, "is_public", lambda address: True)
    monkeypatch.setattr(client_documents, "tls_context", document_host.trusted)
    return document_host


def register(**changed: Any) -> Any:
    """Register a client as whoever comes; return the response."""
    asked = {
        "client_name": "Editor",
        "redirect_uris": ["http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        **changed,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    return Browser().post(REGISTER, given, content_type="application/json")


def registered(**changed: Any) -> Client:
    """Register a client, and return its row."""
    response = register(**changed)
    assert response.status_code == 201, response.content
    return Client.objects.get(pk=response.json()["client_id"])


def question(client_id: str, **changed: Any) -> dict[str, Any]:
    """Return what a client asks for; what is ``None`` is left out."""
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": CALLBACK,
        "scope": "orders:read",
        "state": "s1",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": SHOP,
        **changed,
    }
    return {name: value for name, value in asked.items() if value is not None}


def ask(browser: Browser, client_id: str, **changed: Any) -> Any:
    """Open the page on which people consent."""
    return browser.get(AUTHORIZE, question(client_id, **changed))


def may_decide(response: Any) -> bool:
    """Return whether somebody is asked for consent, or sent to a client."""
    return "Location" in response.headers or b'name="request"' in response.content


def consent(browser: Browser, page: Any, *scopes: str, action: str = "grant") -> Any:
    """Send the page's form as it stands; return what is sent to the client."""
    html = page.content.decode()
    assert page.status_code == 200, (page.status_code, html)
    given = {"action": action, "scopes": scopes or re.findall(r'name="scopes" value="(.+?)"', html)}
    for name in ("request", "csrfmiddlewaretoken"):
        found = re.search(rf'name="{name}" value="(.+?)"', html)
        assert found, html
        given[name] = unescape(found[1])
    return browser.post(AUTHORIZE, given)


def sent(response: Any) -> dict[str, str]:
    """Return what a response sends to the client."""
    assert response.status_code == 302, (response.status_code, response.content)
    query = urlsplit(response["Location"]).query
    return {name: values[0] for name, values in parse_qs(query).items()}


def code_for(browser: Browser, client_id: str, **changed: Any) -> str:
    return sent(consent(browser, ask(browser, client_id, **changed)))["code"]


def exchange(
    client_id: str | None, code: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Any:
    """Ask for a token as a client; return the response."""
    asked = {
        "grant_type": "authorization_code",
        "client_id": client_id,
        "code": code,
        "code_verifier": VERIFIER,
        "redirect_uri": CALLBACK,
        "resource": SHOP,
        **more,
    }
    return post_form(TOKEN, headers, **asked)


def refresh(client_id: str, token: str, **more: Any) -> Any:
    form = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": token}
    return post_form(TOKEN, **form, **more)


def post_form(path: str, headers: Mapping[str, str] | None = None, /, **form: Any) -> Any:
    """Send a form as clients do; what is ``None`` is left out."""
    given = {name: value for name, value in form.items() if value is not None}
    kind = "application/x-www-form-urlencoded"
    return Browser().post(path, urlencode(given, doseq=True), content_type=kind, headers=headers)


def tokens_for(browser: Browser, client_id: str, **changed: Any) -> dict[str, Any]:
    """Log in; return what the client has got."""
    response = exchange(client_id, code_for(browser, client_id, **changed))
    assert response.status_code == 200, response.content
    return response.json()


def row(user: Any, client: Any, value: str = "opaque", **changed: Any) -> Token:
    """Put a token into allauth's table, without a login; it ``lasts`` some seconds, or for ever."""
    resources, lasts = changed.pop("resources", [SHOP]), changed.pop("lasts", 3600)
    token = Token(
        **{
            "type": Token.Type.ACCESS_TOKEN,
            "user": user,
            "client": client,
            "expires_at": None if lasts is None else timezone.now() + timedelta(seconds=lasts),
            "scopes": "orders:read",
            **changed,
        }
    )
    token.set_value(value)
    if resources is not None:
        token.set_resources(resources)
    token.save()
    return token


def caller(token: str, path: str = "/mcp", entrance: str = "wsgi") -> Caller:
    """Return a client with a token."""
    made = Caller(open_entrance(entrance), path=path)
    return made.with_headers(Authorization=f"Bearer {token}")
