from __future__ import annotations

from django.contrib import admin
from django.urls import path

from django_mcp import endpoint
from django_mcp.contrib.tokens.auth import token_auth

from .offers import desk

urlpatterns = [
    path("admin/", admin.site.urls),
    endpoint("mcp", server=desk),
    endpoint("with-token", server=desk, auth=token_auth),
]
