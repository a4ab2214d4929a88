"""Settings for django-mcp-server. STATELESS=1 does without sessions in the database."""

from __future__ import annotations

import os

from settings_base import *  # noqa: F403
from settings_base import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "mcp_server", "peers.mcp_server_site"]
ROOT_URLCONF = "mcp_server.urls"
DJANGO_MCP_GLOBAL_SERVER_CONFIG = {
    "name": "bench",
    "stateless": bool(os.environ.get("STATELESS")),
}
DJANGO_MCP_GET_SERVER_INSTRUCTIONS_TOOL = False
REST_FRAMEWORK = {"UNAUTHENTICATED_USER": None}
