"""The site's URLs with those of django-debug-toolbar."""

from __future__ import annotations

from django.urls import include, path

from .urls import urlpatterns as site_urls

urlpatterns = [path("__debug__/", include("debug_toolbar.urls")), *site_urls]
