"""The example's own suite: `pytest --ds=example_project.settings tests/example`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from django_mcp.testing import MCPClient

from .demo import Admin, Demo, admin_of, running_demo

TICKETS = 300

if os.environ.get("DJANGO_SETTINGS_MODULE") != "example_project.settings":
    # Another project's settings are in force, in which the desk is not installed.
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as environment:
        environment.setenv("DEMO_PASSWORD", "demo")
        call_command("seed_support", tickets=TICKETS, stdout=StringIO())


@pytest.fixture
def agent(db) -> User:
    return User.objects.get(username="agent")


@pytest.fixture
def customer(db) -> User:
    return User.objects.get(username="customer")


@pytest.fixture(params=["2025-03-26", "2025-11-25", "2026-07-28"])
def client_of_any_era(request) -> MCPClient:
    return MCPClient(revision=request.param)


@pytest.fixture
def as_agent(client_of_any_era: MCPClient, agent: User) -> MCPClient:
    return client_of_any_era.as_user(agent)


@pytest.fixture
def as_customer(client_of_any_era: MCPClient, customer: User) -> MCPClient:
    return client_of_any_era.as_user(customer)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Iterator[Demo]:
    with django_db_blocker.unblock(), running_demo(tmp_path_factory.mktemp("demo")) as demo:
        yield demo


@pytest.fixture
def admin(demo: Demo) -> Iterator[Admin]:
    with admin_of(demo) as admin:
        yield admin
