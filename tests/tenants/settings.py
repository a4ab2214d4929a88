"""What both kinds of the site have in common."""

from __future__ import annotations

from tests.logins.settings import OAUTH2_PROVIDER as PROVIDER
from tests.settings import *  # noqa: F403
from tests.settings import DJANGO_MCP as COMMON

SITE = "http://*.localhost"
"""The tenants' sites: each is an issuer of its own."""
LOGIN_URL = "admin:login"
OAUTH2_PROVIDER = {**PROVIDER, "OIDC_ISS_ENDPOINT": SITE, "CIMD_ENABLED": False}
ROOT_URLCONF = "tests.tenants.urls"
ALLOWED_HOSTS = [".localhost"]
DJANGO_MCP = {
    **COMMON,
    "AUTH": "tests.tenants.auth.by_header",
    "BASE_URL": SITE,
    "AUTHORIZATION_SERVERS": SITE,
    "SESSION_CACHE_SECONDS": 10,
    "WORKER_THREADS": 2,
    "STREAM_AFTER_SECONDS": 0.05,
}
TENANTS = ("acme", "globex")
"""Each with a host of its own below localhost."""

NOT_HERE = (
    "tests.site",
    "tests.model_tools.desk",
    "tests.tutorials.employees",
    "tests.tutorials.snippets",
)
"""Apps of the other tests: what they offer, and what has the same label as one of these."""
