"""The endpoint at /mcp, and a page."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import include, path

urlpatterns = [
    path("", include("django_mcp.urls")),
    path("", lambda request: HttpResponse("A page")),
]
