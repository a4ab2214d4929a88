"""The same with one endpoint, which needs no scopes."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from django_mcp import Context, MCPServer, endpoint

plain = MCPServer("plain")


@plain.tool
def whoami(ctx: Context) -> str:
    """Say who is calling."""
    return str(ctx.user)


urlpatterns = [
    path("", include("django_mcp.contrib.oauth.urls")),
    endpoint("mcp", server=plain),
    path("", include("django_mcp.well_known")),
    path("admin/", admin.site.urls),
]
