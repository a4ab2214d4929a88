"""The settings of the conformance fixture, with a server of its own and perhaps a login."""

from __future__ import annotations

import os

from fixture.settings import *  # noqa: F403
from fixture.settings import DJANGO_MCP as OPEN

from django_mcp.contrib.oauth import UserFromClaim

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django_mcp",
    "doctored",
]
ROOT_URLCONF = "doctored.urls"

DJANGO_MCP = {**OPEN, "SERVER_NAME": "doctored"}
if issuer := os.environ.get("ISSUER"):
    DJANGO_MCP |= {
        "AUTH": "django_mcp.contrib.oauth.jwt_auth",
        "AUTHORIZATION_SERVERS": [issuer],
        "OAUTH_USER": UserFromClaim("sub", create=True),
        "BASE_SCOPES": ["read"],
    }
