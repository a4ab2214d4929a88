"""What a client may ask for, and what people are asked."""

from __future__ import annotations

import pytest
from django.test import Client

from django_mcp.contrib.oauth.dot.models import AccessToken, Application, Grant
from tests.logins.visitor import CALLBACK, LIBRARY, RESOURCE, SITE, Visitor, offered, sent_back

pytestmark = pytest.mark.django_db


@pytest.fixture
def registered(editor):
    assert editor.register().status_code == 201
    return editor


def test_a_login_goes_all_the_way(editor):
    tokens = editor.login(scope="orders:read orders:write")
    assert tokens["token_type"] == "Bearer"
    assert tokens["scope"] == "orders:read orders:write"
    assert editor.call(tokens["access_token"], "pay").status == 200
    row = AccessToken.objects.get()
    assert (row.resource, row.token) == ([RESOURCE], "")


def test_the_answer_names_the_issuer_and_the_state(registered):
    back = registered.answer(registered.ask())
    assert (back["to"], back["iss"], back["state"]) == (CALLBACK, SITE, "a state")


def test_a_refusal_and_an_error_name_the_issuer_too(registered):
    back = registered.answer(registered.ask(), allow=False)
    assert (back["error"], back["iss"], back["state"]) == ("access_denied", SITE, "a state")
    back = offered(registered.ask(scope="nonsense"))
    assert (back["error"], back["iss"], back["state"]) == ("invalid_scope", SITE, "a state")


# The resource


@pytest.mark.parametrize(
    "resource",
    [
        "https://other.example/mcp",
        SITE,
        f"{RESOURCE}/",
        f"{RESOURCE}?a=b",
        f"{SITE}/admin/",
        [RESOURCE, LIBRARY],
        "no URL",
    ],
    ids=str,
)
def test_a_token_for_what_is_no_single_endpoint_is_refused_before_anybody_is_asked(
    registered, resource
):
    back = offered(registered.ask(resource=resource))
    assert back["error"] == "invalid_target"
    assert (back["iss"], back["state"]) == (SITE, "a state")


@pytest.mark.parametrize(
    ("scope", "resource"), [("orders:read", RESOURCE), ("stock:write", LIBRARY)]
)
def test_where_none_is_named_it_is_the_endpoint_to_which_the_scopes_belong(
    registered, scope, resource
):
    page = registered.ask(resource=None, scope=scope)
    assert resource in page.content.decode()
    code = registered.answer(page)["code"]
    assert registered.exchange(code, resource=None).status_code == 200
    assert AccessToken.objects.get().resource == [resource]


def test_where_none_is_named_and_scopes_belong_to_several_it_is_refused(registered):
    back = offered(registered.ask(resource=None, scope="orders:read stock:write"))
    assert back["error"] == "invalid_target"


def test_a_code_gives_a_token_for_nothing_but_what_people_were_shown(registered):
    code = registered.code()
    assert registered.exchange(code, resource=LIBRARY).json()["error"] == "invalid_target"
    assert registered.exchange(code).status_code == 200


def test_what_was_shown_no_resource_gets_none_later(anna, settings):
    """DOT looks at it only where the code has one."""
    application = Application.objects.create(
        redirect_uris=CALLBACK,
        client_type="public",
        authorization_grant_type="authorization-code",
    )
    visitor = Visitor(anna, application.client_id)
    code = visitor.answer(visitor.ask(scope="read", resource=None))["code"]
    assert Grant.objects.get().resource == []
    assert visitor.exchange(code).json()["error"] == "invalid_target"
    code = visitor.answer(visitor.ask(scope="read", resource=None))["code"]
    tokens = visitor.exchange(code, resource=None).json()
    assert AccessToken.objects.get().resource == []
    assert visitor.call(tokens["access_token"]).status == 401
    assert visitor.refresh(tokens["refresh_token"]).json()["error"] == "invalid_target"
    assert visitor.refresh(tokens["refresh_token"], resource=None).status_code == 200


def test_a_refresh_goes_to_no_other_resource(editor):
    tokens = editor.login()
    refused = editor.refresh(tokens["refresh_token"], resource=LIBRARY)
    assert refused.json()["error"] == "invalid_target"
    assert editor.refresh(tokens["refresh_token"]).status_code == 200


def test_a_known_client_gets_no_endpoint_without_a_scope_of_its(anna):
    application = Application.objects.create(
        redirect_uris=CALLBACK,
        client_type="public",
        authorization_grant_type="authorization-code",
    )
    visitor = Visitor(anna, application.client_id)
    assert sent_back(visitor.ask(scope="read"))["error"] == "invalid_scope"


# Scopes


def test_clients_that_registered_themselves_get_no_scopes_of_the_site(registered):
    for scope in ("read", "introspection", "oauth2_provider:registration", "orders:read read"):
        assert offered(registered.ask(scope=scope))["error"] == "invalid_scope"


def test_a_client_that_names_no_scope_gets_the_basics(registered):
    code = registered.answer(registered.ask(scope=None))["code"]
    assert registered.exchange(code).json()["scope"] == "orders:read"


def test_what_means_nothing_here_is_left_out(registered):
    code = registered.answer(registered.ask(scope="orders:read offline_access"))["code"]
    assert registered.exchange(code).json()["scope"] == "orders:read"


def test_a_site_without_scopes_has_one_for_everything(editor, configure, settings):
    settings.ROOT_URLCONF = "tests.logins.urls_plain"
    configure(BASE_SCOPES=[], SCOPES={}, SCOPE_HIERARCHY={}, READ_ONLY_SCOPES=[])
    editor.register()
    page = editor.ask(scope=None, resource=None)
    assert "Do everything here that you may do yourself" in page.content.decode()
    tokens = editor.exchange(editor.answer(page)["code"]).json()
    assert tokens["scope"] == "mcp"
    assert editor.call(tokens["access_token"]).status == 200


# What is off


@pytest.mark.parametrize("kind", ["token", "id_token", "id_token token", "code token", "none"])
def test_no_token_goes_through_a_url(registered, kind):
    Application.objects.update(authorization_grant_type="implicit")
    assert "error" in offered(registered.ask(response_type=kind))


@pytest.mark.parametrize(
    "changed",
    [
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
    ],
    ids=["none", "plain", "plain by default"],
)
def test_pkce_is_asked_for_and_not_the_plain_one(registered, changed, configure):
    configure({"PKCE_REQUIRED": False, "COMPLIANT_BCP_RFC9700_PKCE_METHOD": False})
    back = offered(registered.ask(**changed))
    assert back["error"] == "invalid_request"


def test_a_wrong_verifier_gets_nothing(registered):
    code = registered.code()
    for verifier in (None, "another-verifier-of-more-than-forty-three-characters"):
        assert registered.exchange(code, code_verifier=verifier).status_code == 400


@pytest.mark.parametrize(
    "grant",
    ["password", "client_credentials", "urn:ietf:params:oauth:grant-type:device_code", "x", ""],
)
def test_there_are_no_other_grants_for_clients_that_registered_themselves(editor, anna, grant):
    editor.register(token_endpoint_auth_method="client_secret_post")
    kind = {"password": "password", "client_credentials": "client-credentials"}
    Application.objects.update(authorization_grant_type=kind.get(grant, "authorization-code"))
    response = editor.machine.post(
        "/o/token/",
        {
            "grant_type": grant,
            "client_id": editor.client_id,
            "client_secret": editor.secret,
            "username": "anna",
            "password": "secret",
        },
    )
    assert response.status_code == 400
    assert "error" in response.json()
    assert not AccessToken.objects.exists()


def test_codes_go_nowhere_but_where_the_client_said(registered):
    response = registered.ask(redirect_uri="https://evil.example/callback")
    assert response.status_code == 400
    assert "Location" not in response.headers
    assert "This login cannot go on" in response.content.decode()


def test_what_an_older_registration_let_in_is_refused(registered):
    Application.objects.update(redirect_uris="http://evil.example/callback")
    assert registered.ask(redirect_uri="http://evil.example/callback").status_code == 400


@pytest.mark.parametrize("port", [1, 3118, 54321])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_programs_on_the_own_machine_may_have_any_port(editor, host, port):
    editor.register(redirect_uris=[f"http://{host}/callback"])
    page = editor.ask(redirect_uri=f"http://{host}:{port}/callback")
    assert "a program on your computer" in page.content.decode()
    back = editor.answer(page)
    assert back["to"] == f"http://{host}:{port}/callback"


# Who is asked


def test_nobody_is_taken_for_having_agreed(registered, configure):
    configure({"REQUEST_APPROVAL_PROMPT": "auto"})
    registered.login(scope="orders:read")
    page = registered.ask(approval_prompt="auto")
    assert page.status_code == 200
    assert "Let Editor act for you?" in page.content.decode()


def test_people_log_in_first(registered):
    registered.browser = Client(SERVER_NAME="localhost")
    response = registered.ask()
    assert response.status_code == 302
    assert response.headers["Location"].startswith("/admin/login/?next=/o/authorize/")


@pytest.mark.parametrize(
    ("is_known", "error"), [(True, "consent_required"), (False, "login_required")]
)
def test_who_is_not_to_be_asked_has_not_agreed(registered, is_known, error):
    if not is_known:
        registered.browser = Client(SERVER_NAME="localhost")
    back = offered(registered.ask(prompt="none"))
    assert (back["error"], back["iss"], back["state"]) == (error, SITE, "a state")


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("changed", [{"scope": "nonsense", "prompt": "none"}, {"prompt": "none"}])
def test_a_link_to_the_site_opens_no_page_of_a_client_that_nobody_knows(
    registered, is_known, changed
):
    if not is_known:
        registered.browser = Client(SERVER_NAME="localhost")
    response = registered.ask(**changed)
    assert "Location" not in response.headers
    assert "Tell the application at editor.example" in response.content.decode()
    assert offered(response)["to"] == CALLBACK


def test_programs_on_the_own_machine_are_told_of_errors_at_once(editor):
    editor.register(redirect_uris=["http://localhost/callback"])
    page = editor.ask(redirect_uri="http://localhost:3118/callback", scope="nonsense")
    assert sent_back(page)["error"] == "invalid_scope"


def test_clients_that_the_site_has_registered_are_told_of_errors_at_once(registered):
    Application.objects.update(registration_source="manual")
    assert sent_back(registered.ask(scope="nonsense"))["error"] == "invalid_scope"
    registered.browser = Client(SERVER_NAME="localhost")
    assert sent_back(registered.ask(prompt="none"))["error"] == "login_required"


def test_clients_for_which_nobody_is_asked_are_answered_at_once(registered):
    Application.objects.update(skip_authorization=True)
    assert "code" in sent_back(registered.ask())


@pytest.mark.parametrize("mode", ["fragment", "form_post", "query.jwt"])
def test_a_code_goes_in_the_query_alone(registered, mode):
    """A fragment goes along wherever the client's page leads."""
    assert offered(registered.ask(response_mode=mode))["error"] == "invalid_request"
    assert "code" in registered.answer(registered.ask(response_mode="query"))
