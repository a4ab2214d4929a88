"""How clients introduce themselves: by registration, or by a document."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from django_mcp.contrib.oauth.dot.models import AccessToken, Application
from django_mcp.rates import Rate
from tests.logins.visitor import CALLBACK, Visitor, offered

pytestmark = pytest.mark.django_db


@pytest.fixture
def stranger():
    return Visitor(None)


def test_a_client_registers_and_gets_no_token(stranger):
    response = stranger.register(client_name="Editor", scope="orders:read introspection")
    assert response.status_code == 201
    body = response.json()
    assert Application.objects.get(client_id=body.pop("client_id")).user is None
    assert body.pop("client_id_issued_at") > 0
    assert body == {
        "client_name": "Editor",
        "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": "orders:read",
    }
    assert not AccessToken.objects.exists()
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "length", ["abc", "-1", "9" * 5000, "17000"], ids=["text", "negative", "endless", "large"]
)
def test_a_length_that_is_none_or_too_much_is_refused(stranger, length):
    response = stranger.machine.post(
        "/o/register/", b"{}", content_type="application/json", CONTENT_LENGTH=length
    )
    assert response.json()["error"] == "invalid_client_metadata"


def test_whoever_is_logged_in_does_not_own_it(editor):
    editor.machine.force_login(editor.user)
    editor.register()
    assert Application.objects.get().user is None


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", None])
def test_the_method_that_was_asked_for_is_answered(editor, method):
    body = editor.register(token_endpoint_auth_method=method).json()
    assert body["token_endpoint_auth_method"] == (method or "client_secret_basic")
    assert body["client_secret_expires_at"] == 0
    assert Application.objects.get().client_secret != body["client_secret"]
    code = editor.code()
    assert editor.exchange(code).status_code == 401
    if method == "client_secret_post":
        assert editor.exchange(code, client_secret=editor.secret).status_code == 200


@pytest.mark.parametrize(
    "listed",
    [
        ["authorization_code", "refresh_token"],
        ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
        ["authorization_code", "implicit", "client_credentials", "password"],
    ],
    ids=["usual", "VS Code", "everything"],
)
def test_other_grants_than_codes_are_left_out(stranger, listed):
    body = stranger.register(grant_types=listed).json()
    assert body["grant_types"] == ["authorization_code", "refresh_token"]
    assert Application.objects.get().authorization_grant_type == "authorization-code"


@pytest.mark.parametrize(
    "uri",
    [
        "https://claude.ai/api/mcp/auth_callback",
        "http://localhost:3118/callback",
        "http://127.0.0.1/callback",
        "http://[::1]:8080/callback",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "vscode://vscode.example/callback",
    ],
)
def test_redirects_of_clients_are_let_in(stranger, uri):
    assert stranger.register(redirect_uris=[uri]).status_code == 201


WRONG = {
    "plain http": {"redirect_uris": ["http://evil.example/callback"]},
    "looks like this machine": {"redirect_uris": ["http://localhost.evil.example/callback"]},
    "credentials": {"redirect_uris": ["http://localhost@evil.example/callback"]},
    "script": {"redirect_uris": ["javascript:alert(1)"]},
    "data": {"redirect_uris": ["data:text/html,x"]},
    "scheme of nobody": {"redirect_uris": ["myapp://callback"]},
    "fragment": {"redirect_uris": [f"{CALLBACK}#x"]},
    "wildcard": {"redirect_uris": ["https://*.evil.example/callback"]},
    "space": {"redirect_uris": [f"{CALLBACK} https://evil.example/"]},
    "one of two": {"redirect_uris": [CALLBACK, "http://evil.example/callback"]},
    "no list": {"redirect_uris": CALLBACK},
    "none": {"redirect_uris": []},
    "not said": {"redirect_uris": None},
    "no text": {"redirect_uris": [7]},
    "too many": {"redirect_uris": [f"{CALLBACK}/{number}" for number in range(51)]},
    "machine": {"grant_types": ["client_credentials"]},
    "password": {"grant_types": ["password", "refresh_token"]},
    "implicit": {"response_types": ["token"]},
    "method": {"token_endpoint_auth_method": "private_key_jwt"},
    "name": {"client_name": "Editor\u202egpj"},
    "long name": {"client_name": "x" * 101},
    "scope": {"scope": ["orders:read"]},
}


@pytest.mark.parametrize("changed", WRONG.values(), ids=WRONG)
def test_what_would_be_unsafe_or_is_none_is_refused(stranger, changed):
    response = stranger.register(**changed)
    assert response.status_code == 400
    kind = "invalid_redirect_uri" if "redirect_uris" in changed else "invalid_client_metadata"
    assert response.json()["error"] in (kind, "invalid_client_metadata")
    assert not Application.objects.exists()


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 10_000, b"{" + b" " * 20_000 + b"}"])
def test_what_is_no_json_is_refused(stranger, body):
    response = stranger.machine.post("/o/register/", body, content_type="application/json")
    assert response.status_code == 400


def test_the_number_of_registrations_is_bounded(stranger, configure):
    configure(REGISTRATION_RATE="2/h")
    assert [stranger.register().status_code for _ in range(3)] == [201, 201, 429]
    assert int(stranger.register().headers["Retry-After"]) > 3000
    configure(REGISTRATION_RATE=None)
    assert stranger.register().status_code == 201


def test_a_site_can_close_registration(stranger, configure):
    configure({"DCR_ENABLED": False})
    assert stranger.register().status_code == 404
    configure({"DCR_ENABLED": True, "DCR_REGISTRATION_PERMISSION_CLASSES": []})
    assert stranger.register().status_code == 401
    about = stranger.machine.get("/.well-known/oauth-authorization-server").json()
    assert "registration_endpoint" in about
    assert not Application.objects.exists()


# Documents


CHATGPT = {
    "client_name": "ChatGPT",
    "redirect_uris": [CALLBACK],
    "token_endpoint_auth_method": "private_key_jwt",
    "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
}
KINDS = {
    "Claude": {"redirect_uris": [CALLBACK, "http://localhost/callback"]},
    "ChatGPT": CHATGPT,
    "VS Code": {
        "redirect_uris": [CALLBACK, "myapp://callback"],
        "grant_types": [
            *("authorization_code", "refresh_token"),
            "urn:ietf:params:oauth:grant-type:device_code",
        ],
    },
}


@pytest.mark.parametrize("document", KINDS.values(), ids=KINDS)
def test_a_client_with_a_document_logs_in_without_registration(anna, documents, document):
    client = Visitor(anna, documents.show(**document))
    page = client.ask()
    assert "(127.0.0.1)" in page.content.decode()
    tokens = client.exchange(client.answer(page)["code"]).json()
    assert client.call(tokens["access_token"]).status == 200
    assert client.refresh(tokens["refresh_token"]).status_code == 200
    assert documents.asked.total() == 1
    found = Application.objects.get()
    assert (found.client_type, found.registration_source) == ("public", "cimd")
    assert "myapp" not in found.redirect_uris


@pytest.mark.parametrize("port", [3118, 40000])
def test_claude_code_is_answered_at_any_port(anna, documents, port):
    url = documents.show(redirect_uris=["http://localhost/callback", "http://127.0.0.1/callback"])
    client = Visitor(anna, url)
    page = client.ask(redirect_uri=f"http://localhost:{port}/callback")
    assert client.answer(page)["to"] == f"http://localhost:{port}/callback"


@pytest.mark.parametrize(
    "changed",
    [
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"grant_types": ["client_credentials"]},
        {"grant_types": "authorization_code"},
        {"redirect_uris": ["http://evil.example/callback"]},
        {"redirect_uris": ["myapp://callback"]},
        {"client_id": "https://other.example/client.json"},
    ],
    ids=str,
)
def test_documents_that_are_no_good_are_no_client(anna, documents, changed):
    client = Visitor(anna, documents.show(**changed))
    assert client.ask().status_code == 400
    assert not Application.objects.exists()


def test_nobody_has_a_document_fetched_who_is_not_logged_in(documents):
    """Neither by the page, nor by any of the URLs that machines use; DOT would at each of them."""
    stranger = Visitor(None, documents.show())
    assert stranger.ask().status_code == 302
    assert stranger.ask(prompt="none").status_code == 400
    assert stranger.exchange("a code").status_code == 401
    assert stranger.refresh("a token").status_code == 401
    given = {"token": "a token", "client_id": stranger.client_id}
    assert stranger.machine.post("/o/revoke_token/", given).status_code == 401
    assert documents.asked.total() == 0
    assert not Application.objects.exists()


def test_nor_for_who_must_not_be_asked(anna, documents):
    assert Visitor(anna, documents.show()).ask(prompt="none").status_code == 400
    assert documents.asked.total() == 0


def test_a_document_that_fails_counts_once(anna, documents, monkeypatch):
    documents.show("/good.json", redirect_uris=[CALLBACK])
    monkeypatch.setattr("django_mcp.contrib.oauth.dot.documents.FETCHES", Rate.parse("2/m"))
    assert Visitor(anna, f"{documents.url}/bad.json").ask().status_code == 400
    assert Visitor(anna, f"{documents.url}/good.json").ask().status_code == 200


def test_nobody_has_documents_fetched_without_end(anna, django_user_model, documents):
    """Else whoever has an account could have others asked, and make a row each time."""
    clients = [
        Visitor(anna, documents.show(f"/{number}.json", redirect_uris=[CALLBACK]))
        for number in range(11)
    ]
    assert [each.ask().status_code for each in clients] == [200] * 10 + [400]
    assert documents.asked.total() == Application.objects.count() == 10
    assert clients[0].ask().status_code == 200, "it is known"
    bob = django_user_model.objects.create_user("bob")
    assert Visitor(bob, clients[10].client_id).ask().status_code == 200, "others may"


@pytest.mark.parametrize(
    "client_id",
    [
        "https://127.0.0.1:{port}/client.json",
        "https://localhost:{port}/client.json",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]:{port}/client.json",
        "https://[::ffff:127.0.0.1]:{port}/client.json",
        "https://10.0.0.1/client.json",
        "https://192.168.0.1/client.json",
        "https://0.0.0.0:{port}/client.json",
    ],
)
def test_nothing_of_this_machine_or_network_is_fetched(anna, serving, client_id):
    serving.asked.clear()
    serving.show()
    port = serving.url.rpartition(":")[2]
    client = Visitor(anna, client_id.format(port=port))
    assert client.ask().status_code == 400
    assert serving.asked.total() == 0


def test_a_redirect_is_not_followed(anna, documents):
    elsewhere = documents.show("/elsewhere.json")
    documents.shown["/client.json"] = (302, {"Location": elsewhere}, b"")
    assert Visitor(anna, f"{documents.url}/client.json").ask().status_code == 400
    assert documents.asked["/elsewhere.json"] == 0


def test_a_site_that_cannot_fetch_says_so(anna, documents, configure):
    configure({"CIMD_ENABLED": False})
    client = Visitor(anna, documents.show(redirect_uris=[CALLBACK]))
    assert client.ask().status_code == 400
    about = client.machine.get("/.well-known/oauth-authorization-server").json()
    assert about["client_id_metadata_document_supported"] is False
    assert documents.asked.total() == 0


def test_a_document_is_not_fetched_anew_by_machines_once_it_is_old(anna, documents):
    client = Visitor(anna, documents.show(redirect_uris=[CALLBACK]))
    tokens = client.login()
    Application.objects.update(cimd_expires_at="2000-01-01T00:00:00Z")
    assert client.refresh(tokens["refresh_token"]).status_code == 200
    assert documents.asked.total() == 1
    documents.show(client_name="Another name", redirect_uris=[CALLBACK])
    assert "Another name" in client.ask().content.decode()


# What machines and pages read


def test_the_server_says_of_itself_what_holds():
    about = Client(SERVER_NAME="localhost").get("/.well-known/oauth-authorization-server")
    assert about.json() == {
        "issuer": "http://localhost",
        "authorization_endpoint": "http://localhost/o/authorize/",
        "token_endpoint": "http://localhost/o/token/",
        "revocation_endpoint": "http://localhost/o/revoke_token/",
        "registration_endpoint": "http://localhost/o/register/",
        "scopes_supported": ["orders:read", "orders:write", "stock:write"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": [
            *("none", "client_secret_basic", "client_secret_post"),
        ],
        "revocation_endpoint_auth_methods_supported": [
            *("none", "client_secret_basic", "client_secret_post"),
        ],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }


def test_each_endpoint_says_who_issues_tokens_for_it():
    machine = Client(SERVER_NAME="localhost")
    for path in ("mcp", "books/mcp"):
        about = machine.get(f"/.well-known/oauth-protected-resource/{path}").json()
        assert about["resource"] == f"http://localhost/{path}"
        assert about["authorization_servers"] == ["http://localhost"]


@pytest.mark.parametrize("script", ["", "/shop"])
def test_an_issuer_with_a_path_has_its_document_behind_it(configure, script):
    configure(
        {"OIDC_ISS_ENDPOINT": "https://example.com/shop"}, BASE_URL="https://example.com/shop"
    )
    machine = Client(SERVER_NAME="localhost")
    about = machine.get("/.well-known/oauth-authorization-server/shop").json()
    assert about["issuer"] == "https://example.com/shop"
    assert machine.get("/.well-known/oauth-authorization-server/other").status_code == 404


OPEN = {
    "/.well-known/oauth-authorization-server": "GET",
    "/.well-known/oauth-protected-resource/mcp": "GET",
    "/.well-known/oauth-authorization-server/mcp": "GET",
    "/.well-known/openid-configuration/mcp": "GET",
    "/o/register/": "POST",
    "/o/token/": "POST",
    "/o/revoke_token/": "POST",
}


@pytest.mark.parametrize("url", OPEN)
def test_pages_of_any_origin_may_ask(url):
    machine = Client(SERVER_NAME="localhost", enforce_csrf_checks=True)
    asked = "content-type,mcp-protocol-version,authorization"
    origin = {"Origin": "https://inspector.example"}
    preflight = machine.options(
        url,
        headers={
            **origin,
            "Access-Control-Request-Method": OPEN[url],
            "Access-Control-Request-Headers": asked,
        },
    )
    assert preflight.status_code == 204
    assert preflight.headers["Access-Control-Allow-Origin"] == "*"
    assert OPEN[url] in preflight.headers["Access-Control-Allow-Methods"]
    assert preflight.headers["Access-Control-Allow-Headers"] == asked
    response = machine.generic(OPEN[url], url, headers=origin)
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in response.headers


def test_a_page_of_an_origin_that_the_client_names_gets_no_cookies_either(editor):
    editor.register()
    Application.objects.update(allowed_origins="https://inspector.example")
    response = editor.machine.post(
        "/o/token/",
        {"grant_type": "refresh_token", "refresh_token": "x", "client_id": editor.client_id},
        headers={"Origin": "https://inspector.example"},
    )
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in response.headers


def test_the_page_that_asks_people_is_open_to_no_other_page(editor):
    editor.register()
    page = editor.ask()
    assert "Access-Control-Allow-Origin" not in page.headers


def test_a_login_by_basic_authentication(editor):
    editor.register(token_endpoint_auth_method="client_secret_basic")
    response = editor.exchange(editor.code(), client_id=None)
    assert response.status_code == 401
    assert json.loads(response.content)["error"] == "invalid_client"


def test_errors_come_back_where_the_client_is_known(editor):
    editor.register()
    assert offered(editor.ask(scope="nonsense"))["error"] == "invalid_scope"
