"""The landing page, the admin, the API for the bookkeeping, the page for one's own tokens, and the
MCP endpoint: at /mcp, and at /login/mcp with a login.
"""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LoginView
from django.urls import include, path
from rest_framework.routers import DefaultRouter

from django_mcp import endpoint
from example_project.support.api import RefundViewSet
from example_project.support.auth import login_auth
from example_project.support.views import LandingView

admin.site.site_header = "Harbour support desk"
admin.site.site_title = "Support desk"

api = DefaultRouter()
api.register("refunds", RefundViewSet)

urlpatterns = [
    path("", LandingView.as_view(), name="landing"),
    path("admin/", admin.site.urls),
    path("api/", include(api.urls)),
    path("tokens/", include("django_mcp.contrib.tokens.urls")),
    path("login/", LoginView.as_view(template_name="support/login.html"), name="login"),
    endpoint("login/mcp", auth=login_auth, name="login_mcp"),
    path("", include("django_mcp.contrib.oauth.urls")),
    path("", include("django_mcp.urls")),
]
