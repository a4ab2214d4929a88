"""The landing page, the admin, and the MCP endpoint at /mcp."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from example_project.support.views import LandingView

admin.site.site_header = "Harbour support desk"
admin.site.site_title = "Support desk"

urlpatterns = [
    path("", LandingView.as_view(), name="landing"),
    path("admin/", admin.site.urls),
    path("", include("django_mcp.urls")),
]
