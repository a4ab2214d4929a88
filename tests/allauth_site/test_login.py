"""People log in at allauth's provider, and nobody else gets what they have consented to."""

from __future__ import annotations

import base64
import threading
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from allauth.idp.oidc import views as stock_views
from allauth.idp.oidc.models import Client, Token
from django.contrib.auth import get_user_model
from django.core.signing import Signer
from django.urls import include, path

from django_mcp import endpoint
from tests.support.sites import urlconf

from .login import (
    AUTHORIZE,
    CALLBACK,
    CHALLENGE,
    SHOP,
    STOCK,
    TOKEN,
    Browser,
    ask,
    caller,
    code_for,
    consent,
    exchange,
    may_decide,
    post_form,
    question,
    refresh,
    register,
    registered,
    row,
    sent,
    tokens_for,
)
from .urls import shop, stock

pytestmark = pytest.mark.django_db


def test_a_login_gets_tokens_for_one_endpoint(browser, client):
    page = ask(browser, client.pk)
    html = page.content.decode()
    for expected in ("Editor", "nobody has verified", SHOP, "See orders", "computer in front"):
        assert expected in html, expected
    assert page["X-Frame-Options"] == "DENY"
    answer = sent(consent(browser, page))
    assert (answer["state"], answer["iss"]) == ("s1", "http://localhost")
    tokens = exchange(client.pk, answer["code"]).json()
    assert tokens["scope"] == "orders:read"
    member = caller(tokens["access_token"])
    text = member.tool("whoami").result["content"][0]["text"]
    assert text == f"anna oauth:{client.pk} orders:read"
    assert caller(tokens["access_token"], "/stock").call("tools/list").status == 401
    assert caller(tokens["refresh_token"]).call("tools/list").status == 401
    for each in Token.objects.all():
        assert each.get_resources() == [SHOP]


def test_whoever_is_not_logged_in_does_so_first(client):
    response = Browser().get(AUTHORIZE, question(client.pk))
    assert response.status_code == 302
    there = urlsplit(response["Location"])
    assert there.path == "/accounts/login/"
    assert parse_qs(urlsplit(parse_qs(there.query)["next"][0]).query)["resource"] == [SHOP]


def test_who_does_not_consent_gives_nothing(browser, client):
    answer = sent(consent(browser, ask(browser, client.pk), action="cancel"))
    assert answer == {"error": "access_denied", "state": "s1", "iss": "http://localhost"}


def test_people_may_give_a_part(browser, client):
    page = ask(browser, client.pk, scope="orders:read orders:write")
    code = sent(consent(browser, page, "orders:read"))["code"]
    assert exchange(client.pk, code).json()["scope"] == "orders:read"


def test_more_is_asked_for_when_it_is_needed(browser, client):
    tokens = tokens_for(browser, client.pk)
    assert caller(tokens["access_token"]).tool("ship").status == 403
    tokens = tokens_for(browser, client.pk, scope="orders:read orders:write")
    assert "result" in caller(tokens["access_token"]).tool("ship").message


def test_without_a_scope_it_is_the_one_that_all_need(browser, client):
    assert tokens_for(browser, client.pk, scope=None)["scope"] == "orders:read"


def test_a_refreshed_token_is_for_the_same_endpoint(browser, client):
    tokens = tokens_for(browser, client.pk)
    for more in ({}, {"resource": SHOP}):
        tokens = refresh(client.pk, tokens["refresh_token"], **more).json()
        assert caller(tokens["access_token"]).tool("whoami").status == 200


def test_a_refresh_token_counts_once(browser, client):
    """Without grace: one reason for which this is the second choice."""
    tokens = tokens_for(browser, client.pk)
    assert refresh(client.pk, tokens["refresh_token"]).status_code == 200
    assert refresh(client.pk, tokens["refresh_token"]).json()["error"] == "invalid_grant"


# Attacks


@pytest.mark.parametrize(
    "resource",
    [STOCK, f"{SHOP}/more", "http://localhost", "https://evil.example/mcp"],
)
def test_nobody_gets_tokens_for_what_was_not_consented_to(browser, client, resource):
    response = exchange(client.pk, code_for(browser, client.pk), resource=resource)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_target")
    tokens = tokens_for(browser, client.pk)
    response = refresh(client.pk, tokens["refresh_token"], resource=resource)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_target")


STOCK_URLS = urlconf(
    path("", include("allauth.idp.urls")),
    path("accounts/", include("allauth.urls")),
    endpoint("mcp", server=shop),
    endpoint("stock", server=stock),
)
"""What a site has that knows nothing of what is in these tests."""


def test_stock_gives_tokens_for_what_was_not_consented_to(browser, settings, client):
    """Why the adapter looks: this is what allauth does by itself."""
    settings.ROOT_URLCONF = STOCK_URLS
    settings.IDP_OIDC_ADAPTER = "allauth.idp.oidc.adapter.DefaultOIDCAdapter"
    code = code_for(browser, client.pk, resource=None)
    tokens = exchange(client.pk, code, resource=SHOP).json()
    assert caller(tokens["access_token"]).tool("whoami").status == 200
    code = code_for(browser, client.pk, resource="http://localhost")
    tokens = exchange(client.pk, code, resource=SHOP).json()
    assert caller(tokens["access_token"]).tool("whoami").status == 200


@pytest.mark.parametrize("is_stock", [True, False])
def test_consent_to_one_client_is_not_consent_to_all(browser, anna, client, settings, is_stock):
    """To allauth it is, where a client asks who somebody is: then it need not ask him."""
    row(anna, client, scopes="openid\norders:read")
    other = Client(name="Other", type=Client.Type.PUBLIC)
    other.set_redirect_uris(["https://evil.example/cb"])
    other.set_scopes(["openid", "orders:read"])
    other.save()
    asked = {"scope": "openid orders:read", "prompt": "none", "resource": SHOP}
    if is_stock:
        settings.ROOT_URLCONF = STOCK_URLS
    response = ask(browser, other.pk, redirect_uri="https://evil.example/cb", **asked)
    if is_stock:
        assert "code" in sent(response)
    else:
        assert response.status_code == 200
        assert "evil.example" in response.content.decode()


def test_a_code_without_a_resource_is_good_for_none(browser, settings, client):
    settings.ROOT_URLCONF = STOCK_URLS
    code = code_for(browser, client.pk, resource=None)
    response = exchange(client.pk, code, resource=SHOP)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_target")
    tokens = exchange(client.pk, code, resource=None).json()
    assert caller(tokens["access_token"]).tool("whoami").status == 401


def test_a_page_that_allauth_has_signed_without_a_resource_is_not_sent_on(browser, client):
    info = {**question(client.pk), "resources": [], "prompt": [], "nonce": None, "claims": None}
    page = ask(browser, client.pk)
    signed = Signer().sign_object((["orders:read"], info))
    csrf = page.cookies["csrftoken"].value
    given = {"request": signed, "action": "grant", "scopes": "orders:read"}
    response = browser.post(AUTHORIZE, {**given, "csrfmiddlewaretoken": csrf})
    assert response.status_code == 400
    assert "which endpoint" in response.content.decode()


def refused(response: Any, *words: str) -> bool:
    """Whether a page tells people, and nothing is sent to anybody."""
    html = response.content.decode()
    return (
        response.status_code == 400
        and not may_decide(response)
        and all(each in html for each in words)
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"code_challenge": None, "code_challenge_method": None}, "S256"),
        ({"code_challenge_method": "plain"}, "S256"),
        ({"code_challenge_method": None}, "S256"),
        ({"response_type": "token"}, "code"),
        ({"response_type": "code id_token"}, "code"),
        ({"resource": None}, "which endpoint"),
        ({"resource": "https://evil.example/mcp"}, "No tokens"),
        ({"resource": "http://localhost/nothing"}, "No tokens"),
        ({"resource": f"{SHOP}/"}, "No tokens"),
        ({"resource": f"{SHOP}#a"}, "No tokens"),
        ({"resource": [SHOP, STOCK]}, "one resource"),
    ],
    ids=str,
)
def test_what_is_not_safe_is_refused_where_people_see_it(browser, client, changed, words):
    assert refused(ask(browser, client.pk, **changed), words)


def test_a_client_made_by_hand_may_do_for_others_what_it_may_not_for_endpoints(browser, anna):
    made = Client(name="Old", type=Client.Type.CONFIDENTIAL)
    made.set_redirect_uris([CALLBACK])
    made.set_scopes(["openid", "orders:read"])
    made.save()
    plain = {"code_challenge": None, "code_challenge_method": None, "resource": None}
    assert ask(browser, made.pk, scope="openid", **plain).status_code == 200
    assert refused(ask(browser, made.pk, scope="orders:read", **plain), "S256")
    assert refused(ask(browser, made.pk, scope="openid", **{**plain, "resource": SHOP}), "S256")


@pytest.mark.parametrize(
    "uri",
    ["https://evil.example/callback", "http://127.0.0.1/other", "http://localhost:1/callback", ""],
)
def test_codes_go_nowhere_else(browser, client, uri):
    response = ask(browser, client.pk, redirect_uri=uri)
    assert not may_decide(response)
    assert b"s1" not in response.content


def test_a_code_counts_once_and_ends_what_it_gave_if_it_comes_again(browser, client):
    code = code_for(browser, client.pk)
    tokens = exchange(client.pk, code).json()
    other = tokens_for(browser, client.pk)
    assert caller(tokens["access_token"]).tool("whoami").status == 200
    again = exchange(client.pk, code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert caller(tokens["access_token"]).tool("whoami").status == 401
    assert refresh(client.pk, tokens["refresh_token"]).status_code == 400
    assert caller(other["access_token"]).tool("whoami").status == 200


def test_a_mistake_does_not_use_up_a_code(browser, client):
    code = code_for(browser, client.pk)
    assert exchange(client.pk, code, code_verifier="w" * 64).status_code == 400
    assert exchange("another", code).status_code in (400, 401)
    assert exchange(client.pk, code).status_code == 200


def test_of_two_that_come_with_a_code_at_once_one_gets_tokens(browser, client, monkeypatch):
    code = code_for(browser, client.pk)
    within, answers = threading.Event(), []
    issue = stock_views.token

    def slowly(request: Any) -> Any:
        if not within.is_set():
            within.set()
            answers.append(exchange(client.pk, code))
        return issue(request)

    monkeypatch.setattr(stock_views, "token", slowly)
    assert exchange(client.pk, code).status_code == 200
    assert [each.status_code for each in answers] == [400]


def test_a_code_needs_its_verifier(browser, client):
    code = code_for(browser, client.pk)
    for verifier in (None, "w" * 64, CHALLENGE):
        assert exchange(client.pk, code, code_verifier=verifier).status_code == 400


def test_a_code_is_its_clients(browser, client):
    other = registered()
    assert exchange(other.pk, code_for(browser, client.pk)).status_code == 400


@pytest.mark.parametrize("asked", ["orders:delete", "openid", "email", "orders:read openid"])
def test_scopes_that_are_not_ours_are_not_to_be_had(browser, client, asked):
    assert sent(ask(browser, client.pk, scope=asked))["error"] == "invalid_scope"


def test_a_deactivated_user_gets_nothing_more(browser, client):
    code = code_for(browser, client.pk)
    tokens = tokens_for(browser, client.pk)
    get_user_model().objects.update(is_active=False)
    assert caller(tokens["access_token"]).tool("whoami").status == 403
    assert refresh(client.pk, tokens["refresh_token"]).status_code == 400
    assert exchange(client.pk, code).status_code == 400


def test_a_token_that_registers_clients_opens_nothing(anna, client):
    row(anna, client, "initial", type=Token.Type.INITIAL_ACCESS_TOKEN, lasts=None)
    assert caller("initial").tool("whoami").status == 401


def test_a_revoked_token_opens_nothing(browser, client):
    tokens = tokens_for(browser, client.pk)
    form = {"token": tokens["access_token"], "client_id": client.pk}
    assert post_form("/identity/o/api/revoke", **form).status_code == 200
    assert caller(tokens["access_token"]).tool("whoami").status == 401


def test_devices_get_no_tokens_for_endpoints(db):
    made = Client(name="Television", type=Client.Type.PUBLIC)
    made.set_grant_types([Client.GrantType.DEVICE_CODE])
    made.set_scopes(["orders:read"])
    made.save()
    form = {"client_id": made.pk, "scope": "orders:read"}
    for more in ({}, {"grant_type": "client_credentials"}):
        response = post_form("/identity/o/api/device/code", **form, **more, resource=SHOP)
        assert (response.status_code, response.json()["error"]) == (400, "invalid_target")
    code = post_form("/identity/o/api/device/code", **form).json()["device_code"]
    poll = {"grant_type": Client.GrantType.DEVICE_CODE, "client_id": made.pk, "device_code": code}
    response = post_form(TOKEN, **poll, resource=SHOP)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_target")


# Clients with a secret, and machines


def basic(name: str, secret: str) -> dict[str, str]:
    shown = base64.b64encode(f"{name}:{secret}".encode()).decode()
    return {"Authorization": f"Basic {shown}"}


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_clients_with_a_secret_log_in_however_they_encode_it(browser, method):
    made = register(token_endpoint_auth_method=method).json()
    assert made["token_endpoint_auth_method"] == method
    secret = made["client_secret"]
    assert quote(secret, safe="") == secret
    code = code_for(browser, made["client_id"])
    assert exchange(made["client_id"], code, client_secret="wrong").status_code == 401
    if method == "client_secret_basic":
        response = exchange(None, code, basic(made["client_id"], secret))
    else:
        response = exchange(made["client_id"], code, client_secret=secret)
    assert response.status_code == 200, response.content


def test_machines_get_tokens_for_the_endpoint_that_they_name(settings):
    robot = get_user_model().objects.create_user("robot")
    made = Client(name="Nightly", type=Client.Type.CONFIDENTIAL)
    made.set_grant_types([Client.GrantType.CLIENT_CREDENTIALS])
    made.set_scopes(["orders:read"])
    made.set_secret("s3cret")
    made.save()
    settings.DJANGO_MCP = {**settings.DJANGO_MCP, "OAUTH_SERVICE_USERS": {made.pk: "robot"}}
    form = {"grant_type": "client_credentials", "scope": "orders:read", "resource": SHOP}
    tokens = post_form(TOKEN, basic(made.pk, "s3cret"), **form).json()
    assert str(robot) in str(caller(tokens["access_token"]).tool("whoami").result)
    bad = {**form, "resource": "https://evil.example"}
    response = post_form(TOKEN, basic(made.pk, "s3cret"), **bad)
    assert response.json()["error"] == "invalid_target"


def test_the_one_endpoint_of_a_site_need_not_be_named(browser, client, settings):
    """As before RFC 8707 was in the specification."""
    settings.ROOT_URLCONF = urlconf(
        path("", include("django_mcp.contrib.oauth.allauth.urls")),
        path("accounts/", include("allauth.urls")),
        endpoint("mcp", server=shop),
    )
    code = code_for(browser, client.pk, resource=None)
    tokens = exchange(client.pk, code, resource=None).json()
    assert caller(tokens["access_token"]).tool("whoami").status == 200
