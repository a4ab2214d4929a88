"""The mount, in front of the site."""

from __future__ import annotations

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from django_mcp.asgi import mount  # noqa: E402  the apps must be loaded first

application = mount(django_application)
