"""``path("", include("django_mcp.urls"))``: the default server at ``DJANGO_MCP["PATH"]``."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from .conf import Settings, get_settings
from .routing import endpoint
from .well_known import documents

try:
    _path = get_settings().path
except ImproperlyConfigured:
    # The system check django_mcp.E002 says it; all other pages of the site go on working.
    _path = Settings().path

urlpatterns = [endpoint(_path, name="django_mcp"), *documents()]
