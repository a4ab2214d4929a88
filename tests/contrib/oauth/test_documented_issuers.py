"""Tokens as Keycloak, Auth0, Microsoft Entra ID and AuthKit issue them, at an endpoint of ours."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.urls import include, path

from django_mcp import Context, MCPServer, endpoint
from django_mcp.contrib.oauth import UserFromClaim
from django_mcp.contrib.oauth import issuers as known_issuers
from tests.support.caller import Caller
from tests.support.entrances import open_entrance
from tests.support.sites import urlconf

from .conftest import CLIENT as ASKING
from .conftest import RESOURCE, SECRET, configure
from .documented_issuers import (
    ALL,
    API,
    AUTH0,
    AUTHKIT,
    CLIENT,
    ENTRA,
    ENVIRONMENT,
    KEYCLOAK,
    TENANT,
    Documented,
)
from .issuer import RSA, Issuer, serving
from .test_jwt import pass_by

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("anna")]

OTHER_API = "33334444-dddd-5555-eeee-6666ffff7777"


class Site:
    """An endpoint that takes the tokens of one of them."""

    def __init__(self, documented: Documented, issuer: Issuer, settings: Any) -> None:
        self.documented = documented
        self.issuer = issuer
        self.settings = settings
        self.write = documented.read.replace("read", "write")
        server = MCPServer("shop", scopes=[documented.read])

        @server.tool
        def whoami(ctx: Context) -> str:
            """Say who is calling, and by what."""
            return f"{ctx.user} {ctx.client_id}"

        @server.tool(scopes=[self.write])
        def ship() -> str:
            """Ship all orders."""
            return "Shipped"

        settings.ROOT_URLCONF = urlconf(
            endpoint("mcp", server=server), path("", include("django_mcp.well_known"))
        )
        documented.publish(issuer, RSA[0])
        settings.DJANGO_MCP = {
            "AUTH": "django_mcp.contrib.oauth.jwt_auth",
            "AUTHORIZATION_SERVERS": [issuer.url],
            "OAUTH_USER": UserFromClaim("sub"),
            "WORKER_THREADS": 2,
            **documented.settings,
        }

    def token(self, **changed: Any) -> str:
        return self.documented.token(self.issuer, RESOURCE, **changed)

    def call(self, tool: str = "whoami", token: str = "", **changed: Any) -> Any:
        bearer = f"Bearer {token or self.token(**changed)}"
        return Caller(open_entrance("wsgi")).with_headers(Authorization=bearer).tool(tool)

    def assert_in(self, **changed: Any) -> str:
        answer = self.call(**changed)
        assert answer.status == 200, answer
        return str(answer.result["content"][0]["text"])

    def assert_out(self, caplog: Any, says: str, **changed: Any) -> None:
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="django_mcp.contrib.oauth"):
            assert self.call(**changed).status == 401
        assert says in caplog.text


@pytest.fixture
def site(request: Any, settings: Any) -> Iterator[Site]:
    """A site for the issuer that a test names by ``of``, or for each of them."""
    with serving() as issuer:
        yield Site(request.param, issuer, settings)


each = pytest.mark.parametrize("site", ALL, ids=lambda issuer: issuer.name, indirect=True)


def of(documented: Documented) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("site", [documented], ids=[documented.name], indirect=True)


@each
def test_a_token_lets_its_user_in(site):
    assert site.assert_in() == f"anna oauth:{site.documented.client}"


@each
@pytest.mark.parametrize(
    "audience",
    [None, "account", "http://testserver", f"{RESOURCE}/", ["http://testserver/other"], OTHER_API],
    ids=str,
)
def test_a_token_for_anything_else_is_refused(site, caplog, audience):
    site.assert_out(caplog, f"it is for {audience!a}, and not for {RESOURCE}", aud=audience)


@each
def test_its_scopes_are_understood(site):
    challenged = site.call("ship")
    assert challenged.status == 403
    before = f"{RESOURCE}/" if "SCOPE_FORMAT" in site.documented.settings else ""
    asked = f'scope="{before}{site.documented.read} {before}{site.write}"'
    assert asked in challenged.header("WWW-Authenticate")
    claim = "scp" if "scp" in site.documented.claims("", "") else "scope"
    wider = f"openid {site.documented.read} {site.write}"
    assert site.call("ship", **{claim: wider}).status == 200
    assert site.call(**{claim: "openid"}).status == 403


@each
def test_its_keys_are_found_where_it_says_and_change(site, monkeypatch):
    old = site.token()
    assert site.call(token=old).status == 200
    # The next one is there before it signs, and the last one stays for a while.
    site.documented.publish(site.issuer, RSA[0], RSA[1])
    pass_by(monkeypatch, known_issuers.PAUSE_SECONDS)
    new = site.token(key=RSA[1])
    assert site.call(token=new).status == 200
    assert site.call(token=old).status == 200
    site.documented.publish(site.issuer, RSA[1])
    pass_by(monkeypatch, known_issuers.PAUSE_SECONDS + known_issuers.FRESH_SECONDS)
    assert site.call(token=old).status == 401
    assert site.call(token=new).status == 200


@each
def test_an_id_token_opens_nothing(site):
    assert site.call(**site.documented.id_token).status == 401


@each
def test_clients_are_told_the_issuer_as_its_metadata_writes_it(site):
    answer = open_entrance("wsgi").send("GET", "/.well-known/oauth-protected-resource/mcp", [])
    assert answer.json()["authorization_servers"] == [site.issuer.url]
    assert site.call().status == 200
    assert site.issuer.url in [each.get("issuer") for each in site.issuer.documents.values()]


# Keycloak


@of(KEYCLOAK)
def test_keycloak_names_nothing_unless_a_mapper_does(site, caplog):
    site.assert_out(caplog, "it is for None", aud=None)
    site.assert_out(caplog, "it is for 'account'", aud="account")
    site.assert_in(aud=["account", RESOURCE])


@of(KEYCLOAK)
def test_keycloak_may_name_the_client_that_stands_for_the_endpoint(site, caplog):
    site.assert_out(caplog, "it is for 'shop'", aud="shop")
    configure(site.settings, TOKEN_AUDIENCES={RESOURCE: "shop"})
    site.assert_in(aud=["account", "shop"])
    site.assert_out(caplog, "it is an ID token", aud="shop", typ="ID")
    site.assert_in(aud=RESOURCE)


@of(KEYCLOAK)
def test_a_token_of_keycloak_without_a_subject_is_nobodys(site):
    assert site.call(sub=None).status == 403


# Auth0


@of(AUTH0)
def test_what_a_user_may_do_is_not_what_a_client_was_given_unless_the_site_says_so(site):
    assert site.call("ship").status == 403
    configure(site.settings, SCOPE_CLAIMS=["permissions"])
    assert site.call("ship").status == 200
    assert site.call("ship", permissions=["orders:read"]).status == 403


@of(AUTH0)
def test_the_log_tells_of_tokens_that_auth0_has_made_for_itself(site, caplog):
    encrypted = "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..iv.text.tag"
    site.assert_out(
        caplog, "it is encrypted, so that its issuer alone can read it", token=encrypted
    )


@of(AUTH0)
def test_a_machine_at_auth0_is_the_user_that_the_site_names(site):
    robot = get_user_model().objects.create_user("robot")
    configure(site.settings, OAUTH_SERVICE_USERS={"awZfdIir8YFd": robot.username})
    machine = {"sub": "awZfdIir8YFd@clients", "azp": "awZfdIir8YFd", "gty": "client-credentials"}
    assert site.assert_in(aud=RESOURCE, **machine) == "robot oauth:awZfdIir8YFd"


@of(AUTH0)
def test_a_machine_that_nobody_names_is_no_user_unless_users_are_made(site):
    machine = {"sub": "awZfdIir8YFd@clients", "azp": "awZfdIir8YFd", "gty": "client-credentials"}
    assert site.call(**machine).status == 403
    configure(site.settings, OAUTH_USER=UserFromClaim("sub", create=True))
    assert site.assert_in(**machine) == "awZfdIir8YFd@clients oauth:awZfdIir8YFd"


# Microsoft Entra ID


@of(ENTRA)
def test_entra_asks_for_scopes_by_their_whole_names(site):
    about = open_entrance("wsgi").send("GET", "/.well-known/oauth-protected-resource/mcp", [])
    assert about.json()["scopes_supported"] == [f"{RESOURCE}/orders.read"]
    tools = Caller(open_entrance("wsgi")).with_headers(Authorization=f"Bearer {site.token()}")
    listed = {tool["name"]: tool for tool in tools.call("tools/list").result["tools"]}
    schemes = listed["ship"]["_meta"]["securitySchemes"]
    assert schemes[0]["scopes"] == [f"{RESOURCE}/orders.read", f"{RESOURCE}/orders.write"]


@of(ENTRA)
def test_another_tenant_of_entra_is_another_issuer(site, caplog):
    other = f"{site.issuer.origin}/{'b' * 8}{TENANT[8:]}/v2.0"
    site.assert_out(caplog, f"it says that {other!r} has issued it", iss=other)


@of(ENTRA)
def test_a_machine_at_entra_has_roles_and_no_scopes(site):
    get_user_model().objects.create_user("robot")
    configure(site.settings, OAUTH_SERVICE_USERS={CLIENT: "robot"})
    assert site.call(scp=None, roles=["orders.read"]).status == 403
    configure(site.settings, SCOPE_CLAIMS=["scp", "roles"])
    assert site.assert_in(scp=None, roles=["orders.read"]) == f"robot oauth:{CLIENT}"


@of(ENTRA)
def test_version_1_of_entra_has_another_issuer(site, caplog):
    """learn.microsoft.com/entra/agent-id/secure-mcp-server-with-entra-id, "What if I can't use"."""
    with serving() as sts:
        issuer = f"{sts.origin}/{TENANT}/"
        metadata = f"{site.issuer.origin}/{TENANT}/.well-known/openid-configuration"
        site.issuer.documents[f"/{TENANT}/.well-known/openid-configuration"] = {
            "issuer": issuer,
            "jwks_uri": f"{site.issuer.origin}/{TENANT}/discovery/keys",
        }
        keys = {"keys": [RSA[1].as_dict(private=False)]}
        site.issuer.documents[f"/{TENANT}/discovery/keys"] = keys
        old = {
            "iss": issuer,
            **{"appid": CLIENT, "appidacr": "0", "azp": None, "azpacr": None},
            **{"acr": "1", "amr": ["pwd"], "unique_name": "anna@example.com", "ver": "1.0"},
        }
        site.assert_out(caplog, "which this endpoint does not name", key=RSA[1], **old)
        configure(
            site.settings,
            TOKEN_ISSUERS={site.issuer.url: [issuer]},
            ISSUER_METADATA={issuer: metadata},
        )
        assert site.assert_in(key=RSA[1], **old) == f"anna oauth:{CLIENT}"
        assert not sts.asked
        site.assert_in()
        site.assert_out(caplog, "its key is none of the issuer's", key=RSA[0], **old)
        site.assert_out(caplog, "it is for", key=RSA[1], **{**old, "aud": OTHER_API})


# AuthKit


@of(AUTHKIT)
def test_a_machine_at_workos_names_the_environment_alone(site, caplog):
    machine = {"sub": "client_01M2M", "client_id": "client_01M2M", "sid": None, "aud": ENVIRONMENT}
    site.assert_out(caplog, f"it is for {ENVIRONMENT!r}", **machine)
    get_user_model().objects.create_user("robot")
    configure(
        site.settings,
        TOKEN_AUDIENCES={RESOURCE: [ENVIRONMENT]},
        OAUTH_SERVICE_USERS={"client_01M2M": "robot"},
    )
    assert site.assert_in(**machine) == "robot oauth:client_01M2M"


@of(AUTHKIT)
def test_what_authkit_answers_about_tokens_does_not_say_what_they_are_for(site, caplog):
    """workos.com/docs/reference/workos-connect/introspection"""
    configure(
        site.settings,
        AUTH="django_mcp.contrib.oauth.introspection_auth",
        INTROSPECTION_CLIENT_ID=ASKING,
        INTROSPECTION_CLIENT_SECRET=SECRET,
    )
    now = int(time.time())
    site.issuer.introspected["a-token"] = {
        "active": True,
        "token_type": "access_token",
        "client_id": site.documented.client,
        "iss": site.issuer.url,
        "sub": "anna",
        "iat": now,
        "exp": now + 300,
        "sid": "app_consent_01JP8BD0CZ",
    }
    site.assert_out(caplog, "it is for None", token="a-token")


def test_nothing_that_a_token_may_be_for_is_shared():
    assert len({API, OTHER_API, CLIENT, ENVIRONMENT}) == 4
