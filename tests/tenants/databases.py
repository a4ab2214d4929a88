"""The site with a database for each tenant, by its alias."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.settings import INSTALLED_APPS as ALL
from tests.settings import MIDDLEWARE as REST
from tests.support.databases import SQLITE_OPTIONS
from tests.tenants.settings import *  # noqa: F403
from tests.tenants.settings import DJANGO_MCP as COMMON
from tests.tenants.settings import NOT_HERE


def _database(name: str) -> dict[str, object]:
    path = Path(tempfile.gettempdir()) / f"django_mcp_{name}_{os.getpid()}.sqlite3"
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": SQLITE_OPTIONS,
        "TEST": {"NAME": str(path)},
    }


DATABASES = {name: _database(name) for name in ("default", "acme", "globex")}
DATABASE_ROUTERS = ["django_mcp.partitions.PartitionRouter"]
INSTALLED_APPS = [*(each for each in ALL if each not in NOT_HERE), "tests.tenants.desk"]
INSTALLED_APPS += ["oauth2_provider"]
MIDDLEWARE = ["tests.tenants.hosts.pages_of_tenants", *REST]
DJANGO_MCP = {**COMMON, "PARTITION": "tests.tenants.hosts.DatabaseByHost"}
