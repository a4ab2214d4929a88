"""What both kinds of the site have in common."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import DJANGO_MCP as COMMON

ROOT_URLCONF = "tests.tenants.urls"
ALLOWED_HOSTS = [".localhost"]
DJANGO_MCP = {
    **COMMON,
    "AUTH": "tests.tenants.auth.by_header",
    "SESSION_CACHE_SECONDS": 10,
    "WORKER_THREADS": 2,
    "STREAM_AFTER_SECONDS": 0.05,
}
TENANTS = ("acme", "globex")
"""Each with a host of its own below localhost."""
