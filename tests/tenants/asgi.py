from __future__ import annotations

from django.core.asgi import get_asgi_application

from django_mcp.asgi import mount

application = mount(get_asgi_application())
