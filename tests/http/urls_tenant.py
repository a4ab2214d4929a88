from __future__ import annotations

from django_mcp import endpoint

urlpatterns = [endpoint("tenant/mcp")]
