"""The site whose authorization server is allauth's provider."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import DJANGO_MCP as COMMON
from tests.settings import INSTALLED_APPS as APPS
from tests.settings import MIDDLEWARE as LAYERS

ROOT_URLCONF = "tests.allauth_site.urls"
INSTALLED_APPS = [
    *APPS,
    "django_mcp.contrib.oauth.allauth",
    "allauth",
    "allauth.account",
    "allauth.idp.oidc",
]
MIDDLEWARE = [*LAYERS, "allauth.account.middleware.AccountMiddleware"]
LOGIN_URL = "account_login"
IDP_OIDC_ADAPTER = "tests.allauth_site.adapter.Adapter"
IDP_OIDC_DCR_ENABLED = True
IDP_OIDC_DCR_REQUIRES_INITIAL_ACCESS_TOKEN = False
IDP_OIDC_RATE_LIMITS = False
ISSUER = "http://localhost"
DJANGO_MCP = {
    **COMMON,
    "AUTH": "django_mcp.contrib.oauth.allauth_auth",
    "AUTHORIZATION_SERVERS": [ISSUER],
    "BASE_URL": ISSUER,
    "BASE_SCOPES": ["orders:read"],
    "SCOPES": {"orders:read": "See orders", "orders:write": "Ship orders"},
    "WORKER_THREADS": 2,
    "STREAM_AFTER_SECONDS": 0.05,
}
