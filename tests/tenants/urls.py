from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from django_mcp import endpoint
from django_mcp.contrib.oauth import dot_auth
from django_mcp.contrib.tokens.auth import token_auth

from .offers import desk, guarded

urlpatterns = [
    path("", include("django_mcp.contrib.oauth.urls")),
    path("admin/", admin.site.urls),
    endpoint("mcp", server=desk),
    endpoint("with-token", server=desk, auth=token_auth),
    endpoint("with-login", server=guarded, auth=dot_auth),
    path("", include("django_mcp.well_known")),
]
