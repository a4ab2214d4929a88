"""``path("", include("django_mcp.urls"))``: the default server at ``DJANGO_MCP["PATH"]``."""

from __future__ import annotations

from .conf import get_settings
from .routing import endpoint

urlpatterns = [endpoint(get_settings().path, name="django_mcp")]
