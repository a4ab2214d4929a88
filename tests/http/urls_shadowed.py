from __future__ import annotations

from django.urls import path

from django_mcp import endpoint

from .urls import page

urlpatterns = [path("<path:anything>", page), endpoint("mcp")]
