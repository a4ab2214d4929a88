"""Clients log in at each tenant, which is an issuer with users, clients and tokens of its own."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import Client as DjangoClient

from django_mcp.contrib.oauth.dot.models import AccessToken, Application, RefreshToken
from django_mcp.contrib.oauth.models import ScopeChallenge
from django_mcp.partitions import enter_partition
from tests.logins.visitor import Visitor, offered
from tests.support.waiting import in_thread

from . import offers
from .tenancy import NUMBER, SCHEMAS, at, leave, modern, people
from .wsgi import WSGI

BOTH = ("acme", "globex")
PATH = "/with-login"
READ, ALL = "items:read", "items:read items:write"


def visitor_of(tenant: str) -> Visitor:
    """Return a client of the tenant's user, who is logged in there, and has registered."""
    site = f"http://{tenant}.localhost"
    with enter_partition(tenant):
        user = people().get(pk=NUMBER)
        user.is_staff = True
        user.save()
        visitor = Visitor(user, host=f"{tenant}.localhost", resource=f"{site}{PATH}")
    leave()
    assert visitor.register().status_code == 201
    return visitor


def logged_in(tenant: str, scope: str = READ) -> tuple[Visitor, dict[str, Any]]:
    visitor = visitor_of(tenant)
    return visitor, visitor.login(scope=scope)


def calling(entrance: Any, tenant: str, token: str) -> Any:
    """Return a client at an entrance that has a token."""
    headers = {"Authorization": f"Bearer {token}"}
    if isinstance(entrance, WSGI):
        return modern(WSGI(PATH), tenant, **headers)
    found = modern(entrance, tenant)
    return type(found)(entrance, path=PATH, **at(tenant, **headers))


@pytest.mark.parametrize("tenant", BOTH)
def test_a_client_finds_the_issuer_of_its_tenant(tenant):
    site, browser = f"http://{tenant}.localhost", DjangoClient(SERVER_NAME=f"{tenant}.localhost")
    refused = browser.post(PATH, headers={"Accept": "application/json, text/event-stream"})
    about = f"{site}/.well-known/oauth-protected-resource{PATH}"
    assert f'resource_metadata="{about}"' in refused.headers["WWW-Authenticate"]
    resource = browser.get(about).json()
    assert (resource["resource"], resource["authorization_servers"]) == (f"{site}{PATH}", [site])
    server = browser.get(f"{site}/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == site
    for name in ("authorization", "token", "registration", "revocation"):
        assert server[f"{name}_endpoint"].startswith(f"{site}/o/")


def test_a_login_is_good_at_its_tenant_alone(entrance, on_loop):
    async def status(tenant: str, token: str) -> int:
        async with calling(entrance, tenant, token).call("facts") as answer:
            await answer.read()
            return answer.status

    async def main() -> None:
        tokens = {}
        for tenant in BOTH:
            tokens[tenant] = (await in_thread(logged_in, tenant))[1]["access_token"]
        for tenant, other in (BOTH, BOTH[::-1]):
            found = await calling(entrance, tenant, tokens[tenant]).value("facts")
            assert (found["user"], found["where"]) == (f"anna at {tenant}", tenant)
            assert await status(tenant, tokens[other]) == 401

    on_loop(main())


def test_the_answer_names_the_tenants_issuer():
    visitor = visitor_of("globex")
    page = visitor.ask(scope=READ)
    assert "guarded" in page.content.decode()
    assert f"http://globex.localhost{PATH}" in page.content.decode()
    assert "anna at globex" in page.content.decode()
    assert visitor.answer(page)["iss"] == "http://globex.localhost"


def test_nobody_gets_a_token_for_another_tenant():
    visitor = visitor_of("acme")
    resource = f"http://globex.localhost{PATH}"
    assert offered(visitor.ask(scope=READ, resource=resource))["error"] == "invalid_target"
    code = visitor.answer(visitor.ask(scope=READ))["code"]
    assert visitor.exchange(code, resource=resource).json()["error"] == "invalid_target"


def test_clients_codes_and_tokens_are_unknown_at_another_tenant():
    visitor = visitor_of("acme")
    abroad = Visitor(None, visitor.client_id, host="globex.localhost", resource=visitor.resource)
    code = visitor.answer(visitor.ask(scope=READ))["code"]
    assert abroad.exchange(code).json()["error"] == "invalid_client"
    tokens = visitor.exchange(code).json()
    assert abroad.refresh(tokens["refresh_token"]).json()["error"] == "invalid_client"
    revoked = {"token": tokens["refresh_token"], "client_id": visitor.client_id}
    assert abroad.machine.post("/o/revoke_token/", revoked).status_code == 401
    # Also to a client of that tenant's with the same id.
    with enter_partition("globex"):
        Application.objects.create(
            client_id=visitor.client_id,
            client_type="public",
            authorization_grant_type="authorization-code",
            redirect_uris="https://editor.example/callback",
        )
    leave()
    assert abroad.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert visitor.refresh(tokens["refresh_token"]).status_code == 200
    with enter_partition("globex"):
        assert not AccessToken.objects.exists()


def test_who_is_not_logged_in_there_is_asked_to():
    visitor = visitor_of("acme")
    with enter_partition("globex"):
        Application.objects.create(
            client_id=visitor.client_id,
            client_type="public",
            authorization_grant_type="authorization-code",
            redirect_uris="https://editor.example/callback",
        )
    leave()
    # The cookie is known at no other tenant, wherever a browser sends it.
    abroad = Visitor(
        None, visitor.client_id, host="globex.localhost", resource=f"http://globex.localhost{PATH}"
    )
    abroad.browser.cookies = visitor.browser.cookies
    assert abroad.ask(scope=READ).headers["Location"].startswith("/admin/login/")


def test_a_client_is_helped_to_ask_for_more_at_its_tenant(entrance, on_loop):
    async def main() -> None:
        visitor, tokens = await in_thread(logged_in, "acme")
        client = calling(entrance, "acme", tokens["access_token"])
        async with client.call("add_item", name="x") as answer:
            assert answer.status == 403
            assert f'scope="{ALL}"' in answer.headers["www-authenticate"]
        await in_thread(is_asked_for_more, visitor, tokens)

    on_loop(main())


def is_asked_for_more(visitor: Visitor, tokens: dict[str, Any]) -> None:
    with enter_partition("globex"):
        assert not ScopeChallenge.objects.exists()
    leave()
    assert visitor.refresh(tokens["refresh_token"]).json()["error"] == "server_error"
    assert visitor.refresh(tokens["refresh_token"]).status_code == 200


def test_what_is_open_ends_with_the_login_of_its_tenant(streaming, on_loop):
    def revoke(tenant: str) -> None:
        with enter_partition(tenant):
            RefreshToken.objects.get().revoke()

    async def main() -> None:
        tokens = {tenant: (await in_thread(logged_in, tenant))[1] for tenant in BOTH}
        stays = calling(streaming, "acme", tokens["acme"]["access_token"])
        goes = calling(streaming, "globex", tokens["globex"]["access_token"])
        async with (
            stays.call("await_", gate="login stays") as first,
            goes.call("await_", gate="login goes") as second,
        ):
            for gate in ("stays", "goes"):
                await in_thread(offers.gates[f"login {gate} reached"].wait, 20)
            await in_thread(revoke, "globex")
            assert "revoked" in (await second.messages())[-1]["error"]["message"]
            offers.gates["login stays"].set()
            assert (await first.messages())[-1]["result"]["structuredContent"]["where"] == "acme"

    on_loop(main())


@pytest.mark.skipif(not SCHEMAS, reason="of django-tenants")
@pytest.mark.parametrize("app", ["oauth2_provider", "django_mcp.contrib.oauth"])
@pytest.mark.parametrize(("is_shared", "is_tenants"), [(True, True), (True, False), (False, False)])
def test_where_tokens_cannot_be_is_told(settings, app, is_shared, is_tenants):
    settings.SHARED_APPS = [*settings.SHARED_APPS, *([app] if is_shared else [])]
    if not is_tenants:
        settings.TENANT_APPS = [each for each in settings.TENANT_APPS if each != app]
    found = [each for each in run_checks() if each.id == "django_mcp.E021"]
    assert found
    assert all(repr(app) in each.msg for each in found)
