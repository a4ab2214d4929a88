"""Settings of the bookshop: the conformance fixture's project with another app in it."""

from __future__ import annotations

import os

from fixture.settings import *  # noqa: F403  settings on top of settings

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django_mcp",
    "bookshop",
]
DJANGO_MCP = {
    "AUTH": "django_mcp.auth.public",
    "SERVER_NAME": "bookshop",
    "SERVER_VERSION": "2.5",
    "INSTRUCTIONS": "Find a book before you lend it.",
    "WSGI_STREAMS": int(os.environ.get("WSGI_STREAMS") or 0),
}
