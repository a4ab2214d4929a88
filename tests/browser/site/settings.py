"""The example project, with one origin allowed and a WebSocket beside the endpoint."""

from __future__ import annotations

import os

from example_project.settings import *  # noqa: F403  settings on top of settings
from example_project.settings import DJANGO_MCP, INSTALLED_APPS, MIDDLEWARE

INSTALLED_APPS = [*INSTALLED_APPS, "tests.browser.site"]
ASGI_APPLICATION = "tests.browser.site.asgi.application"
MIDDLEWARE = ["tests.browser.site.policy.strict_pages", *MIDDLEWARE]
DJANGO_MCP = {**DJANGO_MCP, "ALLOWED_ORIGINS": [os.environ["ALLOWED_ORIGIN"]]}
STATICFILES_DIRS = [os.environ["STATIC_FILES"]]
