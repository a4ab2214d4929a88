"""Settings of the library: the conformance fixture's project with another app in it."""

from __future__ import annotations

import os

from fixture.settings import *  # noqa: F403  settings on top of settings

from tests.support.services import REDIS_URL

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django_mcp",
    "library",
]
if os.environ["LAYER"]:
    CHANNEL_LAYERS = {"default": {"BACKEND": os.environ["LAYER"]}}
if "redis" in os.environ["LAYER"]:
    CHANNEL_LAYERS["default"]["CONFIG"] = {"hosts": [REDIS_URL]}
DJANGO_MCP = {
    "AUTH": "django_mcp.auth.public",
    "SERVER_NAME": "library",
    # All are one anonymous caller here, who looks again and again whether something has happened.
    "RATE_LIMIT": "",
    "WSGI_STREAMS": int(os.environ.get("WSGI_STREAMS") or 0),
}
