"""What else a site with tenants has: tokens, the admin, checks, tests of its own."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client as DjangoClient

from django_mcp.checks import check_middleware
from django_mcp.contrib.tokens.models import Token
from django_mcp.partitions import enter_partition, here, partitions
from django_mcp.testing import MCPClient
from tests.support.waiting import in_thread

from .offers import desk
from .tenancy import NUMBER, SCHEMAS, leave, legacy, modern, people
from .wsgi import WSGI

BOTH = ("acme", "globex")
schemas_only = pytest.mark.skipif(not SCHEMAS, reason="of django-tenants")


def issue(tenant: str) -> str:
    """Issue a token as operators do; return its secret."""
    out = io.StringIO()
    call_command("mcp", f"--partition={tenant}", "token", "create", f"anna at {tenant}", stdout=out)
    return out.getvalue().strip()


def ask(entrance: Any, tenant: str, secret: str) -> Any:
    if isinstance(entrance, WSGI):
        entrance = WSGI("/with-token")
    client = modern(entrance, tenant, Authorization=f"Bearer {secret}")
    if not isinstance(entrance, WSGI):
        client = type(client)(entrance, path="/with-token", **client.headers)
    return client


def test_a_token_is_unknown_at_another_tenant(entrance, on_loop):
    async def status(tenant: str, secret: str) -> int:
        async with ask(entrance, tenant, secret).call("facts") as answer:
            await answer.read()
            return answer.status

    async def main() -> None:
        secrets = {tenant: await in_thread(issue, tenant) for tenant in BOTH}
        for tenant, other in (BOTH, BOTH[::-1]):
            assert await status(tenant, secrets[tenant]) == 200
            assert await status(tenant, secrets[other]) == 401
            assert (await ask(entrance, tenant, secrets[tenant]).value("facts"))["where"] == tenant

    on_loop(main())


def test_a_token_is_unknown_there_also_where_all_share_its_table():
    """As where its app is in SHARED_APPS."""
    secret = issue("acme")
    with enter_partition("acme"):
        row = Token.objects.get()
        assert Token.objects.presented(secret) == row
    with enter_partition("globex"):
        row.pk = None
        row.save(force_insert=True)
        assert Token.objects.presented(secret) is None


def test_the_command_names_the_partitions_that_there_are():
    with pytest.raises(CommandError, match="no partition 'nobody' among these: acme, globex"):
        call_command("mcp", "--partition=nobody", "prune")


@schemas_only
def test_a_command_for_one_tenant_issues_its_token(on_loop, entrance):
    def issued() -> str:
        out = io.StringIO()
        with enter_partition("acme"):
            call_command("mcp", "token", "create", "anna at acme", stdout=out)
        return out.getvalue().strip()

    async def main() -> None:
        secret = await in_thread(issued)
        assert (await ask(entrance, "acme", secret).value("facts"))["where"] == "acme"

    on_loop(main())


@schemas_only
def test_the_admin_shows_the_sessions_of_its_tenant_alone(on_loop, entrance):
    async def main() -> None:
        for tenant in BOTH:
            await legacy(entrance, tenant).open()

    on_loop(main())
    leave()
    for tenant in BOTH:
        with enter_partition(tenant):
            people().create_superuser("boss", password="secret")
        client = DjangoClient(HTTP_HOST=f"{tenant}.localhost")
        with enter_partition(tenant):
            client.force_login(people().get(username="boss"))
        page = client.get("/admin/django_mcp/session/").content.decode()
        leave()
        assert f"anna at {tenant}" in page
        for other in {*BOTH} - {tenant}:
            assert f"anna at {other}" not in page


@pytest.mark.parametrize("tenant", BOTH)
def test_tests_of_a_site_call_in_the_partition_that_they_are_in(tenant):
    with enter_partition(tenant):
        client = MCPClient(desk).as_user(people().get(pk=NUMBER))
        assert client.tool("facts").assert_ok().structured["items"] == f"{tenant}'s"
        assert client.tool("afacts").assert_ok().structured["where"] == tenant


@schemas_only
@pytest.mark.parametrize("tenant", BOTH)
def test_tests_of_a_site_call_in_the_schema_of_the_connection(tenant):
    """As in a TenantTestCase."""
    connections["default"].set_schema(tenant)
    assert here() == tenant
    client = MCPClient(desk).as_user(people().get(pk=NUMBER))
    assert client.tool("facts").assert_ok().structured["items"] == f"{tenant}'s"
    assert connections["default"].schema_name == tenant


def ids() -> set[str]:
    return {each.id for each in run_checks() if each.id and each.id.startswith("django_mcp")}


def test_nothing_is_to_be_mended():
    assert not ids() - {"django_mcp.W003", "django_mcp.W004"}


@schemas_only
def test_a_site_with_tenants_and_no_partition_is_told(settings):
    settings.DJANGO_MCP = {k: v for k, v in settings.DJANGO_MCP.items() if k != "PARTITION"}
    assert "django_mcp.W020" in ids()


@schemas_only
@pytest.mark.parametrize(
    ("shared", "tenants"),
    [
        (["django_mcp"], ["django_mcp"]),
        (["django_mcp.apps.DjangoMCPConfig"], ["django_mcp"]),
        ([], []),
        (["django_mcp"], []),
    ],
)
def test_where_the_app_cannot_be_is_told(settings, shared, tenants):
    rest = [each for each in settings.TENANT_APPS if each != "django_mcp"]
    settings.SHARED_APPS = [*settings.SHARED_APPS, *shared]
    settings.TENANT_APPS = [*rest, *tenants]
    assert "django_mcp.E021" in ids()


@schemas_only
def test_another_database_is_told(settings):
    settings.TENANT_DB_ALIAS = "elsewhere"
    assert [each.id for each in partitions().check()] == ["django_mcp.E022"]


@pytest.mark.parametrize(
    "path", ["nowhere.Nothing", "django_mcp.auth.public", "tests.tenants.offers.desk"]
)
def test_what_is_no_partition_is_told(settings, path):
    settings.DJANGO_MCP = settings.DJANGO_MCP | {"PARTITION": path}
    assert "django_mcp.E020" in ids()


@schemas_only
def test_the_middleware_that_finds_tenants_is_done_without_at_the_mount(settings):
    settings.ASGI_APPLICATION = "tests.tenants.asgi.application"
    assert check_middleware() == []
    settings.TENANT_SUBFOLDER_PREFIX = "clients"
    settings.MIDDLEWARE = [
        "django_tenants.middleware.subfolder.TenantSubfolderMiddleware",
        *settings.MIDDLEWARE[1:],
    ]
    assert [each.id for each in check_middleware()] == ["django_mcp.W002"]
