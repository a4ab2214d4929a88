"""The same tests are run for both kinds of partitions, each with settings of its own:

    pytest --ds=tests.tenants.schemas tests/tenants      django-tenants; needs PostgreSQL
    pytest --ds=tests.tenants.databases tests/tenants    a database for each; SQLite

With other settings there is nothing to collect here.
"""

from __future__ import annotations

import os

if os.environ.get("DJANGO_SETTINGS_MODULE", "").startswith("tests.tenants."):
    from .tenancy import django_db_setup, entrance, on_loop, site, streaming

    __all__ = ["django_db_setup", "entrance", "on_loop", "site", "streaming"]
else:
    collect_ignore_glob = ["test_*.py"]
