"""Settings of a site whose django-oauth-toolkit logs clients in, as ``oauth-setup`` prints them.

``SITE`` in the environment says where it is, for those that serve it at a port.
"""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as ALL
from tests.settings import MIDDLEWARE as COMMON

SITE = os.environ.get("SITE", "http://localhost")
INSTALLED_APPS = [*ALL, "oauth2_provider"]
MIDDLEWARE = [*COMMON, "django.middleware.clickjacking.XFrameOptionsMiddleware"]
ROOT_URLCONF = "tests.logins.urls"
LOGIN_URL = "admin:login"
DJANGO_MCP = {
    "AUTH": "django_mcp.contrib.oauth.dot_auth",
    "BASE_URL": SITE,
    "AUTHORIZATION_SERVERS": SITE,
    "BASE_SCOPES": ["orders:read"],
    "SCOPES": {
        "orders:read": "Your orders",
        "orders:write": "Your orders: cancel and pay them",
        "stock:write": "What is in stock",
    },
    "SCOPE_HIERARCHY": {"orders:write": ["orders:read"]},
    "READ_ONLY_SCOPES": ["orders:read"],
    "WORKER_THREADS": 4,
}
OAUTH2_PROVIDER = {
    "OIDC_ISS_ENDPOINT": SITE,
    "OAUTH2_VALIDATOR_CLASS": "django_mcp.contrib.oauth.dot.validator.Validator",
    "SCOPES_BACKEND_CLASS": "django_mcp.contrib.oauth.dot.site.Scopes",
    "DCR_ENABLED": True,
    "DCR_REGISTRATION_PERMISSION_CLASSES": ["oauth2_provider.dcr.AllowAllDCRPermission"],
    "CIMD_ENABLED": True,
    "CIMD_REGISTRATION_PERMISSION_CLASSES": [
        "django_mcp.contrib.oauth.dot.documents.OnConsentPage"
    ],
    "CIMD_METADATA_FETCHER": "django_mcp.contrib.oauth.dot.documents.Fetcher",
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https", "http", "cursor", "vscode", "vscode-insiders"],
    "ALLOW_LOCALHOST_LOOPBACK": True,
    "ACCESS_TOKEN_EXPIRE_SECONDS": 60 * 60,
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 24 * 60 * 60,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": True,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
}
