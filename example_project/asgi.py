"""The ASGI application: MCP requests through the mount, everything else through Django."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")
django_application = get_asgi_application()

from django_mcp.asgi import mount  # noqa: E402  the apps must be loaded first

application = mount(django_application)
