"""The site's URLs: two endpoints, its own authorization server, and a page to log in at."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from django_mcp import endpoint

from .shop import library, shop

urlpatterns = [
    path("", include("django_mcp.contrib.oauth.urls")),
    endpoint("mcp", server=shop),
    endpoint("books/mcp", server=library),
    path("", include("django_mcp.well_known")),
    path("admin/", admin.site.urls),
]
