"""The site with a database for each tenant, by its alias."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.settings import INSTALLED_APPS as ALL
from tests.support.databases import SQLITE_OPTIONS
from tests.tenants.settings import *  # noqa: F403
from tests.tenants.settings import DJANGO_MCP as COMMON


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
INSTALLED_APPS = [*(each for each in ALL if each != "tests.site"), "tests.tenants.desk"]
DJANGO_MCP = {**COMMON, "PARTITION": "tests.tenants.hosts.DatabaseByHost"}
