"""Two tenants whose users have the same numbers, and the ways in to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.contrib.auth import get_user_model
from django.core.asgi import get_asgi_application
from django.db import connections, transaction
from django.test.utils import setup_databases, teardown_databases

from django_mcp.asgi import mount
from django_mcp.partitions import enter_partition, partitions
from django_mcp.running.process_loop import close_process_loop
from django_mcp.store.database import alias, with_retries
from django_mcp.store.ledger import close_ledger
from tests.support.client import Client, StatelessClient
from tests.support.sites import run

from . import offers
from .wsgi import WSGI

SCHEMAS = os.environ.get("DJANGO_SETTINGS_MODULE") == "tests.tenants.schemas"
DATABASES = os.environ.get("DJANGO_SETTINGS_MODULE") == "tests.tenants.databases"
NUMBER = 7
"""Of a user at each tenant: they are two people."""
KEPT = {"contenttypes", "companies"}


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker: Any) -> Iterator[None]:
    """Make the databases, and the tenants in them."""
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False)
        if SCHEMAS:
            for name in django_settings.TENANTS:
                make_company(name)
        yield
        for connection in connections.all(initialized_only=True):
            connection.close()
        teardown_databases(made, verbosity=0)


def make_company(name: str) -> Any:
    """Make a tenant of django-tenants, with a host below localhost."""
    from .companies.models import Company, Domain  # noqa: PLC0415 - there are two kinds of sites

    company = Company(schema_name=name, name=name.title())
    company.save(verbosity=0)
    Domain.objects.create(domain=f"{name}.localhost", tenant=company, is_primary=True)
    return company


@pytest.fixture(autouse=True)
def site(
    django_db_setup: None, django_db_blocker: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Let there be a user with the same number and something of his own at each tenant."""
    with django_db_blocker.unblock():
        offers.gates.clear()
        # Said here, for it is no test's fault that follows: its users would be those that are left,
        # since their numbers are given, and everything else would be there twice.
        if left := [name for name in partitions().all() if has_rows(name)]:
            empty_all()
            pytest.fail(f"An earlier test, or its end, has left rows at {left}")
        for name in django_settings.TENANTS:
            with enter_partition(name):
                people().create_user(f"anna at {name}", pk=NUMBER, password="secret")
                item().create(name=f"{name}'s")
        yield
        # Whoever still writes would be in the way, or come after it.
        close_process_loop()
        close_ledger()
        # Before the tables, whoever has asked for it first: which tenants there are may be patched.
        monkeypatch.undo()
        empty_all()


def has_rows(tenant: str) -> bool:
    with enter_partition(tenant):
        return bool(item().exists() or people().exists())


def empty_all() -> None:
    """Delete all rows of all tenants, and be in no partition."""
    leave()
    for name in partitions().all():
        with enter_partition(name):
            with_retries(empty)
    leave()


def leave() -> None:
    """Be in no partition, as middleware of django-tenants has left this thread's connection."""
    if SCHEMAS:
        connections["default"].set_schema_to_public()


def people() -> Any:
    return get_user_model().objects


def item() -> Any:
    return apps.get_model("desk", "Item").objects


def empty() -> None:
    """Delete all rows of the present partition."""
    models = [each for each in apps.get_models() if each._meta.app_label not in KEPT]
    tables = {each._meta.db_table for each in models} - {"auth_permission"}
    wanted = [f'DELETE FROM "{table}"' for table in sorted(tables)]
    connection = connections[alias()]
    with (
        connection.constraint_checks_disabled(),
        transaction.atomic(using=alias()),
        connection.cursor() as cursor,
    ):
        for statement in ["; ".join(wanted)] if SCHEMAS else wanted:
            cursor.execute(statement)


@pytest.fixture(params=["wsgi", "asgi", "mount"])
def entrance(request: pytest.FixtureRequest) -> Any:
    """What serves requests: each way in."""
    if request.param == "wsgi":
        return WSGI()
    behind = get_asgi_application()
    return mount(behind) if request.param == "mount" else behind


@pytest.fixture(params=["asgi", "mount"])
def streaming(request: pytest.FixtureRequest) -> Any:
    """The ways in at which answers are streams."""
    behind = get_asgi_application()
    return mount(behind) if request.param == "mount" else behind


@pytest.fixture
def on_loop() -> Callable[[Any], Any]:
    """Run a test's coroutine, and end what it leaves behind."""
    return run


def legacy(entrance: Any, tenant: str, **headers: str) -> Client:
    """Return a client of a tenant's user, with a session that is still to be opened."""
    return Client(entrance, **at(tenant, **headers))


def modern(entrance: Any, tenant: str, **headers: str) -> StatelessClient:
    """Return a client of a tenant's user that has no sessions."""
    return StatelessClient(entrance, **at(tenant, **headers))


def at(tenant: str, **headers: str) -> dict[str, str]:
    """Return headers that name the host of a tenant, and the user's number."""
    return {"Host": f"{tenant}.localhost", "X_User": str(NUMBER), **headers}
