from __future__ import annotations

from django.conf.urls.i18n import i18n_patterns
from django.urls import path

from django_mcp import endpoint

from .urls import page

urlpatterns = [path("page", page), *i18n_patterns(endpoint("mcp"), path("page", page))]
